"""What a transcript can tell."""

from dataclasses import dataclass

from stayer_evaluator.records.outcomes import FailureMode


@dataclass(frozen=True, slots=True)
class Account:
    """Of one round; null = the transcript does not say."""

    failure_mode: FailureMode | None = None
    message: str = ""
    compactions: int | None = None
    tokens_input: int | None = None
    tokens_output: int | None = None
