"""`plan_trial`: what is to be done about one Trial now."""

from collections.abc import Sequence

from stayer_operator.core.observed import PodView
from stayer_operator.core.plan import Decision, Plan
from stayer_operator.core.trial.outcomes import hasten
from stayer_operator.core.trial.rules import RULES
from stayer_operator.core.trial.settings import TrialSettings
from stayer_operator.core.trial.view import TrialView


def plan_trial(view: TrialView) -> Decision:
    """The first rule that applies decides. Total: the last one always does."""
    for rule in RULES:
        plan = rule.decide(view)
        if plan is not None:
            return Decision(rule=rule.name, plan=plan)
    return Decision(rule="none", plan=Plan())


def plan_orphans(pods: Sequence[PodView], now: float, settings: TrialSettings) -> Decision:
    """Pods whose Trial is gone. Garbage collection deletes them, with their own grace of minutes;
    deleting a run or Trial is a cancel, so the delete is repeated with a short one (design.md §4).
    Pods that nobody deletes yet are left to it: their Trial may only not have been seen.
    """
    actions = hasten(pods, now, settings.end_grace)
    left = any(pod.deletion is None or not pod.is_terminal for pod in pods)
    return Decision(
        rule="trial_gone",
        plan=Plan(actions=actions, wake_after=settings.recheck if left else None),
    )
