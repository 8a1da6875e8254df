"""Pods have what the product needs: user namespaces, image volumes, DNS and S3."""

from __future__ import annotations

import pytest

from makers_local_cluster import LocalCluster

pytestmark = pytest.mark.cluster


def test_the_node_is_ready(cluster: LocalCluster) -> None:
    node = cluster.get("node", cluster.env["STAYER_NODE"])

    conditions = {entry["type"]: entry["status"] for entry in node["status"]["conditions"]}
    assert conditions["Ready"] == "True"
    assert conditions["DiskPressure"] == "False"


def test_root_of_a_pod_with_its_own_users_is_nobody_outside(cluster: LocalCluster) -> None:
    script = "cat /proc/self/uid_map; touch /scratch/mine; stat -c %u /scratch/mine"
    pod = cluster.start_pod(
        "own-users",
        ["sh", "-c", script],
        container={"volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}]},
        spec={"hostUsers": False, "volumes": [{"name": "scratch", "emptyDir": {}}]},
    )

    mapping, owner = cluster.output_of(pod).splitlines()

    inside, outside, count = map(int, mapping.split())
    assert inside == 0
    assert outside >= 65536
    assert count == 65536
    assert owner == "0"


@pytest.mark.image_volumes
@pytest.mark.parametrize("host_users", [True, False], ids=["machine's users", "own users"])
def test_a_program_of_an_image_volume_runs_as_first_process(
    cluster: LocalCluster, host_users: bool
) -> None:
    deployment = cluster.get("deployment", "dns", "--namespace", "local-infra")
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    image = {"reference": container["image"], "pullPolicy": "IfNotPresent"}
    pod = cluster.start_pod(
        f"image-volume-{host_users}".lower(),
        ["/stayer/coredns", "-version"],
        container={"volumeMounts": [{"name": "programs", "mountPath": "/stayer"}]},
        spec={"hostUsers": host_users, "volumes": [{"name": "programs", "image": image}]},
    )

    assert "CoreDNS-" in cluster.output_of(pod)


def test_a_pod_finds_the_s3_server_by_name(cluster: LocalCluster) -> None:
    script = (
        "import urllib.request;"
        "print(urllib.request.urlopen('http://s3.local-infra:7070/healthz', timeout=10).status)"
    )
    pod = cluster.start_pod("s3-by-name", ["python3", "-c", script])

    assert cluster.output_of(pod).strip() == "200"


@pytest.mark.parametrize(
    ("image", "command"),
    [
        ("debian-python", ["git", "--version"]),
        ("debian-task", ["python3", "-m", "pytest", "--version"]),
        ("debian-node", ["node", "--version"]),
    ],
)
def test_a_base_image_holds_its_programs(
    cluster: LocalCluster, image: str, command: list[str]
) -> None:
    pod = cluster.start_pod(f"base-{image}", command, container={"image": cluster.image(image)})

    assert cluster.output_of(pod)
