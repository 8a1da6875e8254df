"""What these tests share: the installed product, and the runs, which all start at once.

Fixtures live as long as a module: the lock on the cluster is not held for the whole session.
"""

from __future__ import annotations

import socketserver
import subprocess
import threading
from collections.abc import Iterator

import pytest

from makers_cluster import Api, ClusterLock, Installed, run_manifest, unique_name, until
from makers_outcome import Evidence, read_evidence
from makers_own_operator import run_namespace
from makers_pods import (
    NOP,
    Addresses,
    Runs,
    find_addresses,
    looking_agent,
    prying_agent,
    task_digest,
)
from makers_store import free_port
from makers_taskset import TASKSET, push_examples

# Clouds answer here with the machine's credentials.
METADATA = "169.254.169.254"
METADATA_LINK = "stayer-pods-md"


@pytest.fixture(scope="module")
def installed() -> Iterator[Installed]:
    """The product, its operator Ready and the tests' task set pushed; others may use it too."""
    with ClusterLock().held(alone=False):
        push_examples()
        found = Installed(Api())
        until(found.is_calm, "one ready operator", 120)
        yield found
        found.api.close()


@pytest.fixture(scope="module")
def namespace(installed: Installed) -> Iterator[str]:
    """A namespace for runs that the installed operator does not serve."""
    with run_namespace(installed.api, unique_name("stayer-pods")) as name:
        yield name


@pytest.fixture(scope="module")
def metadata() -> Iterator[str]:
    """A server at the metadata address, on a link of this test's own on the node."""
    # A bridge, because not every kernel has dummy links. The port is a free one, so that nobody
    # who stubs the address at the same time is in the way.
    subprocess.run(["ip", "link", "add", METADATA_LINK, "type", "bridge"], check=True)
    try:
        address = ["ip", "address", "add", f"{METADATA}/32", "dev", METADATA_LINK]
        subprocess.run(address, check=True)
        subprocess.run(["ip", "link", "set", METADATA_LINK, "up"], check=True)
        handler = socketserver.BaseRequestHandler
        with socketserver.ThreadingTCPServer((METADATA, free_port()), handler) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            yield f"{METADATA}:{server.server_address[1]}"
            server.shutdown()
            thread.join()
    finally:
        subprocess.run(["ip", "link", "delete", METADATA_LINK], check=True)


@pytest.fixture(scope="module")
def addresses(installed: Installed, metadata: str) -> Addresses:
    """Of this cluster."""
    return find_addresses(installed, metadata)


@pytest.fixture(scope="module")
def runs(installed: Installed, addresses: Addresses) -> Iterator[Runs]:
    """All at once: waiting for one is waiting for the others."""
    digest = task_digest()
    prying = installed.apply(run_manifest([prying_agent(addresses, digest)], taskset=TASKSET))
    off, preferred = (
        installed.apply(run_manifest([NOP], taskset=TASKSET, userNamespaces=setting))
        for setting in ("off", "preferred")
    )
    looking = [looking_agent(addresses, digest)]
    opened = installed.apply(run_manifest(looking, taskset=TASKSET, network="open"))
    every = (prying, off, preferred, opened)
    yield Runs(*every)
    for run in every:
        run.delete()
    for run in every:
        run.wait_for_nothing()


@pytest.fixture(scope="module")
def prying(runs: Runs) -> Evidence:
    """What is kept of the prying agent's trial."""
    runs.prying.wait_for_end(180)
    return read_evidence(runs.prying.only()["spec"]["prefix"])
