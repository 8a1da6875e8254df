"""Where things lie inside the pods of a trial, and what their sidecars are told.

The operator's pod builders and the sidecars both import this; nothing else knows these names.
"""

BIN = "/stayer/bin"
RUNNER = "/stayer/bin/runner"
JOBS = "/stayer/jobs"
FIFO = "/stayer/jobs/fifo"
OUT = "/stayer/out"
STATE = "/stayer/state"
SEED = "/stayer/seed"
WORKSPACE = "/workspace"
HOME = "/home/agent"
SUITE = "/tests"
TOKEN = "/var/run/secrets/stayer/token"  # noqa: S105 (a path)
TERMINATION_LOG = "/dev/termination-log"

AGENT_UID = 10001
FIRST_CANDIDATE_UID = 20000

SIDECAR_PORT = 8099
RELAY_PORT = 8088
PROGRESS_PORT = 8087

AUDIENCE = "stayer"

ENV_TRIAL = "STAYER_TRIAL"
ENV_PREFIX = "STAYER_PREFIX"
ENV_ROLE = "STAYER_ROLE"
ENV_INCARNATION = "STAYER_INCARNATION"
ENV_TRIAL_SHA256 = "STAYER_TRIAL_SHA256"
ENV_RELAY_URL = "STAYER_RELAY_URL"
ENV_PROGRESS_URL = "STAYER_PROGRESS_URL"
ENV_MUST_FAIL = "STAYER_MUST_FAIL"  # comma-separated host:port that must not be reachable
ENV_LIMITS = "STAYER_LIMITS"  # JSON: limits of the task container, as the pod states them
