"""Pods as they are sent to the API server, compared with files that people read.

`STAYER_UPDATE_GOLDEN=1 pytest tests/unit/pods` writes the files anew; look at the difference.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from makers_trial import INVENTORY, INVENTORY_UID, make_identity, make_pod_settings, make_spec
from stayer_operator.core.pods.adjudicator import build_adjudicator_pod
from stayer_operator.core.pods.agent import build_agent_pod

GOLDEN = Path(__file__).parents[2] / "golden" / "pods"
BASELINE_CAPABILITIES = {
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD",
    "NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
}  # fmt: skip
TEMPLATES = {
    "agent": {
        "resources": {"limits": {"cpu": "4", "memory": "8Gi"}, "requests": {"cpu": "500m"}},
        "nodeSelector": {"pool": "trials"},
        "tolerations": [{"key": "trials", "operator": "Exists", "effect": "NoSchedule"}],
        "runtimeClassName": "gvisor",
    }
}


def agent() -> dict[str, Any]:
    return build_agent_pod(make_pod_settings(), make_identity(), make_spec(), 1)


def agent_open_network() -> dict[str, Any]:
    spec = make_spec(
        network="open",
        userNamespaces="off",
        podTemplates=TEMPLATES,
        images={"pullSecrets": ["registry"], "pullPolicy": "Always"},
    )
    settings = make_pod_settings(runner_delivery="init-copy", priority_class="trials")
    return build_agent_pod(settings, make_identity(), spec, 3)


def adjudicator() -> dict[str, Any]:
    return build_adjudicator_pod(make_pod_settings(), make_identity(), make_spec(), 2)


def inventory() -> dict[str, Any]:
    identity = make_identity(name=INVENTORY, uid=INVENTORY_UID)
    spec = make_spec(kind="inventory", agent=None, model=None, loopProfile=None)
    return build_adjudicator_pod(make_pod_settings(), identity, spec, 1)


CASES = [agent, agent_open_network, adjudicator, inventory]


class _Plain(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        return True


@pytest.mark.parametrize("build", CASES, ids=lambda build: build.__name__)
def test_pod_is_the_one_on_file(build: Callable[[], dict[str, Any]]) -> None:
    path = GOLDEN / f"{build.__name__}.yaml"

    text = yaml.dump(build(), Dumper=_Plain, sort_keys=False, width=100)

    if os.environ.get("STAYER_UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("build", CASES, ids=lambda build: build.__name__)
def test_pod_fits_pod_security_baseline(build: Callable[[], dict[str, Any]]) -> None:
    spec = build()["spec"]

    for container in [*spec["initContainers"], *spec["containers"]]:
        security = container["securityContext"]
        assert security["capabilities"]["drop"] == ["ALL"]
        assert set(security["capabilities"]["add"]) <= BASELINE_CAPABILITIES
        assert security["privileged"] is False
        assert security["allowPrivilegeEscalation"] is False
        assert {"cpu", "memory", "ephemeral-storage"} <= container["resources"]["limits"].keys()
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
    assert all("hostPath" not in volume for volume in spec["volumes"])


@pytest.mark.parametrize(("incarnation", "restores"), [(1, False), (2, True), (3, True)])
def test_only_a_successor_has_something_to_restore(incarnation: int, *, restores: bool) -> None:
    pod = build_agent_pod(make_pod_settings(), make_identity(), make_spec(), incarnation)

    inits = [container["name"] for container in pod["spec"]["initContainers"]]
    assert inits == ["seed", "initial-commit", "recorder", *(["restore"] if restores else [])]


@pytest.mark.parametrize("build", CASES, ids=lambda build: build.__name__)
def test_only_the_sidecar_sees_the_token(build: Callable[[], dict[str, Any]]) -> None:
    spec = build()["spec"]

    holders = {
        container["name"]
        for container in [*spec["initContainers"], *spec["containers"]]
        if any(mount["name"] == "token" for mount in container["volumeMounts"])
    }

    assert holders <= {"recorder", "adjudicator"}
    assert spec["automountServiceAccountToken"] is False


def test_preferred_user_namespaces_are_left_out_where_the_probe_found_none() -> None:
    spec = make_spec(userNamespaces="preferred")

    with_them = build_agent_pod(make_pod_settings(), make_identity(), spec, 1)
    without = build_agent_pod(
        make_pod_settings(user_namespaces_found=False), make_identity(), spec, 1
    )

    assert with_them["spec"]["hostUsers"] is False
    assert "hostUsers" not in without["spec"]


def sidecar_command(*program: str) -> list[str]:
    """A sidecar's command, running another program."""
    [sidecar] = [c for c in adjudicator()["spec"]["initContainers"] if c["name"] == "adjudicator"]
    command = sidecar["command"]
    return [*command[: command.index("python3")], *program]


@pytest.mark.parametrize("code", [0, 3, 5])
def test_a_sidecar_ends_with_its_programs_status(code: int) -> None:
    assert (
        subprocess.run(sidecar_command("sh", "-c", f"exit {code}"), check=False).returncode == code
    )


def test_a_sidecar_hears_sigterm_before_its_program_can() -> None:
    # As PID 1 of a PID namespace, where an unhandled signal is lost.
    apart = ["unshare", "--pid", "--fork", "--kill-child"]
    with subprocess.Popen([*apart, *sidecar_command("sleep", "60")]) as unshare:
        children = Path(f"/proc/{unshare.pid}/task/{unshare.pid}/children")
        while not (found := children.read_text().split()):
            time.sleep(0.001)
        grandchildren = Path(f"/proc/{found[0]}/task/{found[0]}/children")
        while not (program := grandchildren.read_text().split()):
            time.sleep(0.001)
        # Until then it is a copy of the shell, which may still hear the signal in its place.
        while Path(f"/proc/{program[0]}/comm").read_text() != "sleep\n":
            time.sleep(0.001)
        os.kill(int(found[0]), signal.SIGTERM)
        assert unshare.wait(10) == 143


def test_a_sidecar_waits_for_a_program_that_takes_its_time_to_stop() -> None:
    slow = "trap 'sleep 0.3; exit 7' TERM; echo ready; while :; do sleep 0.05; done"
    command = sidecar_command("sh", "-c", slow)
    with subprocess.Popen(command, stdout=subprocess.PIPE) as shell:
        assert shell.stdout is not None
        assert shell.stdout.readline() == b"ready\n"
        shell.terminate()
        assert shell.wait(10) == 7
