"""The containers of the pair: task container, sidecar, and the init containers between them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from stayer_evaluator.records import places
from stayer_evaluator.records.outcomes import Role
from stayer_operator.core.pods import volumes
from stayer_operator.core.pods.quantities import merge_resources
from stayer_operator.core.pods.settings import PodSettings
from stayer_operator.core.pods.traits import Traits
from stayer_operator.core.pods.volumes import Mount
from stayer_operator.core.trial.spec import TrialSpec

Container = dict[str, Any]

TASK = "task"
SEED = "seed"
INITIAL_COMMIT = "initial-commit"
RESTORE = "restore"
RECORDER = "recorder"
ADJUDICATOR = "adjudicator"
COPY_RUNNER = "copy-runner"
SIDECARS = (RECORDER, ADJUDICATOR)

OF_THE_TASK = "(of the task)"  # in place of the image, where trials of a run differ in it

# The runner becomes other users, ends their processes, wipes what they leave (a sticky directory
# needs FOWNER). All are in Pod Security's baseline.
RUNNER_CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID")
# A PID 1 is deaf to signals that it has no handler for, and Python needs a second for its own; the
# kubelet sends SIGTERM once and then waits for the whole grace, even where a shorter one is asked
# for meanwhile (SyncTerminatingPod ignores its context, Kubernetes 1.34 to 1.37). So a shell goes
# first: it hears SIGTERM at once, and its child dies of it by default.
HEAR_SIGTERM = """\
trap 'stopped=1; kill -TERM $child 2>/dev/null' TERM
"$@" & child=$!
[ -z "$stopped" ] || kill -TERM $child
wait $child; code=$?
while kill -0 $child 2>/dev/null; do wait $child; code=$?; done
exit $code
"""
FILE_CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER")
READ_CAPABILITIES = ("DAC_OVERRIDE",)


def task_container(
    settings: PodSettings, traits: Traits, mounts: Sequence[Mount], *, read_only_root: bool
) -> Container:
    """The untrusted one: the task's image under our runner as PID 1."""
    return {
        "name": TASK,
        "image": OF_THE_TASK,
        "imagePullPolicy": traits.pull_policy,
        "command": [places.RUNNER, "serve"],
        "workingDir": "/",
        "resources": task_resources(settings, traits),
        "securityContext": _security(RUNNER_CAPABILITIES, read_only_root=read_only_root),
        "volumeMounts": list(mounts),
    }


def task_resources(settings: PodSettings, traits: Traits) -> dict[str, dict[str, str]]:
    """Requests and limits of the task container: the run's template over our defaults."""
    wanted = traits.read_template().get("resources") or {}
    return merge_resources(settings.task_resources, wanted)


def seed_container(settings: PodSettings, traits: Traits) -> Container:
    """Copies the image's /workspace into the shared volume."""
    seed = [places.RUNNER, "seed", "--from", places.WORKSPACE, "--to", places.SEED]
    return {
        "name": SEED,
        "image": OF_THE_TASK,
        "imagePullPolicy": traits.pull_policy,
        "command": [*seed, "--uid", str(places.AGENT_UID)],
        "workingDir": "/",
        "resources": settings.sidecar_resources,
        "securityContext": _security(FILE_CAPABILITIES, read_only_root=True),
        "volumeMounts": [
            volumes.read(volumes.RUNNER),
            volumes.write(volumes.WORKSPACE, places.SEED),
        ],
    }


def copy_runner_container(settings: PodSettings) -> Container:
    """Puts the runner into its volume where image volumes do not work."""
    return {
        "name": COPY_RUNNER,
        "image": settings.runner_image,
        "imagePullPolicy": settings.our_pull_policy,
        "command": ["/runner", "copy-self", places.BIN],
        "resources": settings.sidecar_resources,
        "securityContext": _security(("DAC_OVERRIDE",), read_only_root=True),
        "volumeMounts": [volumes.write(volumes.RUNNER)],
    }


def evaluator_init(
    settings: PodSettings, name: str, module: str, mounts: Sequence[Mount]
) -> Container:
    """An init container of ours that runs one module to its end."""
    return {
        "name": name,
        "image": settings.evaluator_image,
        "imagePullPolicy": settings.our_pull_policy,
        "command": ["python3", "-m", module],
        "resources": settings.sidecar_resources,
        "securityContext": _security(FILE_CAPABILITIES, read_only_root=True),
        "volumeMounts": [*mounts, volumes.write(volumes.SCRATCH)],
    }


def sidecar(
    settings: PodSettings,
    traits: Traits,
    name: str,
    module: str,
    mounts: Sequence[Mount],
    capabilities: Sequence[str],
) -> Container:
    """A native sidecar: starts before the task container, whose start its probe gates."""
    return {
        "name": name,
        "image": settings.evaluator_image,
        "imagePullPolicy": settings.our_pull_policy,
        "command": ["/bin/sh", "-c", HEAR_SIGTERM, name, "python3", "-m", module],
        "restartPolicy": "Always",
        "env": _environment(_shared_environment(settings, traits)),
        "resources": settings.sidecar_resources,
        "securityContext": _security(capabilities, read_only_root=True),
        "startupProbe": {
            "httpGet": {"path": "/started", "port": places.SIDECAR_PORT},
            "periodSeconds": 1,
            "timeoutSeconds": 2,
            "failureThreshold": settings.start_seconds,
        },
        "terminationMessagePath": places.TERMINATION_LOG,
        "terminationMessagePolicy": "File",
        "volumeMounts": [*mounts, volumes.write(volumes.SCRATCH)],
    }


def _shared_environment(settings: PodSettings, traits: Traits) -> dict[str, str]:
    limits = task_resources(settings, traits)["limits"]
    return {
        places.ENV_RELAY_URL: settings.relay_url,
        places.ENV_PROGRESS_URL: settings.progress_url,
        places.ENV_MUST_FAIL: ",".join(settings.must_fail),
        places.ENV_LIMITS: json.dumps(limits, sort_keys=True, separators=(",", ":")),
    }


def own_environment(
    spec: TrialSpec, trial: str, role: Role, incarnation: int
) -> list[dict[str, str]]:
    """What the sidecar of this pod alone is told; everything else it reads from `trial.json`."""
    return _environment(
        {
            places.ENV_TRIAL: trial,
            places.ENV_PREFIX: spec.prefix,
            places.ENV_ROLE: role.value,
            places.ENV_INCARNATION: str(incarnation),
            places.ENV_TRIAL_SHA256: spec.document_sha256,
        }
    )


def own_container(
    shared: Container, spec: TrialSpec, environment: Sequence[dict[str, str]]
) -> Container:
    """The container in the pod of one trial."""
    if shared["image"] is OF_THE_TASK:
        return {**shared, "image": spec.image}
    if "env" in shared:
        return {**shared, "env": [*environment, *shared["env"]]}
    return shared


def _environment(variables: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in variables.items()]


def _security(capabilities: Sequence[str], *, read_only_root: bool) -> dict[str, Any]:
    return {
        "runAsUser": 0,
        "runAsGroup": 0,
        "privileged": False,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": read_only_root,
        "capabilities": {"drop": ["ALL"], "add": list(capabilities)},
    }
