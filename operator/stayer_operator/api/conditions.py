"""Phases, condition types and reasons. Conditions are the truth, phases are derived from them."""

from enum import StrEnum


class RunPhase(StrEnum):
    """Where a BenchmarkRun stands, for people."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUSPENDED = "Suspended"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"


class TrialPhase(StrEnum):
    """Where a Trial stands (design.md §3). Succeeded = it has a valid result, whatever its score;
    Failed = infra_error.
    """

    PENDING = "Pending"
    ADMITTED = "Admitted"
    RUNNING = "Running"
    DRAINING = "Draining"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"


TERMINAL_TRIAL_PHASES = frozenset({TrialPhase.SUCCEEDED, TrialPhase.FAILED, TrialPhase.CANCELLED})
ACTIVE_TRIAL_PHASES = frozenset({TrialPhase.ADMITTED, TrialPhase.RUNNING, TrialPhase.DRAINING})


class RunCondition(StrEnum):
    """Condition types of a BenchmarkRun."""

    ACCEPTED = "Accepted"  # the spec is sound
    TASKS_READY = "TasksReady"  # tasks found and every inventory taken
    NETWORK_READY = "NetworkReady"  # the run's NetworkPolicies exist
    PROGRESSING = "Progressing"  # trials run; False says for what the run waits
    COMPLETE = "Complete"  # every trial has ended


class TrialCondition(StrEnum):
    """Condition types of a Trial."""

    ADMITTED = "Admitted"  # its pods may be / were created; False says for what it waits
    SCHEDULED = "Scheduled"  # both pods have a node
    RUNNING = "Running"  # both sidecars have started
    AGENT_ENDED = "AgentEnded"  # the queue holds its `end` entry
    COMPLETE = "Complete"  # the outcome is recorded


class Reason(StrEnum):
    """Reasons of conditions and Events, of runs and trials."""

    # Conditions of runs: Accepted.
    SPEC_ACCEPTED = "SpecAccepted"
    SPEC_INVALID = "SpecInvalid"
    IMMUTABLE_FIELD_CHANGED = "ImmutableFieldChanged"
    # Conditions of runs: TasksReady.
    TASKS_FOUND = "TasksFound"
    TASK_SET_NOT_FOUND = "TaskSetNotFound"
    TASK_SET_INVALID = "TaskSetInvalid"
    STORE_UNAVAILABLE = "StoreUnavailable"
    INVENTORY_PENDING = "InventoryPending"  # also why a Trial waits
    INVENTORY_FAILED = "InventoryFailed"
    TASK_REJECTED = "TaskRejected"
    # Conditions of runs: NetworkReady.
    POLICIES_CREATED = "PoliciesCreated"
    # Conditions of runs: Progressing and Complete.
    TRIALS_RUNNING = "TrialsRunning"
    CREATING_TRIALS = "CreatingTrials"
    WAITING_FOR_SPEC = "WaitingForSpec"
    TRIALS_FINISHED = "TrialsFinished"
    TRIALS_FAILED = "TrialsFailed"  # finished, and every trial is an infra_error
    SUSPENDED = "Suspended"
    CANCELLED = "Cancelled"
    CANCELLING = "Cancelling"
    RERUN = "Rerun"
    EXPIRED = "Expired"  # ttlSecondsAfterFinished has passed
    # why a Trial waits; a run's Progressing condition repeats the most frequent one
    ADMITTED = "Admitted"
    RUN_PARALLELISM = "RunParallelism"
    MODEL_PARALLELISM = "ModelParallelism"
    SHAPE_UNSCHEDULABLE = "ShapeUnschedulable"
    BACKING_OFF = "BackingOff"
    QUOTA_EXCEEDED = "QuotaExceeded"
    UNSCHEDULABLE = "Unschedulable"
    IMAGE_PULL = "ImagePull"
    PODS_STARTING = "PodsStarting"
    RUN_SUSPENDED = "RunSuspended"
    RUN_NOT_ACCEPTED = "RunNotAccepted"
    # The life of a trial.
    PODS_CREATED = "PodsCreated"
    PODS_SCHEDULED = "PodsScheduled"
    PAIR_RELEASED = "PairReleased"
    PODS_RUNNING = "PodsRunning"
    AGENT_ENDED = "AgentEnded"
    RESULT_RECORDED = "ResultRecorded"
    INFRASTRUCTURE_FAILED = "InfrastructureFailed"
    POD_REPLACED = "PodReplaced"
    AGENT_LOST = "AgentLost"  # and onAgentLoss is not resume
    # Sidecars stop with these.
    ISOLATION_NOT_ENFORCED = "IsolationNotEnforced"
    USER_NAMESPACE_NOT_ENFORCED = "UserNamespaceNotEnforced"
