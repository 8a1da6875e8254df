"""Pods of a run are built from shared parts: each is what it would be if it was built alone."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from makers_operator import Operator, live
from makers_trial import make_identity, make_pod_settings, make_spec
from makers_world import World
from stayer_operator.core.pods import adjudicator, agent
from stayer_operator.core.pods.settings import PodSettings
from stayer_operator.core.trial.spec import TrialIdentity, TrialSpec, parse_trial_spec

QUANTITIES = st.dictionaries(
    st.sampled_from(["cpu", "memory", "example.com/gpu"]), st.sampled_from(["1", "500m", 3, "4Gi"])
)
TEMPLATES = st.fixed_dictionaries(
    {},
    optional={
        "resources": st.fixed_dictionaries(
            {}, optional={"limits": QUANTITIES, "requests": QUANTITIES}
        ),
        "nodeSelector": st.sampled_from([{}, {"pool": "a"}, {"pool": "b"}]),
        "tolerations": st.sampled_from([[], [{"key": "a", "operator": "Exists"}]]),
        "runtimeClassName": st.sampled_from(["", "gvisor"]),
    },
)
SPECS = st.builds(
    make_spec,
    kind=st.sampled_from(["attempt", "inventory"]),
    runName=st.sampled_from(["one", "other"]),
    task=st.sampled_from(
        [{"name": "parser", "image": "registry.example/parser"}, {"name": "x", "image": "x"}]
    ),
    prefix=st.sampled_from(["runs/a/", "runs/b/"]),
    document=st.sampled_from([{"sha256": "a"}, {"sha256": "b"}]),
    network=st.sampled_from(["closed", "open"]),
    userNamespaces=st.sampled_from(["required", "preferred", "off"]),
    images=st.sampled_from([{}, {"pullPolicy": "Always"}, {"pullSecrets": ["registry"]}]),
    podTemplates=st.fixed_dictionaries({}, optional={"agent": TEMPLATES, "adjudicator": TEMPLATES}),
)
SETTINGS = st.builds(
    make_pod_settings,
    runner_delivery=st.sampled_from(["image-volume", "init-copy"]),
    our_pull_policy=st.sampled_from(["Always", "Never"]),
    must_fail=st.sampled_from([(), ("10.96.0.1:443",)]),
    grace_seconds=st.sampled_from([5, 600]),
    user_namespaces_found=st.booleans(),
    priority_class=st.sampled_from(["", "trials"]),
    evaluator_image=st.sampled_from(["evaluator:1", "evaluator:2"]),
)
IDENTITIES = st.builds(make_identity, name=st.sampled_from(["a", "b"]), uid=st.uuids().map(str))


def text_of(
    settings: PodSettings, identity: TrialIdentity, spec: TrialSpec, incarnation: int
) -> str:
    """Both pods as they are sent."""
    pods: list[dict[str, Any]] = [
        agent.build_agent_pod(settings, identity, spec, incarnation),
        adjudicator.build_adjudicator_pod(settings, identity, spec, incarnation),
    ]
    return json.dumps(pods)


@given(st.lists(st.tuples(SETTINGS, IDENTITIES, SPECS, st.integers(1, 2)), min_size=2, max_size=6))
def test_a_pod_is_what_it_would_be_alone(
    pods: list[tuple[PodSettings, TrialIdentity, TrialSpec, int]],
) -> None:
    together = [text_of(*pod) for pod in pods]

    alone = []
    for pod in pods:
        forget()
        alone.append(text_of(*pod))

    assert together == alone


def test_nobody_changes_what_pods_share() -> None:
    forget()
    asyncio.run(live(world := World(), [Operator(world)]))
    settings, identity = make_pod_settings(), make_identity()
    specs = [parse_trial_spec(trial["spec"]) for trial in world.trials()]
    built = made()

    after_all = [agent.build_agent_pod(settings, identity, spec, 1) for spec in specs[1:]]
    after_all += [adjudicator.build_adjudicator_pod(settings, identity, spec, 1) for spec in specs]
    used_again = made() == built
    forget()
    anew = [agent.build_agent_pod(settings, identity, spec, 1) for spec in specs[1:]]
    anew += [adjudicator.build_adjudicator_pod(settings, identity, spec, 1) for spec in specs]

    assert used_again
    assert json.dumps(after_all) == json.dumps(anew)


def made() -> int:
    """Shared parts that were built."""
    return agent._shared.cache_info().misses + adjudicator._shared.cache_info().misses


def forget() -> None:
    agent._shared.cache_clear()
    adjudicator._shared.cache_clear()
