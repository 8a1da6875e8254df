"""A recorder that was taken for dead comes back after its successor started."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from makers_chaos import WORKER, finish_with_evidence, pod_of, wait_for_snapshots
from makers_cluster import SYSTEM, Installed, Run, pods_path, run_manifest, until
from makers_faults import Audit
from makers_netns import outside, run_inside, run_python
from makers_outcome import (
    Outcome,
    outcome_of,
    queue_entries,
    read_objects,
)
from makers_taskset import TASKSET
from stayer_evaluator.records.queue import EpochEntry, SnapshotEntry
from stayer_evaluator.storage.layout import TrialKeys

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.usefixtures("together"),
    pytest.mark.timeout(400, func_only=True),
]

SCRIPT = Path(__file__).with_name("old_recorder.py")
FENCED = 3
PUT = """\
import sys, urllib.error, urllib.request
url, token, data = sys.argv[1:]
headers = {"Authorization": "Bearer " + open(token).read()}
request = urllib.request.Request(url, open(data, "rb").read(), headers, method="PUT")
try:
    print(urllib.request.urlopen(request, timeout=20).status)
except urllib.error.HTTPError as error:
    print(error.code)
"""


def test_it_is_fenced_and_changes_nothing(
    installed: Installed, calm: Outcome, tmp_path: Path
) -> None:
    audit = Audit()
    run = installed.apply(run_manifest([WORKER], taskset=TASKSET))
    wait_for_snapshots(run, 2)
    old = pod_of(run, "agent")["metadata"]
    (tmp_path / "token").write_text(token_of(installed, old))
    told = memory_of_the_old_one(installed, run, tmp_path)
    prefix = told["prefix"]

    installed.api.delete(pods_path(installed.namespace, old["name"]))
    until(lambda: 2 in incarnations(prefix), "an epoch of the successor", 120)
    with outside(installed.api, told["relay"]):
        before = read_objects(f"{prefix}queue/")
        asleep = run_python(SCRIPT, "append", str(tmp_path / "told.json"))
        restarted = run_python(SCRIPT, "record", str(tmp_path / "told.json"))
        answers = overwrite(told, before, tmp_path)
    after = read_objects(f"{prefix}queue/")

    assert asleep.returncode == FENCED, asleep.stderr
    assert restarted.returncode == FENCED, restarted.stderr
    said = json.loads((tmp_path / "termination-log").read_text())
    assert said["kind"] == "fenced"
    assert set(answers) == {"412"}, answers
    assert {key: data for key, data in after.items() if key in before} == before
    [evidence] = finish_with_evidence(run, audit)
    assert outcome_of(evidence) == calm
    assert [entry.writer.incarnation for entry in evidence.epochs] == [1, 2]


def incarnations(prefix: str) -> set[int]:
    """Whose epochs the queue has."""
    entries = queue_entries(prefix)
    return {entry.writer.incarnation for entry in entries if isinstance(entry, EpochEntry)}


def token_of(installed: Installed, pod: dict[str, Any]) -> str:
    """A token like the one that the kubelet projected into the pod."""
    path = f"/api/v1/namespaces/{installed.namespace}/serviceaccounts/stayer-trial/token"
    bound = {"apiVersion": "v1", "kind": "Pod", "name": pod["name"], "uid": pod["uid"]}
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"audiences": ["stayer"], "expirationSeconds": 3600, "boundObjectRef": bound},
    }
    return str(installed.api.post(path, request)["status"]["token"])


def memory_of_the_old_one(installed: Installed, run: Run, folder: Path) -> dict[str, Any]:
    """What it knows, for old_recorder.py."""
    trial = run.only()
    prefix = trial["spec"]["prefix"]
    entries = queue_entries(prefix)
    last = entries[-1]
    assert isinstance(last, SnapshotEntry)
    service = installed.api.find(f"/api/v1/namespaces/{SYSTEM}/services/stayer-relay")
    assert service is not None
    told = {
        "trial": trial["metadata"]["name"],
        "prefix": prefix,
        "sha256": trial["spec"]["document"]["sha256"],
        "relay": f"http://{service['spec']['clusterIP']}:8088",
        "nonce": last.writer.nonce,
        "last": last.model_dump(mode="json"),
        "next": len(entries),
        "folder": str(folder),
    }
    (folder / "told.json").write_text(json.dumps(told))
    return told


def overwrite(told: dict[str, Any], before: dict[str, bytes], folder: Path) -> list[str]:
    """Try to put other bytes over every entry that is there; the relay's answers."""
    (folder / "other").write_bytes(b"not what is there")
    answers = []
    for number in range(len(before)):
        url = f"{told['relay']}/v1/objects/{TrialKeys(told['prefix']).queue(number)}"
        put = [sys.executable, "-c", PUT, url, str(folder / "token"), str(folder / "other")]
        answers.append(run_inside(put).stdout.strip())
    return answers
