"""Deadlines and patience of the trial core. All in seconds unless the name says otherwise."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSettings:
    """The same for all trials of an installation; part of every view."""

    half_scheduled: float = 60  # one pod of a pair has a node and blocks it for nothing
    unschedulable: float = 600  # a pair that fits nowhere goes to the back of the queue
    starting: float = 900  # image pull, seeding, isolation proof, restore
    lost_node: float = 60  # a node's silence past the grace of a deleted pod
    unseen: float = 120  # no answer to a POST and no pod in sight; beyond the informer's relist
    settle: float = 2  # after passing over an incarnation that somebody may be creating
    progress: float = 60  # least time between status writes that only tell progress
    agent_slack: float = 3600  # beyond the agent's own limit: rounds and their ends are ours
    drain_slack: float = 3600  # beyond twice the adjudicator's own limit
    end_grace: int = 10  # of pods whose end nobody waits for
    release_backoff: float = 30  # doubles with each release, up to:
    release_backoff_limit: float = 600
    replace_backoff: float = 5  # from the second replaced pod on; doubles, up to:
    replace_backoff_limit: float = 300
    recheck: float = 30  # while something is about to be observed that brings its own wake-up
    adjudicator_lives: int = 100  # incarnations, when candidates bring their own graders down
    sidecar_restarts: int = 3  # of one pod, before the pod is replaced
