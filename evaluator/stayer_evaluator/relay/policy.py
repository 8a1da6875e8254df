"""Who may do what with which key. Pure: a caller, its trial's document, a verb and a key.

Everything that is not allowed here is refused (design.md §4; security.md W18, W19).
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from stayer_evaluator.records.outcomes import Role, TrialKind
from stayer_evaluator.records.trial import TrialDocument
from stayer_evaluator.relay.tokens import TrialPod

KEY = re.compile(r"[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)*")
LONGEST_KEY = 900
LONGEST_PART = 255

_NUMBER = r"[0-9]{8}"
_HASH = r"[0-9a-f]{64}"
_NAMES = r"[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)*"


class Verb(StrEnum):
    """What is asked of a key."""

    CREATE = "create"
    READ = "read"


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


_TRIAL: dict[tuple[Role, Verb], re.Pattern[str]] = {
    (Role.AGENT, Verb.CREATE): _any_of(
        rf"queue/{_NUMBER}",
        rf"packs/{_HASH}",
        rf"trace/recorder-[A-Za-z0-9._-]+/{_NUMBER}",
        rf"resume/{_NUMBER}",
        rf"transcripts/{_NAMES}",
        rf"logs/{_NAMES}",
    ),
    # Its own evidence and what a successor needs; nothing that tells of a verdict.
    (Role.AGENT, Verb.READ): _any_of(
        r"trial\.json",
        rf"queue/{_NUMBER}",
        rf"packs/{_HASH}",
        rf"trace/recorder-[A-Za-z0-9._-]+/{_NUMBER}",
        rf"resume/{_NUMBER}",
        rf"transcripts/{_NAMES}",
        rf"logs/recorder[A-Za-z0-9._-]*(?:/{_NAMES})?",
    ),
    (Role.ADJUDICATOR, Verb.CREATE): _any_of(
        rf"verdicts/{_NUMBER}(?:\.try[0-9]+)?",
        rf"trace/adjudicator-[A-Za-z0-9._-]+/{_NUMBER}",
        r"trace\.jsonl\.zst",
        r"results\.json",
        rf"logs/{_NAMES}",
    ),
    (Role.ADJUDICATOR, Verb.READ): _any_of(_NAMES),
}
"""Below the trial's prefix."""

_BASE = rf"base/(?:manifest|packs/{_HASH})"
_TASK: dict[tuple[Role, Verb], re.Pattern[str]] = {
    (Role.AGENT, Verb.READ): _any_of(r"task\.json", r"public\.tar\.zst", _BASE),
    (Role.ADJUDICATOR, Verb.READ): _any_of(
        r"task\.json", r"public\.tar\.zst", r"suite\.tar\.zst", r"inventory\.json", _BASE
    ),
}
"""Below the prefix of the trial's task, for every trial."""

_INVENTORY = _any_of(r"inventory\.json", _BASE)
_GOLD = "gold.tar.zst"
_SUITE = "suite.tar.zst"


@dataclass(frozen=True, slots=True)
class Prefixes:
    """Where a key lies: below a trial, below a task, or nowhere."""

    trial: str | None = None
    """The trial prefix that the key claims, with trailing slash."""
    task: str | None = None
    """The task digest that the key claims."""


def is_plain(key: str) -> bool:
    """Whether a key is made of ordinary parts: no `.`, `..`, empty parts, escapes or odd bytes."""
    return (
        len(key) <= LONGEST_KEY
        and KEY.fullmatch(key) is not None
        and all(part not in (".", "..") and len(part) <= LONGEST_PART for part in key.split("/"))
    )


def prefixes(key: str) -> Prefixes:
    """What a plain key claims to belong to."""
    parts = key.split("/")
    if parts[0] == "runs" and len(parts) >= 5:
        return Prefixes(trial="/".join(parts[:4]) + "/")
    if parts[0] == "tasks" and len(parts) >= 3:
        return Prefixes(task=parts[1])
    return Prefixes()


def belongs(caller: TrialPod, prefix: str) -> bool:
    """Whether a trial prefix can be the caller's: its namespace and its trial's name."""
    parts = prefix.split("/")
    return parts[1] == caller.namespace and parts[3] == caller.trial


def denial(caller: TrialPod, document: TrialDocument, verb: Verb, key: str) -> str | None:
    """Why the caller may not do this; None when it may.

    `document` is the trial.json of the caller's trial.
    """
    if (document.namespace, document.trial) != (caller.namespace, caller.trial):
        return "the document is another trial's"
    if caller.role is Role.AGENT and document.kind is TrialKind.INVENTORY:
        return "an inventory trial has no agent"
    if not is_plain(key):
        return "not a plain key"
    if key.startswith(document.prefix):
        allowed = _TRIAL[caller.role, verb].fullmatch(key.removeprefix(document.prefix))
        return None if allowed else f"role {caller.role.name.lower()} may not {verb} this"
    task = f"tasks/{document.task.digest}/"
    if key.startswith(task):
        return _task_denial(caller.role, document, verb, key.removeprefix(task))
    return "outside the trial and its task"


def _task_denial(role: Role, document: TrialDocument, verb: Verb, name: str) -> str | None:
    inventory = document.kind is TrialKind.INVENTORY
    if verb is Verb.CREATE:
        if inventory and role is Role.ADJUDICATOR and _INVENTORY.fullmatch(name):
            return None
        return "only an inventory trial adds to a task, and only its inventory and base"
    if _TASK[role, verb].fullmatch(name):
        return None
    if name == _GOLD:
        granted = "gold" in document.grants if role is Role.AGENT else inventory
        return None if granted else "gold is not granted"
    if name == _SUITE:
        granted = document.test_visibility == "attached" or "suite" in document.grants
        return None if granted else "the tests are hidden"
    return f"role {role.name.lower()} may not {verb} this"
