"""The CustomResourceDefinitions as documents."""

from typing import Any

from stayer_operator.api import names
from stayer_operator.api.immutability import root_rules
from stayer_operator.api.run import RunSpec
from stayer_operator.api.schema import structural_schema
from stayer_operator.api.status import RunStatus
from stayer_operator.api.trial import TrialSpec, TrialStatus

RUN_DESCRIPTION = (
    "A BenchmarkRun has coding agents work on a set of tasks, each in a pair of pods, and scores "
    "every state of their workspaces. Progress stands in its status, evidence and results in the "
    "object store."
)
TRIAL_DESCRIPTION = (
    "A Trial is one attempt of one cell of a BenchmarkRun, or the inventory of one of its tasks. "
    "The operator makes it; to end it, cancel or delete the run."
)


def _column(
    name: str, path: str, kind: str, description: str, *, wide: bool = False
) -> dict[str, Any]:
    column = {"name": name, "jsonPath": path, "type": kind, "description": description}
    return {**column, "priority": 1} if wide else column


_AGE = _column("Age", ".metadata.creationTimestamp", "date", "Time since creation.")

RUN_COLUMNS = (
    _column("Benchmark", ".spec.benchmark", "string", "The benchmark."),
    _column("Phase", ".status.phase", "string", "Where the run stands."),
    _column("Trials", ".status.trialsSummary", "string", "Attempts ended / all."),
    _column("Running", ".status.trials.active", "integer", "Attempts that hold pods."),
    _column("Resolved", ".status.resolvedRate", "string", "Share of the finished attempts."),
    _column("Regressions", ".status.regressions", "integer", "Regression events."),
    _AGE,
    _column(
        "Reason",
        '.status.conditions[?(@.type=="Progressing")].reason',
        "string",
        "Why trials run or wait.",
        wide=True,
    ),
)
TRIAL_COLUMNS = (
    _column("Run", ".spec.runName", "string", "The run."),
    _column("Task", ".spec.task.name", "string", "The task."),
    _column("Agent", ".spec.agent", "string", "The agent; empty for an inventory."),
    _column("Model", ".spec.model", "string", "The model."),
    _column("Phase", ".status.phase", "string", "Where the trial stands."),
    _column("Round", ".status.round", "integer", "Round of the outer loop."),
    _column("Units", ".status.unitsSummary", "string", "Units cleared / units with tests."),
    _column("Snapshots", ".status.snapshotsTaken", "integer", "Snapshots taken."),
    _column("Regressions", ".status.regressions", "integer", "Regression events."),
    _AGE,
    _column("Tokens-In", ".status.tokensInput", "integer", "Input tokens.", wide=True),
    _column("Tokens-Out", ".status.tokensOutput", "integer", "Output tokens.", wide=True),
    _column("Agent-Pod", ".status.agentPod", "string", "Newest agent pod.", wide=True),
    _column(
        "Adjudicator-Pod", ".status.adjudicatorPod", "string", "Newest adjudicator pod.", wide=True
    ),
    _column(
        "Failure-Mode", ".status.failureMode", "string", "How the agent's work ended.", wide=True
    ),
)


def run_crd() -> dict[str, Any]:
    """CustomResourceDefinition of BenchmarkRun."""
    spec = structural_schema(RunSpec) | {"description": "What is to be run."}
    status = structural_schema(RunStatus) | {"description": "What was observed of the run."}
    root = _root(RUN_DESCRIPTION, spec, status)
    root["x-kubernetes-validations"] = root_rules()
    singular, plural = names.RUN_SINGULAR, names.RUN_PLURAL
    return _crd(names.RUN_KIND, singular, plural, names.RUN_SHORT, root, RUN_COLUMNS)


def trial_crd() -> dict[str, Any]:
    """CustomResourceDefinition of Trial."""
    spec = structural_schema(TrialSpec) | {"description": "What the trial is."}
    status = structural_schema(TrialStatus) | {"description": "What was observed of the trial."}
    root = _root(TRIAL_DESCRIPTION, spec, status)
    singular, plural = names.TRIAL_SINGULAR, names.TRIAL_PLURAL
    return _crd(names.TRIAL_KIND, singular, plural, names.TRIAL_SHORT, root, TRIAL_COLUMNS)


def _root(description: str, spec: dict[str, Any], status: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "description": description,
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": "Always stayer.dev/v1alpha1."},
            "kind": {"type": "string", "description": "The kind of the object."},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": status,
        },
    }


def _crd(
    kind: str,
    singular: str,
    plural: str,
    short: str,
    root: dict[str, Any],
    columns: tuple[dict[str, Any], ...],
) -> dict[str, Any]:
    version = {
        "name": names.VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": root},
        "subresources": {"status": {}},
        "additionalPrinterColumns": list(columns),
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{names.GROUP}"},
        "spec": {
            "group": names.GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "singular": singular,
                "plural": plural,
                "shortNames": [short],
                "categories": [names.CATEGORY],
            },
            "versions": [version],
        },
    }
