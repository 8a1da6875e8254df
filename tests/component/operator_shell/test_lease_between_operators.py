"""Leader election against the fake API server, with clocks that the test moves."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from makers_operator_shell import FakeApiServer, connect, eventually, status
from stayer_operator.adapters.api_client import ApiClient
from stayer_operator.adapters.lease import Lease, LeaseLostError, LeaseSettings

KEY = ("leases", "system", "stayer-operator")


@dataclass
class TestClock:
    """Time that passes only when somebody sleeps."""

    __test__ = False
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


def make_lease(client: ApiClient, clock: TestClock, identity: str) -> Lease:
    settings = LeaseSettings(namespace="system", identity=identity)
    return Lease(client, settings, clock, lambda: datetime(2026, 1, 1, tzinfo=UTC), clock.sleep)


def test_the_first_operator_creates_the_lease_and_leads() -> None:
    server = FakeApiServer()

    async def main() -> None:
        async with connect(server) as client:
            lease = make_lease(client, TestClock(), "one")
            assert not lease.is_held()
            await lease.acquire()
            assert lease.is_held()

    asyncio.run(main())
    spec = server.objects[KEY]["spec"]
    assert spec["holderIdentity"] == "one"
    assert spec["leaseDurationSeconds"] == 15
    assert spec["renewTime"] == "2026-01-01T00:00:00.000000Z"


def test_a_second_operator_waits_until_the_lease_has_run_out() -> None:
    server = FakeApiServer()

    async def main() -> None:
        async with connect(server) as client:
            await make_lease(client, TestClock(), "one").acquire()
            clock = TestClock()
            second = make_lease(client, clock, "two")
            await second.acquire()
            assert 15 <= clock.now - 1000 <= 18
            assert second.is_held()

    asyncio.run(main())
    spec = server.objects[KEY]["spec"]
    assert spec["holderIdentity"] == "two"
    assert spec["leaseTransitions"] == 2


def test_a_restarted_container_of_the_same_pod_leads_at_once() -> None:
    server = FakeApiServer()

    async def main() -> None:
        async with connect(server) as client:
            await make_lease(client, TestClock(), "pod-uid").acquire()
            clock = TestClock()
            await make_lease(client, clock, "pod-uid").acquire()
            assert clock.now == 1000

    asyncio.run(main())


def test_a_released_lease_is_taken_at_once() -> None:
    server = FakeApiServer()

    async def main() -> None:
        async with connect(server) as client:
            first = make_lease(client, TestClock(), "one")
            await first.acquire()
            await first.release()
            assert not first.is_held()
            clock = TestClock()
            await make_lease(client, clock, "two").acquire()
            assert clock.now == 1000

    asyncio.run(main())


def test_renewing_writes_and_never_reads() -> None:
    server = FakeApiServer()

    async def main() -> None:
        async with connect(server) as client:
            clock = TestClock()
            lease = make_lease(client, clock, "one")
            await lease.acquire()
            server.requests.clear()
            keeping = asyncio.create_task(lease.keep())
            await eventually(lambda: len(server.requests) >= 5)
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)

    asyncio.run(main())
    assert set(server.verbs()) == {"PUT"}


def test_the_holder_stops_when_another_took_the_lease() -> None:
    server = FakeApiServer()

    async def main() -> None:
        async with connect(server) as client:
            lease = make_lease(client, TestClock(), "one")
            await lease.acquire()
            server.put(*KEY, holderIdentity="two", leaseDurationSeconds=15)
            with pytest.raises(LeaseLostError, match="another operator"):
                await lease.keep()
            assert not lease.is_held()

    asyncio.run(main())


def test_the_holder_stops_when_it_cannot_renew_before_others_may_lead() -> None:
    server = FakeApiServer()

    async def main() -> float:
        async with connect(server) as client:
            clock = TestClock()
            lease = make_lease(client, clock, "one")
            await lease.acquire()
            server.refusals = [status(500, "InternalError", "down") for _ in range(50)]
            with pytest.raises(LeaseLostError, match="in time"):
                await lease.keep()
            return clock.now - 1000

    assert asyncio.run(main()) <= 12  # before the 15 s after which another may lead


def test_a_frozen_process_knows_at_once_that_it_does_not_lead() -> None:
    async def main() -> None:
        async with connect(FakeApiServer()) as client:
            clock = TestClock()
            lease = make_lease(client, clock, "one")
            await lease.acquire()
            clock.now += 60
            assert not lease.is_held()

    asyncio.run(main())


def test_an_answer_that_was_lost_does_not_end_the_leadership() -> None:
    server = FakeApiServer()

    async def main() -> None:
        async with connect(server) as client:
            clock = TestClock()
            lease = make_lease(client, clock, "one")
            await lease.acquire()
            # Our own renewal arrived, its answer did not: the stored version is ahead of ours.
            server.put(*KEY, **server.objects[KEY]["spec"])
            before = len(server.requests)
            keeping = asyncio.create_task(lease.keep())
            await eventually(lambda: len(server.requests) >= before + 4)
            assert lease.is_held()
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)

    asyncio.run(main())
