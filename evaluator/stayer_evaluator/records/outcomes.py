"""Closed vocabularies: how a test, a unit, a trial and a checkpoint can end."""

from enum import StrEnum


class CaseStatus(StrEnum):
    """Outcome of one test case at one checkpoint."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    MISSING = "missing"  # in the inventory, not in the result (evaluation.md §10.2)


class UnitState(StrEnum):
    """S[u, t] of evaluation.md §2 and §10.4."""

    PASS = "pass"  # noqa: S105 (a verdict, not a secret)
    FAIL = "fail"
    ERROR = "error"
    TIMEOUT = "timeout"
    SEALED = "sealed"
    INVALID = "invalid"


class FailureMode(StrEnum):
    """Why an episode ended (evaluation.md §6 and §10.6)."""

    NONE = "none"
    AGENT_TIMEOUT = "agent_timeout"
    AGENT_RATE_LIMITED = "agent_rate_limited"
    AGENT_AUTH_ERROR = "agent_auth_error"
    AGENT_NETWORK_ERROR = "agent_network_error"
    AGENT_SERVER_ERROR = "agent_server_error"
    AGENT_STARTUP_ERROR = "agent_startup_error"
    TEST_TIMEOUT = "test_timeout"
    CONTEXT_LENGTH_EXCEEDED = "context_length_exceeded"
    OUTPUT_LENGTH_EXCEEDED = "output_length_exceeded"
    PARSE_ERROR = "parse_error"
    INFRA_ERROR = "infra_error"
    CANCELLED = "cancelled"
    UNKNOWN_AGENT_ERROR = "unknown_agent_error"
    AGENT_OOM = "agent_oom"
    AGENT_DISK = "agent_disk"
    AGENT_KILLED = "agent_killed"
    BUDGET_EXHAUSTED = "budget_exhausted"


class TrialKind(StrEnum):
    """What a trial is for."""

    ATTEMPT = "attempt"
    INVENTORY = "inventory"


class Role(StrEnum):
    """The two pods of a trial; the value is the letter in the pod's name."""

    AGENT = "a"
    ADJUDICATOR = "b"
