"""What apply makes of answers: taken names, things that are gone, events that fail."""

import asyncio
from typing import Any

import pytest

from makers_trial import NAMESPACE, make_identity, make_pod_settings, make_raw_trial, make_spec
from stayer_evaluator.records.outcomes import Role
from stayer_evaluator.storage.memory import MemoryStore
from stayer_evaluator.storage.store import ObjectExists
from stayer_operator.adapters.memory_cluster import POD, MemoryCluster
from stayer_operator.adapters.memory_time import MemoryClock, MemoryTelemetry
from stayer_operator.api import names
from stayer_operator.core.plan import (
    CreateNetworkPolicy,
    CreatePod,
    CreateTrial,
    DeletePod,
    DeleteRun,
    DeleteTrial,
    Event,
    Plan,
    PodReplaced,
    PutObject,
    StatusWrite,
)
from stayer_operator.core.pods.agent import build_agent_pod
from stayer_operator.core.trial.status import TrialStatus
from stayer_operator.errors import ClusterUnavailable, Conflict, NameTaken, QuotaExceeded
from stayer_operator.ports import Subject
from stayer_operator.reconcile.apply import Applying
from stayer_operator.reconcile.ledger import Ledger, TrialNotes

SUBJECT = Subject(kind="Trial", namespace=NAMESPACE, name="t", uid="u")


class Bench:
    """Apply over memory."""

    def __init__(self, cluster: MemoryCluster | None = None) -> None:
        self.clock = MemoryClock(1000)
        self.cluster = cluster or MemoryCluster(self.clock)
        self.store = MemoryStore()
        self.telemetry = MemoryTelemetry()
        self.ledger = Ledger()
        self.applying = Applying(
            cluster=self.cluster,
            evidence=self.store,
            clock=self.clock,
            telemetry=self.telemetry,
            ledger=self.ledger,
        )

    def apply(self, *actions: Any, **parts: Any) -> None:
        asyncio.run(self.applying.apply(Plan(actions=actions, **parts), SUBJECT))

    def notes(self) -> TrialNotes:
        return self.ledger.meet(make_identity().uid, TrialStatus(), witnessed=True)


def pod_manifest() -> dict[str, Any]:
    return build_agent_pod(make_pod_settings(), make_identity(), make_spec(), 1)


def pod_name() -> str:
    return names.pod_name(make_identity().name, Role.AGENT, 1)


def test_created_pod_is_noted() -> None:
    bench = Bench()

    bench.apply(CreatePod(manifest=pod_manifest()))

    assert bench.notes().posted == {pod_name(): 1000}


def test_living_pod_of_the_same_trial_is_adopted() -> None:
    bench = Bench()
    bench.cluster.create(POD, {**pod_manifest(), "status": {"phase": "Pending"}})

    bench.apply(CreatePod(manifest=pod_manifest()))

    assert pod_name() in bench.notes().posted


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            lambda pod: pod["metadata"]["ownerReferences"][0].update(uid="another"),
            id="it belongs to an earlier trial of the same name",
        ),
        pytest.param(lambda pod: pod["status"].update(phase="Failed"), id="it has ended"),
        pytest.param(
            lambda pod: pod["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"),
            id="it is being deleted",
        ),
    ],
)
def test_any_other_pod_of_the_name_is_waited_for(change: Any) -> None:
    bench = Bench()
    bench.cluster.create(POD, {**pod_manifest(), "status": {"phase": "Running"}})
    bench.cluster.update(POD, NAMESPACE, pod_name(), change)

    with pytest.raises(NameTaken):
        bench.apply(CreatePod(manifest=pod_manifest()))

    assert bench.notes().posted == {}


class Refusing(MemoryCluster):
    """Refuses or does not answer every POST of a pod."""

    def __init__(self, error: Exception) -> None:
        super().__init__(MemoryClock(1000))
        self.error = error

    async def create_pod(self, manifest: Any) -> Any:
        raise self.error

    async def emit_event(self, regarding: Subject, event: Event) -> None:
        raise self.error


def test_quota_is_remembered_as_what_the_trial_waits_for() -> None:
    bench = Bench(Refusing(QuotaExceeded("exceeded quota: pods", status=403)))

    with pytest.raises(QuotaExceeded):
        bench.apply(CreatePod(manifest=pod_manifest()))

    assert bench.notes().trouble == ("QuotaExceeded", "exceeded quota: pods")
    assert bench.notes().tried == {pod_name(): 1000}
    assert bench.notes().posted == {}


def test_event_that_cannot_be_sent_fails_nothing() -> None:
    bench = Bench(Refusing(ClusterUnavailable("no answer")))
    replaced = PodReplaced(role=Role.AGENT, fault="user", cause="deleted")

    bench.apply(events=(Event(reason="PodReplaced", message="m"),), measurements=(replaced,))

    assert bench.telemetry.replaced == {("agent", "user", "deleted"): 1}


@pytest.mark.parametrize(
    "action",
    [
        DeletePod(namespace=NAMESPACE, name="gone", uid="u"),
        DeleteTrial(namespace=NAMESPACE, name="gone", uid="u"),
        DeleteRun(namespace=NAMESPACE, name="gone", uid="u"),
    ],
    ids=lambda action: type(action).__name__,
)
def test_what_is_gone_counts_as_deleted(action: Any) -> None:
    Bench().apply(action)


def test_object_of_another_uid_is_not_deleted() -> None:
    bench = Bench()
    bench.cluster.create(names.TRIAL_KIND, make_raw_trial())
    name = make_identity().name

    bench.apply(DeleteTrial(namespace=NAMESPACE, name=name, uid="another"))

    assert bench.cluster.find(names.TRIAL_KIND, NAMESPACE, name) is not None


@pytest.mark.parametrize("action", [CreateTrial, CreateNetworkPolicy], ids=lambda a: a.__name__)
def test_created_again_by_the_same_owner_counts_and_by_another_does_not(action: Any) -> None:
    bench = Bench()
    other = make_raw_trial(ownerReferences=[names.owner_reference("BenchmarkRun", "demo", "x")])

    bench.apply(action(manifest=make_raw_trial()))
    bench.apply(action(manifest=make_raw_trial()))

    with pytest.raises(NameTaken):
        bench.apply(action(manifest=other))


def test_put_create_refuses_other_bytes() -> None:
    bench = Bench()
    bench.apply(PutObject(key="k", data=b"1", mode="create"))
    bench.apply(PutObject(key="k", data=b"1", mode="create"))

    with pytest.raises(ObjectExists):
        bench.apply(PutObject(key="k", data=b"2", mode="create"))

    assert bench.telemetry.store_failures == {}


def test_put_adopt_takes_what_is_there_and_replace_does_not() -> None:
    bench = Bench()

    bench.apply(PutObject(key="k", data=b"1", mode="adopt"))
    bench.apply(PutObject(key="k", data=b"2", mode="adopt"))
    adopted = bench.store.objects["k"]
    bench.apply(PutObject(key="k", data=b"3", mode="replace"))

    assert (adopted, bench.store.objects["k"]) == (b"1", b"3")


def write(version: str) -> StatusWrite:
    identity = make_identity()
    return StatusWrite(
        kind="Trial",
        namespace=identity.namespace,
        name=identity.name,
        uid="00000000-0000-4000-8000-000000000001",
        resource_version=version,
        status={"round": 2, "message": None},
    )


def test_status_is_merged_and_nulls_remove() -> None:
    bench = Bench()
    made = bench.cluster.create(names.TRIAL_KIND, make_raw_trial(status={"message": "m"}))

    bench.apply(status=write(made["metadata"]["resourceVersion"]))

    held = bench.cluster.find(names.TRIAL_KIND, NAMESPACE, make_identity().name)
    assert held is not None
    assert held["status"] == {"round": 2}


def test_status_of_a_changed_object_is_not_written_and_nothing_is_told() -> None:
    bench = Bench()
    bench.cluster.create(names.TRIAL_KIND, make_raw_trial())

    with pytest.raises(Conflict):
        bench.apply(status=write("0"), events=(Event(reason="R", message="m"),))

    assert bench.cluster.events == []


def test_status_of_a_deleted_object_is_nobodys_concern() -> None:
    bench = Bench()

    bench.apply(status=write("0"), events=(Event(reason="R", message="m"),))

    assert bench.cluster.events == []
