"""What is rendered for the node's programs is what they can read, and asks for what we need."""

import json
import string
import tomllib
from pathlib import Path

import pytest

from local_cluster import registry, render
from local_cluster.certificates import CLIENTS, ensure_certificates, render_kubeconfig
from local_cluster.infra import (
    load_credentials,
    render_environment,
    render_forward,
    render_manifests,
    render_secret,
)
from local_cluster.s3 import Credentials
from local_cluster.settings import DNS_ADDRESS, SOURCE, Places, find_places

PLACES = Places(Path("/state dir"), Path("/cache"))
IMAGES = {name: f"127.0.0.1:5000/{name}:1" for name in ("coredns", "versitygw", "prometheus")}
IMAGES["pod_targets"] = "127.0.0.1:5000/pod-targets:1"


def test_containerd_keeps_to_its_own_directories() -> None:
    config = tomllib.loads(render.render_containerd(PLACES, Path("/cni"), "127.0.0.1:5000/pause:1"))

    runtime = config["plugins"]["io.containerd.cri.v1.runtime"]
    assert config["version"] == 3
    assert config["root"] == "/state dir/containerd"
    assert config["state"].startswith(f"{PLACES.run}/")
    assert runtime["restrict_oom_score_adj"] is True
    assert runtime["cni"] == {"bin_dirs": ["/cni"], "conf_dir": "/state dir/config/cni"}


def test_the_socket_of_containerd_fits_into_a_socket_address() -> None:
    deep = Places(Path("/x" * 200), Path("/cache"))

    assert len(str(deep.containerd_socket)) < 108


def test_two_state_directories_share_no_name_outside_of_them() -> None:
    other = Places(Path("/other"), Path("/cache"))

    assert other.run != PLACES.run
    assert json.loads(render.render_kubelet(other))["cgroupRoot"] == f"/{other.unique_name}"


def test_the_kubelet_trusts_nobody_without_a_name() -> None:
    config = json.loads(render.render_kubelet(PLACES))

    assert config["authentication"]["anonymous"] == {"enabled": False}
    assert config["authorization"] == {"mode": "Webhook"}
    assert config["clusterDNS"] == [DNS_ADDRESS]
    assert config["maxPods"] == 110


def test_a_container_that_crashes_is_soon_started_again() -> None:
    config = json.loads(render.render_kubelet(PLACES))

    # The field is refused where the gate is off, as it is by default before 1.35.
    assert config["featureGates"] == {"KubeletCrashLoopBackOffMax": True}
    assert config["crashLoopBackOff"] == {"maxContainerRestartPeriod": "1s"}


def test_the_audit_log_leaves_out_health_probes_only() -> None:
    first, *others = json.loads(render.render_audit_policy())["rules"]

    assert first == {"level": "None", "nonResourceURLs": ["/healthz*", "/livez*", "/readyz*"]}
    assert others == [{"level": "Metadata"}]


def test_the_pod_network_keeps_its_addresses_in_the_state_directory() -> None:
    bridge, _ = json.loads(render.render_cni(PLACES))["plugins"]

    assert bridge["ipam"]["dataDir"] == "/state dir/cni"
    assert bridge["isGateway"] is bridge["ipMasq"] is bridge["hairpinMode"] is True


def test_the_registry_listens_on_loopback_only() -> None:
    assert "addr: 127.0.0.1:5001\n" in registry.render_config(Path("/storage"), 5001)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param("nameserver 192.0.2.1\n", "forward . 192.0.2.1", id="one resolver"),
        pytest.param(
            "search x\nnameserver 192.0.2.1\nnameserver 192.0.2.2\n",
            "forward . 192.0.2.1 192.0.2.2",
            id="two resolvers",
        ),
        pytest.param("nameserver 127.0.0.53\n", "", id="only one on loopback, closed to pods"),
        pytest.param("# nothing\nnameserver\n", "", id="none at all"),
    ],
)
def test_dns_hands_on_to_resolvers_that_pods_can_reach(text: str, line: str) -> None:
    assert render_forward(text) == line


def test_no_placeholder_is_left_in_the_manifests() -> None:
    text = render_manifests(PLACES, IMAGES)

    left = [match for match in string.Template.pattern.findall(text) if match[1] or match[2]]
    assert left == []


def test_every_manifest_is_rendered() -> None:
    text = render_manifests(PLACES, IMAGES)

    for path in (SOURCE / "manifests").glob("*.yaml"):
        marker = path.read_text().splitlines()[-1].partition("$")[0]
        assert marker in text


def test_the_s3_account_goes_into_the_secret_encoded() -> None:
    secret = json.loads(render_secret(Credentials("key", "secret")))

    assert secret["data"] == {"ROOT_ACCESS_KEY": "a2V5", "ROOT_SECRET_KEY": "c2VjcmV0"}


def test_credentials_are_made_once_for_each_state_directory(tmp_path: Path) -> None:
    one, other = (Places(tmp_path / name, tmp_path) for name in ("one", "other"))

    assert load_credentials(one) == load_credentials(one)
    assert load_credentials(one) != load_credentials(other)
    assert (one.state / "s3-credentials.json").stat().st_mode & 0o077 == 0


def test_the_environment_is_one_line_a_variable() -> None:
    assert render_environment({"A": "1", "B": "x=y"}) == "A=1\nB=x=y\n"


@pytest.mark.parametrize(
    ("option", "environ", "expected"),
    [
        pytest.param("/a", {"STAYER_CLUSTER_STATE": "/b"}, "/a", id="the option wins"),
        pytest.param(None, {"STAYER_CLUSTER_STATE": "/b"}, "/b", id="then the environment"),
        pytest.param(None, {"HOME": "/h"}, "/h/.local/state/stayer/cluster", id="then the default"),
    ],
)
def test_where_the_state_is(option: str | None, environ: dict[str, str], expected: str) -> None:
    assert find_places(option, environ).state == Path(expected)


def write_keys(folder: Path) -> None:
    folder.mkdir(parents=True)
    for name in ("ca", *(subject.file for subject in CLIENTS)):
        for suffix in (".crt", ".key"):
            (folder / (name + suffix)).write_text(name)


def test_only_the_administrator_speaks_of_the_runs_namespace_by_default(tmp_path: Path) -> None:
    write_keys(tmp_path / "pki")

    found = {
        subject.file: json.loads(render_kubeconfig(tmp_path / "pki", subject.file))["contexts"][0]
        for subject in CLIENTS
    }

    named = {file for file, context in found.items() if "namespace" in context["context"]}
    assert named == {"admin"}
    assert found["admin"]["context"]["namespace"] == "stayer-runs"


def test_the_kubeconfig_of_an_older_cluster_is_brought_up_to_date(tmp_path: Path) -> None:
    places = Places(tmp_path / "state", tmp_path / "cache")
    write_keys(places.certificates)
    places.kubeconfig.write_text("{}")

    ensure_certificates(places)
    written = places.kubeconfig.stat().st_ino
    ensure_certificates(places)

    assert json.loads(places.kubeconfig.read_text())["contexts"][0]["context"]["namespace"]
    assert places.kubeconfig.stat().st_mode & 0o777 == 0o600
    assert places.kubeconfig.stat().st_ino == written
