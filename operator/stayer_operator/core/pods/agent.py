"""The agent pod: the agent works in the task container, the recorder watches it.

seed            the image's /workspace → the shared volume
initial-commit  one commit, before any agent code
recorder        sidecar: takes over the queue, fetches what a resume needs, answers /started
restore         the last snapshot, where there is one; not in a first incarnation, which it would
                only delay: the kubelet takes a second for each container
task            the runner, waiting for jobs
"""

from functools import lru_cache
from typing import Any

from stayer_evaluator.records import places
from stayer_evaluator.records.outcomes import Role
from stayer_operator.core.pods import containers, volumes
from stayer_operator.core.pods.pod import FRAMES, build_pod, shared_spec
from stayer_operator.core.pods.settings import PodSettings
from stayer_operator.core.pods.traits import Traits
from stayer_operator.core.trial.spec import TrialIdentity, TrialSpec


def build_agent_pod(
    settings: PodSettings, identity: TrialIdentity, spec: TrialSpec, incarnation: int
) -> dict[str, Any]:
    """Manifest of the agent pod of that incarnation. Never change it: others share its parts."""
    shared = _shared(settings, Traits.of(spec, Role.AGENT), incarnation > 1)
    return build_pod(shared, identity, spec, Role.AGENT, incarnation)


@lru_cache(maxsize=FRAMES)
def _shared(settings: PodSettings, traits: Traits, resumes: bool) -> dict[str, Any]:
    return shared_spec(
        settings,
        traits,
        grace_seconds=settings.grace_seconds,
        volumes=volumes.pair_volumes(settings),
        init_containers=[
            containers.seed_container(settings, traits),
            _initial_commit(settings),
            _recorder(settings, traits),
            *([_restore(settings)] if resumes else []),
        ],
        task=containers.task_container(
            settings,
            traits,
            [
                volumes.read(volumes.RUNNER),
                volumes.read(volumes.JOBS),
                volumes.write(volumes.OUT),
                volumes.write(volumes.WORKSPACE),
                volumes.write(volumes.HOME),
                volumes.read(volumes.SUITE),
            ],
            read_only_root=False,  # the agent installs what it needs; that is part of its work
        ),
    )


def _initial_commit(settings: PodSettings) -> containers.Container:
    return containers.evaluator_init(
        settings,
        containers.INITIAL_COMMIT,
        "stayer_evaluator.episode.initial_commit",
        [volumes.write(volumes.WORKSPACE)],
    )


def _restore(settings: PodSettings) -> containers.Container:
    return containers.evaluator_init(
        settings,
        containers.RESTORE,
        "stayer_evaluator.episode.restore",
        [
            volumes.read(volumes.STATE),
            volumes.write(volumes.WORKSPACE),
            volumes.write(volumes.HOME),
        ],
    )


def _recorder(settings: PodSettings, traits: Traits) -> containers.Container:
    recorder = containers.sidecar(
        settings,
        traits,
        containers.RECORDER,
        "stayer_evaluator.episode",
        [
            volumes.write(volumes.JOBS),
            volumes.read(volumes.OUT),
            volumes.read(volumes.WORKSPACE),
            volumes.read(volumes.HOME),
            volumes.write(volumes.STATE),
            volumes.write(volumes.SUITE),
            volumes.read(volumes.TOKEN),
        ],
        containers.READ_CAPABILITIES,
    )
    # Hooks run as soon as the pod is being stopped, while the sidecar itself gets its SIGTERM only
    # after the task container is gone: this is how the recorder learns of it in time.
    drain = {"httpGet": {"path": "/drain", "port": places.SIDECAR_PORT}}
    return {**recorder, "lifecycle": {"preStop": drain}}
