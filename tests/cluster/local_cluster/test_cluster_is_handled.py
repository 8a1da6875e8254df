"""`up` again changes nothing, and single parts come and go without harm to pods."""

from __future__ import annotations

import json
import time
import urllib.request
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from makers_local_cluster import LocalCluster, wait_until

pytestmark = pytest.mark.cluster

WARM_UP_SECONDS = 40


def processes(cluster: LocalCluster) -> dict[str, Any]:
    folder = Path(cluster.env["STAYER_CLUSTER_STATE"]) / "processes"
    return {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}


def infra_pods(cluster: LocalCluster) -> dict[str, int]:
    pods = cluster.get("pods", "--namespace", "local-infra")["items"]
    return {
        pod["metadata"]["uid"]: sum(c["restartCount"] for c in pod["status"]["containerStatuses"])
        for pod in pods
    }


def audit_events(cluster: LocalCluster) -> list[dict[str, Any]]:
    lines = Path(cluster.env["STAYER_AUDIT_LOG"]).read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_every_part_is_well(cluster: LocalCluster) -> None:
    result = cluster.run("status")

    assert result.returncode == 0, result.stdout


def test_up_a_second_time_changes_nothing_and_is_quick(cluster: LocalCluster) -> None:
    before, pods = processes(cluster), infra_pods(cluster)
    started = time.monotonic()

    result = cluster.run("up")

    assert result.returncode == 0, result.stderr
    assert time.monotonic() - started < WARM_UP_SECONDS
    assert processes(cluster) == before
    assert infra_pods(cluster) == pods


def test_pods_outlive_the_restart_of_what_runs_them(cluster: LocalCluster) -> None:
    cluster.start_pod("survivor", ["sleep", "600"])
    before = cluster.wait_until_ready("survivor")["status"]["containerStatuses"]
    pid = processes(cluster)["containerd"]["identity"]["pid"]

    for part in ("containerd", "kubelet", "scheduler"):
        result = cluster.run("restart", part)
        assert result.returncode == 0, result.stderr

    after = cluster.wait_until_ready("survivor")["status"]["containerStatuses"]
    assert processes(cluster)["containerd"]["identity"]["pid"] != pid
    assert after[0]["containerID"] == before[0]["containerID"]
    assert after[0]["restartCount"] == 0


def test_what_is_in_s3_outlives_its_server(cluster: LocalCluster) -> None:
    store = boto3.client(
        "s3",
        endpoint_url=cluster.env["STAYER_S3_ENDPOINT"],
        aws_access_key_id=cluster.env["STAYER_S3_ACCESS_KEY"],
        aws_secret_access_key=cluster.env["STAYER_S3_SECRET_KEY"],
        region_name="us-east-1",
        config=Config(signature_version="s3v4", s3={"addressing_style": "path"}),
    )
    place = {"Bucket": cluster.env["STAYER_S3_BUCKET"], "Key": f"{cluster.namespace}/survivor"}
    store.put_object(**place, Body=b"still here")

    result = cluster.run("restart", "s3")

    assert result.returncode == 0, result.stderr
    assert store.get_object(**place)["Body"].read() == b"still here"
    store.delete_object(**place)


def test_prometheus_finds_a_pod_by_its_annotations(cluster: LocalCluster) -> None:
    script = (
        "import http.server\n"
        "class Metrics(http.server.BaseHTTPRequestHandler):\n"
        "    def do_GET(self):\n"
        "        self.send_response(200 if self.path == '/numbers' else 404)\n"
        "        self.end_headers()\n"
        "        self.wfile.write(b'answer 42\\n')\n"
        "http.server.HTTPServer(('', 9000), Metrics).serve_forever()\n"
    )
    annotations = {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": "9000",
        "prometheus.io/path": "/numbers",
    }
    cluster.start_pod("measured", ["python3", "-c", script], annotations=annotations)
    query = f'answer{{namespace="{cluster.namespace}",pod="measured"}}'.replace('"', "%22")
    url = f"{cluster.env['STAYER_PROMETHEUS_URL']}/api/v1/query?query={query}"

    def is_measured() -> bool:
        with urllib.request.urlopen(url, timeout=5) as response:
            found = json.load(response)["data"]["result"]
        return bool(found) and found[0]["value"][1] == "42"

    wait_until(is_measured, "the pod's number in Prometheus", 60)


def test_writes_can_be_counted_by_user_in_the_audit_log(cluster: LocalCluster) -> None:
    name = f"audited-{time.time_ns()}"

    cluster.kubectl("create", "configmap", name)

    def is_logged() -> bool:
        return any(
            event.get("objectRef", {}).get("name") == name
            and (event["verb"], event["user"]["username"]) == ("create", "admin")
            and event["responseStatus"]["code"] == 201
            for event in audit_events(cluster)
        )

    wait_until(is_logged, "the request in the audit log", 10)


def test_an_unknown_part_is_named_with_those_that_exist(cluster: LocalCluster) -> None:
    result = cluster.run("restart", "kublet")

    assert result.returncode == 1
    assert "kubelet" in result.stderr
    assert "Traceback" not in result.stderr
