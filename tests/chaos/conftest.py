"""One calm run, which every disturbed one must equal; the lock between test processes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from makers_chaos import WORKER, finish
from makers_cluster import Api, ClusterLock, Installed, run_manifest, until
from makers_faults import Audit
from makers_outcome import Outcome
from makers_taskset import TASKSET, push_examples


@pytest.fixture(scope="session")
def tasks() -> str:
    """The tests' task set."""
    push_examples()
    return TASKSET


@pytest.fixture(scope="session")
def installed(tasks: str) -> Iterator[Installed]:
    """The product, with its operator Ready."""
    found = Installed(Api())
    until(found.is_calm, "one ready operator", 120)
    yield found
    found.api.close()


@pytest.fixture(scope="session")
def calm(installed: Installed) -> Outcome:
    """How the worker fares when nothing happens."""
    with ClusterLock().held(alone=False):
        audit = Audit()
        run = installed.apply(run_manifest([WORKER], taskset=TASKSET))
        [outcome] = finish(run, audit)
    return outcome


@pytest.fixture
def alone(installed: Installed) -> Iterator[None]:
    """Nobody else uses the cluster meanwhile, and it is well again afterwards."""
    with ClusterLock().held(alone=True):
        until(installed.is_calm, "one ready operator", 120)
        yield
        until(installed.is_calm, "one ready operator again", 120)


@pytest.fixture
def together() -> Iterator[None]:
    """Others may use the cluster too."""
    with ClusterLock().held(alone=False):
        yield
