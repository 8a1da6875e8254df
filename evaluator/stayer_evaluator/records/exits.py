"""Exit status of the sidecars; a termination message goes with each."""

DONE = 0
"""Everything is written: `end` by a recorder, `results.json` by an adjudicator."""
FAILED = 1
FENCED = 3
"""A newer incarnation has taken over the queue."""
NOT_ISOLATED = 4
"""The isolation or the user namespace that the trial demands is not there."""
STORE_UNREACHABLE = 5
"""Beyond the deadline of retries."""
STOPPED = 143
"""By SIGTERM."""
