"""Lengths of time as people write them; each module stands for itself."""


class DurationError(ValueError):
    """A text that is no duration, or no schedule."""
