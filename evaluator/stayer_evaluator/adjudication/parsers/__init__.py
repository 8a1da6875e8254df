"""Text output of test runners → test cases. Pure; a new runner is one more module here.

Facts of the formats are the public harness's. A log is only ever read where the runner's exit,
the expected ids and the canaries stand beside it (`results`): text alone proves nothing.
"""
