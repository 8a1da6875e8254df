"""Who may create and read what: the relay's policy, row by row."""

from __future__ import annotations

import pytest

from makers_relay import AGENT_PREFIX, DIGEST, NAMESPACE, TRIAL, make_document
from stayer_evaluator.records.outcomes import Role, TrialKind
from stayer_evaluator.records.trial import TrialDocument
from stayer_evaluator.relay.policy import Verb, belongs, denial, is_plain, prefixes
from stayer_evaluator.relay.tokens import TrialPod

AGENT = TrialPod(NAMESPACE, TRIAL, Role.AGENT, 1)
ADJUDICATOR = TrialPod(NAMESPACE, TRIAL, Role.ADJUDICATOR, 1)
ATTEMPT = make_document()
HIDDEN = make_document(test_visibility="hidden")
GOLDEN = make_document(grants=("gold",), test_visibility="hidden")
INVENTORY = make_document(kind=TrialKind.INVENTORY)
HASH = "a" * 64
P = AGENT_PREFIX
T = f"tasks/{DIGEST}/"
RUN = "runs/lab/demo-1a2b3c4d/"
ELSE = f"tasks/{'e' * 64}/"
FOREIGN = TrialPod("x", TRIAL, Role.AGENT, 1)
NEIGHBOUR = TrialPod(NAMESPACE, "t", Role.AGENT, 1)
C, R = Verb.CREATE, Verb.READ

ALLOWED = [
    ("a recorder appends to the queue", AGENT, ATTEMPT, C, f"{P}queue/00000007"),
    ("a recorder stores a pack", AGENT, ATTEMPT, C, f"{P}packs/{HASH}"),
    ("a recorder writes its trace", AGENT, ATTEMPT, C, f"{P}trace/recorder-1-ab/00000000"),
    ("a recorder saves the resume layer", AGENT, ATTEMPT, C, f"{P}resume/00000000"),
    ("a recorder stores a transcript", AGENT, ATTEMPT, C, f"{P}transcripts/1/claude.jsonl"),
    ("a recorder reads the queue", AGENT, ATTEMPT, R, f"{P}queue/00000007"),
    ("a recorder reads the trial", AGENT, ATTEMPT, R, f"{P}trial.json"),
    ("a recorder reads the task", AGENT, ATTEMPT, R, f"{T}task.json"),
    ("a recorder reads the base", AGENT, ATTEMPT, R, f"{T}base/packs/{HASH}"),
    ("a recorder reads attached tests", AGENT, ATTEMPT, R, f"{T}suite.tar.zst"),
    ("the oracle reads gold by grant", AGENT, GOLDEN, R, f"{T}gold.tar.zst"),
    ("an adjudicator writes a verdict", ADJUDICATOR, ATTEMPT, C, f"{P}verdicts/00000007"),
    ("an adjudicator marks a try", ADJUDICATOR, ATTEMPT, C, f"{P}verdicts/00000007.try2"),
    ("an adjudicator writes results", ADJUDICATOR, ATTEMPT, C, f"{P}results.json"),
    ("an adjudicator merges the trace", ADJUDICATOR, ATTEMPT, C, f"{P}trace.jsonl.zst"),
    ("an adjudicator reads hidden tests", ADJUDICATOR, HIDDEN, R, f"{T}suite.tar.zst"),
    ("an adjudicator reads the queue", ADJUDICATOR, ATTEMPT, R, f"{P}queue/00000007"),
    ("an adjudicator reads verdicts", ADJUDICATOR, ATTEMPT, R, f"{P}verdicts/00000007"),
    ("an inventory reads gold", ADJUDICATOR, INVENTORY, R, f"{T}gold.tar.zst"),
    ("an inventory writes its list", ADJUDICATOR, INVENTORY, C, f"{T}inventory.json"),
    ("an inventory writes the base", ADJUDICATOR, INVENTORY, C, f"{T}base/manifest"),
]

REFUSED = [
    ("a recorder writes a verdict", AGENT, ATTEMPT, C, f"{P}verdicts/00000007"),
    ("a recorder writes results", AGENT, ATTEMPT, C, f"{P}results.json"),
    ("a recorder writes the trial", AGENT, ATTEMPT, C, f"{P}trial.json"),
    ("a recorder writes an adjudicator's trace", AGENT, ATTEMPT, C, f"{P}trace/adjudicator-1/0"),
    ("a recorder reads a verdict", AGENT, ATTEMPT, R, f"{P}verdicts/00000007"),
    ("a recorder reads results", AGENT, ATTEMPT, R, f"{P}results.json"),
    ("a recorder reads the merged trace", AGENT, ATTEMPT, R, f"{P}trace.jsonl.zst"),
    ("a recorder reads a verdict's trace", AGENT, ATTEMPT, R, f"{P}trace/adjudicator-1/00000000"),
    ("a recorder reads the grader's log", AGENT, ATTEMPT, R, f"{P}logs/adjudicator-1.log"),
    ("a recorder reads gold", AGENT, ATTEMPT, R, f"{T}gold.tar.zst"),
    ("a recorder reads the inventory", AGENT, ATTEMPT, R, f"{T}inventory.json"),
    ("a recorder reads hidden tests", AGENT, HIDDEN, R, f"{T}suite.tar.zst"),
    ("a recorder writes the base", AGENT, ATTEMPT, C, f"{T}base/manifest"),
    ("a recorder writes a short number", AGENT, ATTEMPT, C, f"{P}queue/7"),
    ("a recorder writes a long number", AGENT, ATTEMPT, C, f"{P}queue/000000007"),
    ("a recorder writes below an entry", AGENT, ATTEMPT, C, f"{P}queue/00000007/x"),
    ("a recorder writes a pack by name", AGENT, ATTEMPT, C, f"{P}packs/evil"),
    ("a recorder reads another trial", AGENT, ATTEMPT, R, f"{P[:-2]}8/queue/00000000"),
    ("a recorder reads the run's results", AGENT, ATTEMPT, R, f"{RUN}results.json"),
    ("a recorder reads another task", AGENT, ATTEMPT, R, f"tasks/{'e' * 64}/task.json"),
    ("a recorder reads a task set", AGENT, ATTEMPT, R, "tasksets/demo/small.json"),
    ("a recorder lists by a prefix", AGENT, ATTEMPT, R, P),
    ("an agent in an inventory trial", AGENT, INVENTORY, R, f"{T}task.json"),
    ("an adjudicator writes to the queue", ADJUDICATOR, ATTEMPT, C, f"{P}queue/00000007"),
    ("an adjudicator stores a pack", ADJUDICATOR, ATTEMPT, C, f"{P}packs/{HASH}"),
    ("an adjudicator reads gold", ADJUDICATOR, ATTEMPT, R, f"{T}gold.tar.zst"),
    ("an adjudicator writes an inventory", ADJUDICATOR, ATTEMPT, C, f"{T}inventory.json"),
    ("an inventory writes the suite", ADJUDICATOR, INVENTORY, C, f"{T}suite.tar.zst"),
    ("an inventory writes another task", ADJUDICATOR, INVENTORY, C, f"{ELSE}base/manifest"),
    ("a namesake in another namespace", FOREIGN, ATTEMPT, R, f"{P}trial.json"),
    ("another trial of the namespace", NEIGHBOUR, ATTEMPT, R, f"{P}trial.json"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("caller", "document", "verb", "key"), [pytest.param(*c, id=i) for i, *c in ALLOWED]
)
def test_allowed(caller: TrialPod, document: TrialDocument, verb: Verb, key: str) -> None:
    assert denial(caller, document, verb, key) is None


@pytest.mark.parametrize(
    ("caller", "document", "verb", "key"), [pytest.param(*c, id=i) for i, *c in REFUSED]
)
def test_refused(caller: TrialPod, document: TrialDocument, verb: Verb, key: str) -> None:
    assert denial(caller, document, verb, key)


ODD_KEYS = [
    "",
    "/",
    "/runs/lab",
    "runs/lab/",
    "runs//lab",
    "runs/./lab",
    "runs/../tasks/x",
    "..",
    "runs/%2e%2e/x",
    "runs/lab\\x",
    "runs/lab/a b",
    "runs/lab/a\nb",
    "runs/lab/\u202e",
    "runs/läb/x",
    "runs/lab/x\0",
    "runs/lab/x?y",
    "runs/lab/" + "x" * 256,
    "a/" * 500 + "a",
]


@pytest.mark.parametrize("key", ODD_KEYS, ids=repr)
def test_keys_that_are_not_plain(key: str) -> None:
    assert not is_plain(key)
    assert denial(ADJUDICATOR, ATTEMPT, Verb.READ, key)


@pytest.mark.parametrize("tail", ["../demo-0123456788/queue/00000000", "queue/../trial.json", "."])
def test_no_key_leaves_the_prefix_by_dots(tail: str) -> None:
    assert denial(ADJUDICATOR, ATTEMPT, Verb.READ, P + tail) == "not a plain key"


def test_prefixes_are_read_from_keys() -> None:
    assert prefixes(f"{P}queue/00000000").trial == P
    assert prefixes(f"{T}task.json").task == DIGEST
    assert prefixes("probe/x") == prefixes("runs/lab/demo")
    assert belongs(AGENT, P)
    assert not belongs(AGENT, P.replace("/lab/", "/bal/"))
