"""Waiting before the next try. Deterministic: the jitter comes from the trial's UID and the count,
so that planning stays pure and two operators agree, while trials spread.
"""

import hashlib


def backoff(uid: str, count: int, first: float, limit: float) -> float:
    """Seconds before try `count` + 1: doubles from `first` up to `limit`, of which the second half
    is jitter. 0 for a count below 1.
    """
    if count < 1:
        return 0.0
    full = min(limit, first * 2.0 ** min(count - 1, 32))
    return float(full * (0.5 + fraction(uid, count) / 2))


def fraction(uid: str, count: int) -> float:
    """A number in [0, 1) that belongs to this trial and count."""
    digest = hashlib.sha256(f"{uid}/{count}".encode()).digest()
    return int.from_bytes(digest[:7]) / float(1 << 56)
