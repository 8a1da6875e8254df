"""results.json of a run, from the trials' own results."""

from collections.abc import Mapping

from stayer_evaluator.records.outcomes import FailureMode
from stayer_evaluator.records.run_results import TrialLine
from stayer_evaluator.scoring.run import summarize
from stayer_operator.api.run import RunSpec
from stayer_operator.core.run.assess import Assessment, attempt_key
from stayer_operator.core.run.cells import AttemptKey
from stayer_operator.core.run.census import Census
from stayer_operator.core.run.expand import NO_MODEL
from stayer_operator.core.run.view import TrialScore, TrialSummary

MISSING = "Missing"  # phase of an attempt that never had a Trial


def run_report(
    assessment: Assessment, spec: RunSpec, census: Census, scores: Mapping[str, TrialScore]
) -> bytes:
    """The report. Every scheduled attempt has a line: what has no result is not resolved
    (evaluation.md §7).
    """
    run = assessment.run
    planned = {key for cell in assessment.cells for key in cell.keys()}  # noqa: SIM118
    current = {attempt_key(trial): trial for trial in census.current}
    keys = sorted(planned | current.keys())
    lines = [_line(key, current.get(key), scores) for key in keys]
    return summarize(
        namespace=run.namespace,
        run=run.name,
        run_uid=run.uid,
        benchmark=spec.benchmark,
        test_visibility=spec.test_visibility,
        network=spec.network,
        trials=lines,
    ).to_bytes()


def _line(
    key: AttemptKey, trial: TrialSummary | None, scores: Mapping[str, TrialScore]
) -> TrialLine:
    score = scores.get(trial.name, _unscored(trial)) if trial is not None else _unscored(None)
    return TrialLine(
        trial=trial.name if trial is not None else "",
        task=key.task,
        agent=key.agent,
        model=None if key.model == NO_MODEL else key.model,
        loop=key.loop,
        attempt=key.attempt,
        phase=trial.phase.value if trial is not None else MISSING,
        **score._asdict(),
    )


def _unscored(trial: TrialSummary | None) -> TrialScore:
    return TrialScore(
        valid=False,
        failure_mode=_failure_mode(trial),
        metrics=None,
        snapshots_taken=0,
        snapshots_adjudicated=0,
        canaries_run=0,
        infra_restarts=0,
        seconds=None,
    )


def _failure_mode(trial: TrialSummary | None) -> FailureMode:
    if trial is None:
        return FailureMode.CANCELLED
    try:
        return FailureMode(trial.failure_mode or FailureMode.INFRA_ERROR)
    except ValueError:
        return FailureMode.INFRA_ERROR
