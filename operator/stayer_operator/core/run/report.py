"""results.json of a run, from the trials' own results."""

from collections.abc import Mapping

from stayer_evaluator.records.outcomes import FailureMode
from stayer_evaluator.records.results import TrialResults
from stayer_evaluator.records.run_results import TrialLine
from stayer_evaluator.scoring.run import summarize
from stayer_operator.api.run import RunSpec
from stayer_operator.core.run.assess import Assessment, attempt_key
from stayer_operator.core.run.cells import AttemptKey
from stayer_operator.core.run.census import Census
from stayer_operator.core.run.expand import NO_MODEL
from stayer_operator.core.run.view import TrialSummary

MISSING = "Missing"  # phase of an attempt that never had a Trial


def run_report(
    assessment: Assessment, spec: RunSpec, census: Census, results: Mapping[str, TrialResults]
) -> bytes:
    """The report. Every scheduled attempt has a line: what has no result is not resolved
    (evaluation.md §7).
    """
    run = assessment.run
    planned = {key for cell in assessment.cells for key in cell.keys()}  # noqa: SIM118
    current = {attempt_key(trial): trial for trial in census.current}
    keys = sorted(planned | current.keys())
    lines = [_line(key, current.get(key), results) for key in keys]
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
    key: AttemptKey, trial: TrialSummary | None, results: Mapping[str, TrialResults]
) -> TrialLine:
    result = results.get(trial.name) if trial is not None else None
    line = TrialLine(
        trial=trial.name if trial is not None else "",
        task=key.task,
        agent=key.agent,
        model=None if key.model == NO_MODEL else key.model,
        loop=key.loop,
        attempt=key.attempt,
        phase=trial.phase.value if trial is not None else MISSING,
        valid=False,
        failure_mode=_failure_mode(trial),
        metrics=None,
    )
    return line if result is None else line.model_copy(update=_scores(result))


def _scores(result: TrialResults) -> dict[str, object]:
    timed = result.started is not None and result.ended is not None
    return {
        "valid": result.valid,
        "failure_mode": result.failure_mode,
        "metrics": result.metrics,
        "snapshots_taken": result.snapshots_taken,
        "snapshots_adjudicated": result.snapshots_adjudicated,
        "canaries_run": result.canaries_run,
        "infra_restarts": result.infra_restarts,
        "seconds": (result.ended or 0) - (result.started or 0) if timed else None,
    }


def _failure_mode(trial: TrialSummary | None) -> FailureMode:
    if trial is None:
        return FailureMode.CANCELLED
    try:
        return FailureMode(trial.failure_mode or FailureMode.INFRA_ERROR)
    except ValueError:
        return FailureMode.INFRA_ERROR
