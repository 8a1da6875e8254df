"""What an installation decides for all trial pods."""

from dataclasses import dataclass, field
from typing import Literal

Resources = dict[str, dict[str, str]]


def _task_resources() -> Resources:
    # Requests are small: tasks differ, and a run's podTemplates say what theirs need. The limits
    # keep one trial from taking a node.
    return {
        "requests": {"cpu": "100m", "memory": "256Mi", "ephemeral-storage": "256Mi"},
        "limits": {"cpu": "2", "memory": "2Gi", "ephemeral-storage": "8Gi"},
    }


def _sidecar_resources() -> Resources:
    # The disk limit is more than the sidecar's volumes may hold together (state, suite, jobs,
    # scratch): a pod over the sum of its limits is over them by what the task container wrote.
    return {
        "requests": {"cpu": "50m", "memory": "96Mi", "ephemeral-storage": "128Mi"},
        "limits": {"cpu": "1", "memory": "512Mi", "ephemeral-storage": "6Gi"},
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeLimits:
    """Size limits of the pods' emptyDir volumes, as Kubernetes quantities."""

    workspace: str = "8Gi"
    home: str = "4Gi"
    temporary: str = "2Gi"  # /tmp and /var/tmp of the adjudicator's task container, each
    out: str = "1Gi"  # results and logs of jobs, 16 MiB a job at most
    state: str = "4Gi"  # the sidecar's staging
    suite: str = "1Gi"
    jobs: str = "64Mi"
    scratch: str = "512Mi"  # /tmp of the sidecar
    runner: str = "64Mi"  # only with init-copy


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSettings:
    """Frozen facts of the installation that the pod builders need."""

    evaluator_image: str
    runner_image: str
    runner_delivery: Literal["image-volume", "init-copy"] = "image-volume"
    our_pull_policy: str = "IfNotPresent"  # of evaluator and runner image
    relay_url: str
    relay_ip: str  # the Service's address: trial pods have no DNS
    progress_url: str
    progress_ip: str
    must_fail: tuple[str, ...] = ()  # host:port that a trial pod must not reach
    service_account: str = "stayer-trial"
    token_seconds: int = 3600
    grace_seconds: int = 600  # for a last snapshot when the agent pod is deleted
    # The adjudicator saves nothing at its end. What garbage collection deletes keeps its own grace.
    adjudicator_grace_seconds: int = 30
    start_seconds: int = 900  # until the sidecar must answer /started: fetching, isolation proof
    user_namespaces_found: bool = True  # by the probe; False: `preferred` goes without
    priority_class: str = ""
    task_resources: Resources = field(default_factory=_task_resources)
    sidecar_resources: Resources = field(default_factory=_sidecar_resources)
    volumes: VolumeLimits = field(default_factory=VolumeLimits)

    def __hash__(self) -> int:
        """Settings are a key of what is built from them; few differ in anything but these."""
        return hash((self.evaluator_image, self.runner_image, self.relay_url))
