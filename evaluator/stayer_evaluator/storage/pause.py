"""Keeps Python's cyclic garbage collector out of sections that only build large, acyclic data."""

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """No cyclic collection inside.

    Building the records of 12,000 files makes half a million objects; the collector would go
    through all of them again and again and take longer than the work itself. Two sections that
    overlap in two threads cost speed, nothing else.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
