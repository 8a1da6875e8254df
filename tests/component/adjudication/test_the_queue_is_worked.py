"""The worker over a real queue in memory; the runner is in memory too."""

from __future__ import annotations

import asyncio
from pathlib import Path

import orjson
import pytest
import zstandard

from makers_queue import AGENT, PREFIX, Trial, of_type, passing
from stayer_evaluator.adjudication.bench import BenchStopped
from stayer_evaluator.adjudication.session import run_session
from stayer_evaluator.adjudication.worker import Clock
from stayer_evaluator.episode.jobs import RunnerLost
from stayer_evaluator.records.outcomes import FailureMode
from stayer_evaluator.records.results import TrialResults
from stayer_evaluator.records.trial import SnapshotSettings, Timeouts
from stayer_evaluator.storage.layout import TrialKeys
from stayer_evaluator.storage.memory import CrashingStore, StoreKilled
from stayer_evaluator.storage.queue import QueueWriter

STORY = [
    passing("a"),
    passing("a", "b"),
    passing("b", a="fail"),
    passing("a", "b"),
    passing("a", "b", "c"),
]
COLUMNS = ["fSf", "pff", "ppf", "fpf", "ppf", "ppp"]


def trial(root: Path, story: list[dict[str, str]] = STORY, **options: object) -> Trial:
    made = Trial(root, **options)  # type: ignore[arg-type]
    asyncio.run(made.queue(story))
    return made


def trace(made: Trial) -> list[dict[str, object]]:
    data = zstandard.ZstdDecompressor().decompress(made.store.objects[f"{PREFIX}trace.jsonl.zst"])
    return [orjson.loads(line) for line in data.splitlines()]


def test_every_snapshot_in_order_with_its_events(tmp_path: Path) -> None:
    made = trial(tmp_path)
    outcome = made.adjudicate()
    metrics = outcome.results.metrics
    assert made.states() == COLUMNS
    assert [v.cleared for v in made.verdicts()] == [(), ("a",), ("b",), (), (), ("c",)]
    assert metrics is not None
    assert (metrics.resolved, metrics.reg_events, metrics.recoveries) == (True, 1, 1)
    assert metrics.sigma == ("a", "b", "c")
    assert (metrics.tpr, metrics.tpr_ungated) == (1.0, 1.0)
    assert outcome.results.canaries_run == 4 * len(COLUMNS)
    assert outcome.results.canaries_failed == 0


def test_the_last_verdict_knows_that_it_is_the_last(tmp_path: Path) -> None:
    made = trial(tmp_path)
    made.adjudicate()
    *earlier, final = made.verdicts()
    assert final.last
    assert set(final.suite) == {"a", "b", "c"}
    assert not any(verdict.last or verdict.suite for verdict in earlier)
    assert [v.trigger for v in made.verdicts()] == ["first", *["every"] * 4, "last"]


def test_sealed_units_are_run_for_the_ungated_rate_alone(tmp_path: Path) -> None:
    made = trial(tmp_path, [passing("b")])
    metrics = made.adjudicate().results.metrics
    assert metrics is not None
    assert made.states()[-1] == "fSf"
    # a and c have one passing case of two each; b passes both, but is sealed.
    assert (metrics.cases_passed, metrics.tpr_ungated) == (2, 4 / 6)


def test_candidates_have_uids_of_their_own_and_an_environment_of_ours(tmp_path: Path) -> None:
    made = trial(tmp_path, [passing("a")])
    made.adjudicate()
    runs = [job for job in made.runner.jobs if job.kind == "exec"]
    assert {job.uid for job in runs} == {20000, 20001}
    assert {job.gid for job in runs} == {20000, 20001}
    assert set(runs[0].env) == {
        "HOME", "PATH", "LANG", "TZ", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "REPO_DIR",
        "REPO_DIR_OVERRIDE", "TEST_DIR", "UNIT_TEST_DIR",
    }  # fmt: skip
    assert all(not job.inherit for job in runs)


def test_the_workspace_belongs_to_the_candidate_and_canaries_leave_nothing(tmp_path: Path) -> None:
    made = trial(tmp_path, [passing("a")])
    made.adjudicate()
    assert (made.places.workspace / "a").stat().st_uid == 20001
    assert made.places.home.stat().st_uid == 20001
    assert sorted(p.name for p in made.places.suite.iterdir()) == [".stayer", "a", "b", "c"]


def test_the_threshold_leaves_small_changes_out(tmp_path: Path) -> None:
    lines = ["x\n" * 4, "x\n" * 9, "x\n" * 10, "x\n" * 14, "x\n" * 15]
    story = [{**passing("a"), "code": text} for text in lines]
    made = trial(tmp_path, story, settings=SnapshotSettings(min_diff_lines=5), gold_lines=6)
    made.adjudicate()
    verdicts = made.verdicts()
    assert [(v.snapshot, v.diff_lines, v.threshold, v.trigger) for v in verdicts] == [
        (0, 0, 6, "first"), (2, 10, 6, "threshold"), (5, 16, 6, "last"),
    ]  # fmt: skip


def test_coalescing_takes_the_newest_and_counts_the_rest(tmp_path: Path) -> None:
    made = trial(tmp_path, settings=SnapshotSettings(every_snapshot=True, coalesce=True))
    results = made.adjudicate().results
    assert [v.snapshot for v in made.verdicts()] == [0, 5]
    assert results.snapshots_coalesced == 4
    assert len(of_type(trace(made), "snapshot_coalesced")) == 4


def test_past_the_drain_limit_the_last_snapshot_is_still_adjudicated(tmp_path: Path) -> None:
    made = trial(tmp_path, timeouts=Timeouts(drain_seconds=10))
    ticks = iter(range(0, 1000, 4))
    clock = Clock(wall=lambda: 1.0, steady=lambda: float(next(ticks)))
    asyncio.run(run_session(made.session(clock=clock)))
    verdicts = made.verdicts()
    assert verdicts[-1].last
    assert 2 <= len(verdicts) < len(COLUMNS)
    assert verdicts[-1].coalesced


def test_it_follows_a_queue_that_still_grows(tmp_path: Path) -> None:
    made = Trial(tmp_path)

    async def both() -> None:
        working = asyncio.create_task(run_session(made.session()))
        await made.queue(STORY[:2], end=False)
        while len(made.verdicts()) < 2:  # noqa: ASYNC110 (a store has no event to wait for)
            await asyncio.sleep(0.005)
        assert made.verdicts()[-1].snapshot == 1  # the newest waits for its successor
        await made.queue(STORY[2:])
        await working

    asyncio.run(asyncio.wait_for(both(), 60))
    assert made.states() == COLUMNS


class TestTheTrace:
    def test_tells_the_story_in_order(self, tmp_path: Path) -> None:
        made = trial(tmp_path)
        made.adjudicate()
        told = [(e["type"], e["data"].get("unit")) for e in trace(made)]  # type: ignore[attr-defined]
        assert [entry for entry in told if entry[0] != "checkpoint"] == [
            ("unit_released", "a"), ("unit_released", "c"), ("unit_released", "b"),
            ("unit_cleared", "a"), ("unit_cleared", "b"), ("regression", "a"), ("recovery", "a"),
            ("unit_cleared", "c"), ("trial_finished", None),
        ]  # fmt: skip

    def test_is_whole_when_its_first_writer_died(self, tmp_path: Path) -> None:
        calm, hurt = trial(tmp_path / "calm"), trial(tmp_path / "hurt")
        calm.adjudicate()
        with pytest.raises(StoreKilled):
            # After the third verdict, before its events.
            hurt.adjudicate("n1", CrashingStore(hurt.store, 8, after=True))
        hurt.adjudicate("n2")
        assert [(e["type"], e["snapshot"]) for e in trace(hurt)] == [
            (e["type"], e["snapshot"]) for e in trace(calm)
        ]

    def test_carries_every_metric(self, tmp_path: Path) -> None:
        made = trial(tmp_path)
        results = made.adjudicate().results
        told = of_type(trace(made), "trial_finished")[0]["data"]["results"]  # type: ignore[index]
        assert TrialResults.model_validate(told) == results


@pytest.mark.parametrize("after", [False, True], ids=["before the write", "after it"])
def test_killed_at_any_write_its_successor_ends_the_trial_alike(
    tmp_path: Path, after: bool
) -> None:
    calm = trial(tmp_path / "calm")
    expected = calm.adjudicate().results
    writes, crash = calm.store.writes, 1
    while True:
        root = tmp_path / f"crash-{crash}"
        made = trial(root)
        try:
            made.adjudicate("n1", CrashingStore(made.store, crash, after=after))
        except StoreKilled:
            crash += 1
            assert crash <= writes
        else:
            break
        assert made.adjudicate("n2").results.metrics == expected.metrics
        assert made.states() == COLUMNS
    assert crash > 2 * len(COLUMNS)


def test_of_two_adjudicators_one_verdict_counts(tmp_path: Path) -> None:
    made = trial(tmp_path / "one")
    other = Trial(tmp_path / "two", store=made.store)

    async def both() -> list[TrialResults]:
        sessions = (made.session("n1"), other.session("n2"))
        outcomes = await asyncio.gather(*(run_session(session) for session in sessions))
        return [outcome.results for outcome in outcomes]

    one, two = asyncio.run(both())
    assert one == two
    assert {v.writer.nonce for v in made.verdicts()} <= {"n1", "n2"}
    assert len(made.verdicts()) == len(COLUMNS)


def test_a_finished_trial_is_not_done_again(tmp_path: Path) -> None:
    made = trial(tmp_path)
    first = made.adjudicate().results
    jobs, writes = len(made.runner.jobs), made.store.writes
    assert made.adjudicate("n2").results == first
    assert (len(made.runner.jobs), made.store.writes) == (jobs, writes)


class TestCanaries:
    def test_one_failure_repeats_the_sitting(self, tmp_path: Path) -> None:
        made = trial(tmp_path)
        made.runner.broken_canaries = 1
        results = made.adjudicate().results
        assert made.states() == COLUMNS
        assert (results.valid, results.canaries_failed) == (True, 1)

    def test_two_failures_make_the_snapshot_invalid_and_the_queue_goes_on(
        self, tmp_path: Path
    ) -> None:
        made = trial(tmp_path)
        made.runner.broken_canaries = 2
        results = made.adjudicate().results
        assert made.states() == ["!S!", *COLUMNS[1:]]
        assert results.valid
        assert results.metrics is not None
        assert results.metrics.reg_events == 1

    def test_a_candidate_that_breaks_them_ends_as_no_result(self, tmp_path: Path) -> None:
        made = trial(tmp_path, [passing("a"), passing("a", c="lie")])
        results = made.adjudicate().results
        assert made.states() == ["fSf", "pff", "!!!"]
        assert (results.valid, results.failure_mode) == (False, FailureMode.INFRA_ERROR)
        assert results.metrics is None
        assert "no believable result for 3 units (canary)" in results.message


class TestAGraderThatIsLost:
    def test_twice_on_one_snapshot_is_given_up_and_the_queue_goes_on(self, tmp_path: Path) -> None:
        made = trial(tmp_path, [passing("a"), passing("a", c="kill"), *STORY[1:]])
        for nonce in ("n1", "n2"):
            with pytest.raises(RunnerLost):
                made.adjudicate(nonce)
        results = made.adjudicate("n3").results
        assert made.states() == ["fSf", "pff", "!!!", *COLUMNS[2:]]
        lost = made.verdicts()[2]
        assert lost.grader_lost
        assert lost.canaries == ()
        assert results.valid
        assert results.metrics is not None
        assert (results.metrics.reg_events, results.metrics.recoveries) == (1, 1)

    def test_at_the_last_snapshot_there_is_no_result(self, tmp_path: Path) -> None:
        made = trial(tmp_path, [passing("a"), passing("a", c="kill")])
        for nonce in ("n1", "n2"):
            with pytest.raises(RunnerLost):
                made.adjudicate(nonce)
        results = made.adjudicate("n3").results
        assert (results.valid, results.failure_mode) == (False, FailureMode.INFRA_ERROR)

    def test_a_stopped_pod_is_not_held_against_the_snapshot(self, tmp_path: Path) -> None:
        made = trial(tmp_path, [passing("a", c="stop"), passing("a", "c")])
        for nonce in ("n1", "n2", "n3"):
            with pytest.raises(BenchStopped):
                made.adjudicate(nonce)
        with pytest.raises(BenchStopped):
            made.adjudicate("n4")
        assert made.states() == ["fSf"]


class TestLimitsOfTheCandidate:
    @pytest.mark.parametrize(("does", "mark"), [("hang", "T"), ("oom", "E")])
    def test_are_its_own(self, tmp_path: Path, does: str, mark: str) -> None:
        made = trial(tmp_path, [passing("a"), passing(a=does), passing("a")])
        metrics = made.adjudicate().results.metrics
        assert made.states() == ["fSf", "pff", f"{mark}ff", "pff"]
        assert metrics is not None
        assert (metrics.reg_events, metrics.recoveries) == (1, 1)

    def test_a_hanging_test_at_the_end_names_the_failure(self, tmp_path: Path) -> None:
        results = trial(tmp_path, [passing(a="hang")]).adjudicate().results
        assert results.failure_mode == FailureMode.TEST_TIMEOUT
        assert results.valid


def test_an_episode_that_failed_keeps_its_mode_and_its_score(tmp_path: Path) -> None:
    made = Trial(tmp_path)
    asyncio.run(made.queue([passing("a")], mode=FailureMode.AGENT_TIMEOUT))
    results = made.adjudicate().results
    assert (results.valid, results.failure_mode) == (True, FailureMode.AGENT_TIMEOUT)
    assert results.metrics is not None


@pytest.mark.parametrize("mode", [FailureMode.INFRA_ERROR, FailureMode.CANCELLED])
def test_an_episode_that_infrastructure_ended_has_no_score(
    tmp_path: Path, mode: FailureMode
) -> None:
    made = Trial(tmp_path)
    asyncio.run(made.queue([passing("a")], mode=mode))
    results = made.adjudicate().results
    assert (results.valid, results.failure_mode, results.metrics) == (False, mode, None)


def test_an_episode_without_any_snapshot_has_no_score(tmp_path: Path) -> None:
    made = Trial(tmp_path)

    async def only_an_end() -> None:
        queue = await QueueWriter.begin(made.store, TrialKeys(PREFIX), AGENT, 1.0)
        await made.end(queue)

    asyncio.run(only_an_end())
    results = made.adjudicate().results
    assert (results.valid, results.message) == (False, "no snapshot was taken")


def test_progress_is_told_after_every_verdict(tmp_path: Path) -> None:
    made = trial(tmp_path)
    made.adjudicate()
    report = made.progress.current()
    assert (report.snapshots_adjudicated, report.queue_depth) == (6, 0)
    assert (report.units_cleared, report.units_total) == (3, 3)
    assert (report.regressions, report.recoveries) == (1, 1)


def test_logs_of_what_did_not_pass_are_kept_for_people(tmp_path: Path) -> None:
    made = trial(tmp_path, [passing("a")])
    made.adjudicate()
    logs = [key for key in made.store.objects if "/logs/adjudication-" in key]
    assert len(logs) == 2
    text = zstandard.ZstdDecompressor().decompress(made.store.objects[logs[0]])
    assert b"=== a ===" in text
