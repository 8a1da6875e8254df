"""A trial whose agent pries and plants a spy for the adjudicator; runs without user namespaces."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path
from typing import Any

import pytest
import zstandard

from makers_cluster import RUNS, Installed, describe, phase
from makers_outcome import Evidence, list_keys, read_evidence, read_object, restored
from makers_pods import UNITS, Addresses, Runs
from stayer_evaluator.records.outcomes import UnitState

pytestmark = pytest.mark.cluster

AGENT = 10001
FIRST_CANDIDATE = 20000
CONTROL = "/tmp/control"  # the probe's own file, which shows that it finds what is there


@pytest.fixture(scope="module")
def found(prying: Evidence, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What its probe wrote into the workspace, from the first snapshot that has it."""
    folder = tmp_path_factory.mktemp("prying")
    after_probe = next(entry for entry in prying.snapshots if entry.episode.step == 0)
    workspace = restored(prying, after_probe, folder)
    document: dict[str, Any] = json.loads((workspace / "probe.json").read_text())
    return document


@pytest.fixture(scope="module")
def confessed(prying: Evidence) -> list[dict[str, Any]]:
    """What the spy told in every run of the last snapshot's tests."""
    prefix = prying.document.prefix
    last = prying.verdicts[-1].number
    text = ""
    for key in list_keys(f"{prefix}logs/adjudication-{last:08d}-"):
        data = read_object(f"{prefix}logs/adjudication-{last:08d}-{key}")
        assert data is not None
        text += zstandard.ZstdDecompressor().decompressobj().decompress(data).decode()
    assert "PLANTED-WORKED" not in text
    told = re.findall(r"RuntimeError: PLANTED-FOUND (.*?) PLANTED-END", text)
    return [json.loads(entry) for entry in told]


class TestTheAgent:
    def test_it_is_nobody_in_particular(self, found: dict[str, Any]) -> None:
        assert found["uid"] == AGENT
        assert found["groups"] in ([], [AGENT])
        inside, outside, _ = found["uid_map"]
        assert inside == "0"
        assert int(outside) >= 65536

    def test_its_probe_looked_around(self, found: dict[str, Any]) -> None:
        assert found["files_read"] > 10
        assert "PATH" in found["variables"]
        assert any(path.endswith(".py") for path in found["suite"])

    def test_it_finds_no_token(self, found: dict[str, Any]) -> None:
        assert found["tokens"] == [CONTROL]
        assert [mount for mount in found["mounts"] if "secrets" in mount] == []

    def test_no_variable_holds_a_key_or_says_where_the_store_is(
        self, found: dict[str, Any]
    ) -> None:
        assert found["secret_variables"] == []
        assert [name for name in found["variables"] if name.startswith("STAYER_")] == []
        assert found["runner_environment"] is False

    def test_it_finds_no_gold_although_its_recorder_applies_it(
        self, found: dict[str, Any], prying: Evidence
    ) -> None:
        assert prying.document.grants == ("gold",)
        assert found["gold"] == [CONTROL]

    def test_it_reaches_nothing_but_our_two_services(
        self, found: dict[str, Any], addresses: Addresses
    ) -> None:
        connected = found["connected"]
        reached = {
            name
            for name, address in {**addresses.allowed, **addresses.forbidden}.items()
            if connected[address]
        }
        assert reached == set(addresses.allowed)

    def test_what_it_does_not_reach_answers_others(self, addresses: Addresses) -> None:
        for address in addresses.forbidden.values():
            host, _, port = address.rpartition(":")
            socket.create_connection((host, int(port)), timeout=5).close()

    def test_it_has_no_dns(self, found: dict[str, Any]) -> None:
        assert set(found["asked"].values()) == {False}
        assert set(found["resolved"].values()) == {False}

    def test_the_relay_gives_nothing_to_who_has_no_token(self, found: dict[str, Any]) -> None:
        assert list(found["answered"].values()) == [200, 401]

    def test_it_can_write_neither_tests_nor_jobs_nor_results(self, found: dict[str, Any]) -> None:
        assert len(found["written"]) == 8
        assert [path for path, written in found["written"].items() if written] == []
        assert found["listed"] == {"/stayer/jobs": False, "/stayer/out": False}


class TestTheCandidate:
    def test_units_clear_beside_a_spy_that_fails_them_if_anything_works(
        self, prying: Evidence
    ) -> None:
        planted = [column for column in prying.verdicts if not is_confession(prying, column)]
        assert set(UNITS) == {unit for column in planted for unit in column.cleared}
        assert [column for column in planted if column.regressions] == []

    def test_the_spy_was_there(self, prying: Evidence, confessed: list[dict[str, Any]]) -> None:
        last = prying.verdicts[-1]
        assert set(last.regressions) == set(UNITS)
        assert {last.results[u].state for u in UNITS} <= {UnitState.FAIL, UnitState.ERROR}
        assert len(confessed) >= len(UNITS)

    def test_it_tried_tests_results_jobs_and_token(
        self, confessed: list[dict[str, Any]], addresses: Addresses
    ) -> None:
        for told in confessed:
            tried = told["tried"]
            assert {"list /stayer/out", "list /stayer/jobs", "write /stayer/out/planted"} <= {
                *tried
            }
            assert any(re.match(r"write /tests/.*/test_.*\.py", name) for name in tried)
            assert any(re.match(r"change /tests/.*/test_.*\.py", name) for name in tried)
            assert "read /var/run/secrets/stayer/token" in tried
            for address in addresses.forbidden.values():
                assert f"connect {address}" in tried
            assert not [name for name in tried if name.startswith("found ")]

    def test_it_left_traces_that_no_later_one_found(
        self, prying: Evidence, confessed: list[dict[str, Any]]
    ) -> None:
        for told in confessed:
            assert told["uid"] >= FIRST_CANDIDATE
            assert {"/tmp", "/var/tmp", "/dev/shm"} <= {*told["left"]}

    def test_the_canaries_held_around_it(self, prying: Evidence) -> None:
        assert all(v.canaries and all(c.held for c in v.canaries) for v in prying.verdicts)
        assert prying.results.valid


def is_confession(evidence: Evidence, verdict: Any) -> bool:
    """Whether it is about the snapshot in which the spy tells."""
    return bool(verdict.snapshot == evidence.snapshots[-1].snapshot)


def test_an_open_network_has_dns_and_nothing_private_besides(
    runs: Runs, addresses: Addresses, tmp_path: Path
) -> None:
    runs.open.wait_for_end(180)
    trial = runs.open.only()
    assert phase(trial) == "Succeeded", describe(runs.open)
    evidence = read_evidence(trial["spec"]["prefix"])
    looked = restored(evidence, evidence.snapshots[-1], tmp_path)
    found = json.loads((looked / "probe.json").read_text())

    assert set(found["asked"].values()) == {True}
    assert found["resolved"]["kubernetes.default.svc.cluster.local"] is True
    every = {**addresses.allowed, **addresses.forbidden}
    reached = {name for name, address in every.items() if found["connected"][address]}
    assert reached == {*addresses.allowed, "cluster DNS over TCP"}


@pytest.mark.parametrize(
    ("setting", "has_own_users"), [("off", False), ("preferred", True)], ids=["off", "preferred"]
)
def test_user_namespaces_are_as_the_run_wants_and_recorded(
    runs: Runs, setting: str, has_own_users: bool
) -> None:
    run = getattr(runs, setting)

    run.wait_for_end(180)

    trial = run.only()
    assert phase(trial) == "Succeeded", describe(run)
    evidence = read_evidence(trial["spec"]["prefix"])
    recorded = {
        evidence.results.user_namespace,
        *(verdict.environment["user_namespace"] for verdict in evidence.verdicts),
    }
    assert len(recorded) == 1
    [value] = recorded
    assert (value != "host") is has_own_users
    assert not has_own_users or re.fullmatch(r"0 \d+ 65536", value)
    assert evidence.document.user_namespaces == setting
    assert all(c.held for v in evidence.verdicts for c in v.canaries)


def test_pods_fit_pod_security_baseline(installed: Installed, runs: Runs) -> None:
    namespace = installed.api.call("GET", f"/api/v1/namespaces/{RUNS}").json()
    label = "pod-security.kubernetes.io/enforce"
    assert namespace["metadata"]["labels"][label] == "baseline"
    # That label let all pods of these runs in, of both roles, with and without user namespaces.
    for run in (runs.prying, runs.off, runs.preferred):
        run.wait_for_end(180)
        trial = run.only()["status"]
        assert trial["agentPod"]
        assert trial["adjudicatorPod"]
