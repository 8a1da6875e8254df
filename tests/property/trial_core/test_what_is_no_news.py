"""Changes of pods that no trial is looked at for: they must not change what would be done."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from hypothesis import assume, given
from hypothesis import strategies as st

from makers_any_views import views
from makers_trial import condition, ended, running, terminated, waiting
from makers_views import POD_KINDS, live_pod, sidecar_name, young_pod
from stayer_evaluator.records.outcomes import Role
from stayer_operator.core.observed import ContainerEnd, ContainerView, PodCondition, PodView
from stayer_operator.core.trial.news import has_begun, is_news
from stayer_operator.core.trial.planner import plan_trial
from stayer_operator.core.trial.view import RoleView, TrialView

WELL = ContainerEnd(exit_code=0, reason="Completed", started=1.0, finished=2.0)
STEPS = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["seed", "initial-commit", "restore"]),
        "init": st.just(True),
        "state": st.sampled_from(["waiting", "running"]),
        "reason": st.sampled_from(["", "PodInitializing"]),
        "started": st.booleans(),
        "since": st.none() | st.floats(0, 1e9),
    }
).map(lambda fields: ContainerView(**fields)) | st.sampled_from(
    ["seed", "initial-commit", "restore"]
).map(lambda name: ContainerView(name=name, init=True, state="terminated", end=WELL))
CONDITIONS = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["Ready", "Initialized", "PodReadyToStartContainers"]),
        "status": st.sampled_from(["True", "False"]),
        "since": st.floats(0, 1e9),
    }
).map(lambda fields: PodCondition(**fields))


@st.composite
def further(draw: st.DrawFn, pod: PodView) -> PodView:
    """The pod, a little further on its way."""
    sidecars = {
        container.name: container._replace(
            state=draw(st.sampled_from(["waiting", "running"])),
            started=draw(st.booleans()),
            since=draw(st.none() | st.floats(0, 1e9)),
        )
        for container in pod.containers
        if container.name in ("recorder", "adjudicator") and not container.ends
        if not container.reason
    }
    kept = tuple(sidecars.get(container.name, container) for container in pod.containers)
    return pod._replace(
        resource_version=draw(st.sampled_from(["7", "8"])),
        started=draw(st.none() | st.floats(0, 1e9)),
        containers=(*draw(st.lists(STEPS, max_size=3)), *kept),
        conditions=(*pod.conditions, *draw(st.lists(CONDITIONS, max_size=2))),
    )


@given(st.data(), views())
def test_what_is_no_news_changes_no_plan(data: st.DataObject, view: TrialView) -> None:
    later = view
    for name in ("agent", "adjudicator"):
        role: RoleView | None = getattr(view, name)
        if role is not None and role.pod is not None:
            pod = data.draw(further(role.pod))
            assert not is_news(role.pod, pod)
            later = replace(later, **{name: role._replace(pod=pod)})

    assert plan_trial(later) == plan_trial(view)


def test_pods_of_different_kinds_are_news_of_each_other() -> None:
    for role in Role:
        kinds = POD_KINDS[role, 1]
        for one, other in combinations(kinds, 2):
            same = kinds[one] == kinds[other]
            assert is_news(kinds[one], kinds[other]) is not same, (one, other)


def test_ends_of_containers_are_news() -> None:
    sidecar = sidecar_name(Role.AGENT)
    before = live_pod(Role.AGENT, inits=[running("seed"), running(sidecar)])
    failed = [terminated("seed", 1), running(sidecar)]
    crashed = [running("seed"), running(sidecar, lastState=ended(1), restartCount=1)]
    silent = [running("seed"), terminated(sidecar, 0)]
    stuck = [waiting("seed", "ImagePullBackOff"), running(sidecar)]

    for inits in (failed, crashed, silent, stuck):
        assert is_news(before, live_pod(Role.AGENT, inits=inits))


def test_a_disruption_is_news_and_readiness_is_none() -> None:
    scheduled = condition("PodScheduled", since=9_001)
    before = live_pod(Role.AGENT, conditions=[scheduled])
    disrupted = condition("DisruptionTarget", "True", "EvictionByEvictionAPI")

    assert is_news(before, live_pod(Role.AGENT, conditions=[scheduled, disrupted]))
    assert not is_news(before, live_pod(Role.AGENT, conditions=[scheduled, condition("Ready")]))


@given(views(), st.sampled_from(Role))
def test_a_pod_that_was_just_created_is_no_news(view: TrialView, which: Role) -> None:
    """Where there was nothing to do before it was seen. A trial that must not go on any more is
    looked at for other reasons, and when something becomes of the pod.
    """
    going_on = view.run is not None and not (view.run.cancel or view.run.suspend)
    assume(going_on and not view.is_terminal and not view.trial.deleted)
    role = view.agent if which is Role.AGENT else view.adjudicator
    assume(role is not None and role in view.needed)
    assert role is not None
    name = "agent" if which is Role.AGENT else "adjudicator"
    posted = role._replace(pod=None, last_seen=None, posted_at=view.now)
    pod = young_pod(which, role.incarnation)._replace(
        created=view.now, node="", conditions=(), containers=()
    )
    assert not has_begun(pod)

    assume(plan_trial(replace(view, **{name: posted})).rule == "waiting")

    assert plan_trial(replace(view, **{name: posted._replace(pod=pod)})).rule == "waiting"
