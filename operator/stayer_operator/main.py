"""The composition root: settings → adapters → loop → kopf.

Order of life: serve /healthz; become the leader; see that our kinds are there; list everything;
become Ready and reconcile. Ends with 0 on SIGTERM, with 1 when the lease is lost or a part fails:
the kubelet starts it again, and everything is rebuilt from the API server and the object store.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from typing import Any, TypeVar

import structlog

from stayer_evaluator.relay.tokens import TokenVerifier
from stayer_evaluator.storage.probe import UnsafeStore, probe_conditional_create
from stayer_evaluator.storage.retry import RetryingMutableStore
from stayer_evaluator.storage.s3 import connect_s3
from stayer_evaluator.storage.store import StoreError
from stayer_operator.adapters.api_client import ApiClient, ClientLimits
from stayer_operator.adapters.clock import SystemClock
from stayer_operator.adapters.cluster import KubernetesCluster
from stayer_operator.adapters.connection import Connection, find_connection
from stayer_operator.adapters.discovery import missing_kinds, service_address
from stayer_operator.adapters.lease import Lease, LeaseLostError, LeaseSettings
from stayer_operator.adapters.token_keys import ClientKeys
from stayer_operator.adapters.web import monitoring, serving
from stayer_operator.core.features.decide import Features
from stayer_operator.core.pods.settings import PodSettings
from stayer_operator.core.run.settings import RunSettings
from stayer_operator.errors import ClusterError, SettingsError
from stayer_operator.handlers.runs import watch_runs
from stayer_operator.progress.endpoint import ProgressEndpoint
from stayer_operator.reconcile.loop import LoopPace, ReconcileLoop
from stayer_operator.settings import Settings, read_settings
from stayer_operator.telemetry.logs import set_up_logging
from stayer_operator.wiring import Sight, find_features

log = structlog.get_logger(__name__)

T = TypeVar("T")

RETRY_SECONDS = 2.0
TRIM_SECONDS = 20.0  # a few milliseconds each
COLLECTOR_THRESHOLDS = (5_000, 20, 20)  # new containers, then collections of the generation below
ENDING_SECONDS = 12.0  # below the pod's termination grace
STORE_DEADLINE = 10.0  # of one call; the queue's back-off goes on from there


def main() -> int:
    """Run the operator; the process's exit code."""
    try:
        settings = read_settings(os.environ)
        connection = find_connection(os.environ)
    except SettingsError as error:
        sys.stderr.write(f"stayer-operator: {error}\n")
        return 2
    set_up_logging(settings.serving.log_level)
    try:
        return asyncio.run(Operator(settings, connection).run())
    except SettingsError as error:
        log.error("cannot start", error=str(error))
        return 2


class Operator:
    """One process from its start to its end."""

    def __init__(self, settings: Settings, connection: Connection) -> None:
        self._settings = settings
        self._connection = connection
        self._sight = Sight()
        self._stop = asyncio.Event()
        self._broken = asyncio.Event()
        self._ready = False
        self._closing = AsyncExitStack()

    async def run(self) -> int:
        """Work until told to stop, or until a part fails; the exit code."""
        take_signals(self._stop)
        async with self._closing:
            monitor = monitoring(self._sight.registry, lambda: self._ready)
            await self._closing.enter_async_context(
                serving(monitor, self._settings.serving.metrics_port)
            )
            client, lease = self._connect()
            leading = asyncio.create_task(self._lead(client, lease), name="operator")
            waits = {leading, *(asyncio.create_task(e.wait()) for e in (self._stop, self._broken))}
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            self._ready = False
            log.info("ending", told=self._stop.is_set())
            code = await end(leading)
            await end_all(waits)
            await lease.release()
        return code

    def _connect(self) -> tuple[ApiClient, Lease]:
        pace, place = self._settings.pace, self._settings.installation
        limits = ClientLimits(rate=pace.api_rate, burst=pace.api_burst)
        count = self._sight.metrics.api_requested
        client = ApiClient(self._connection, limits, count)
        self._closing.push_async_callback(client.close)
        # Its own connection and bucket: renewals must not wait behind a burst of pods.
        lease_limits = ClientLimits(request_seconds=5, connect_seconds=3, retry_seconds=0)
        lease_client = ApiClient(self._connection, lease_limits, count)
        self._closing.push_async_callback(lease_client.close)
        lease_settings = LeaseSettings(
            namespace=place.namespace,
            name=self._settings.serving.lease_name,
            identity=place.identity,
        )
        return client, Lease(lease_client, lease_settings)

    async def _lead(self, client: ApiClient, lease: Lease) -> None:
        """Become the leader and work until cancelled; raises when a part ends."""
        await lease.acquire()
        async with AsyncExitStack() as stack, asyncio.TaskGroup() as parts:
            self._start(parts, "lease", lease.keep())
            await self._work(client, lease, parts, stack)
            self._ready = True
            spare_the_collector()
            self._start(parts, "memory", keep_small())
            trials, runs = len(self._sight.view.trial_mirror), len(self._sight.view.run_mirror)
            log.info("ready", runs=runs, trials=trials)

    async def _work(
        self, client: ApiClient, lease: Lease, parts: asyncio.TaskGroup, stack: AsyncExitStack
    ) -> None:
        """Start all that the leader does; returns once it sees the whole cluster."""
        await wait_for_kinds(client)
        pods = await self._pod_settings(client)
        store = connect_s3(replace(self._settings.store, deadline=STORE_DEADLINE))
        self._start(parts, "store probe", probe(store))
        await self._look(client, parts)
        await self._take_reports(client, stack)
        features = await find_features(
            self._settings, client, self._sight.view.node_mirror, lease.is_held
        )
        self._sight.metrics.features_known(features)
        cluster = KubernetesCluster(
            client,
            onlooker=self._sight.view,
            may_write=lease.is_held,
            instance=self._settings.installation.pod_name,
        )
        self._start(parts, "reconciling", self._reconcile(cluster, store, pods, features))

    async def _look(self, client: ApiClient, parts: asyncio.TaskGroup) -> None:
        """List everything, then follow it."""
        namespaces = self._settings.installation.run_namespaces
        informers = self._sight.informers(client, namespaces)
        for informer in informers:
            self._start(parts, "informer", informer.run())
        for informer in informers:
            await informer.synced.wait()
        feed = self._sight.run_feed(client, namespaces)
        await until_answered(feed.compare)
        self._start(parts, "runs", feed.run())
        watching = watch_runs(
            self._connection, namespaces, feed.take, started=lambda: take_signals(self._stop)
        )
        self._start(parts, "kopf", watching)

    async def _take_reports(self, client: ApiClient, stack: AsyncExitStack) -> None:
        account = self._settings.trial_pods.service_account
        verifier = TokenVerifier(ClientKeys(client), service_account=account)
        endpoint = ProgressEndpoint(self._sight.book, verifier)
        port = self._settings.serving.progress_port
        await stack.enter_async_context(serving(endpoint.application(), port))

    async def _pod_settings(self, client: ApiClient) -> PodSettings:
        """What trial pods have in common; asks for the Services' addresses."""
        ours = self._settings.trial_pods

        async def address(known: str, url: str, variable: str) -> str:
            return known or await until_answered(lambda: service_address(client, url, variable))

        return PodSettings(
            evaluator_image=ours.evaluator_image,
            runner_image=ours.runner_image,
            our_pull_policy=ours.pull_policy,
            relay_url=ours.relay_url,
            relay_ip=await address(ours.relay_ip, ours.relay_url, "STAYER_RELAY_IP"),
            progress_url=ours.progress_url,
            progress_ip=await address(ours.progress_ip, ours.progress_url, "STAYER_PROGRESS_IP"),
            must_fail=ours.must_fail,
            service_account=ours.service_account,
            priority_class=ours.priority_class,
        )

    def _start(self, parts: asyncio.TaskGroup, name: str, work: Coroutine[Any, Any, None]) -> None:
        """Run a part that must not end; when it does, the operator ends."""

        async def never_ending() -> None:
            try:
                await work
            except Exception:
                self._broken.set()
                raise
            self._broken.set()
            raise PartEndedError(f"{name} ended by itself")

        parts.create_task(never_ending(), name=name)

    async def _reconcile(
        self,
        cluster: KubernetesCluster,
        store: RetryingMutableStore,
        pods: PodSettings,
        features: Features,
    ) -> None:
        """The loop, over everything that was seen so far and all that changes."""
        settings = self._settings
        loop = ReconcileLoop(
            cluster=cluster,
            evidence=store,
            observed=self._sight.view,
            clock=SystemClock(),
            telemetry=self._sight.metrics,
            pod_settings=replace(
                pods,
                runner_delivery=features.delivery,
                user_namespaces_found=features.user_namespaces,
            ),
            run_settings=RunSettings(
                operator_namespace=settings.installation.namespace,
                progress_port=settings.serving.progress_port,
                no_user_namespaces=features.no_user_namespaces,
                open_network=settings.open_network,
                versions={"stayer": settings.installation.version},
            ),
            pace=LoopPace(workers=settings.pace.workers),
        )
        self._sight.listen(
            on_run=loop.run_changed,
            on_trial=loop.trial_changed,
            on_pods=loop.pods_changed,
            on_report=loop.progress_reported,
        )
        await loop.run()


class PartEndedError(Exception):
    """A part of the operator that runs for ever did not."""


async def end(task: asyncio.Task[None]) -> int:
    """Cancel the task if it runs, and say how it ended: 0 cancelled, 1 failed, 2 not set up.

    One that does not end takes the process with it: whoever does not lead must not linger.
    """
    task.cancel()
    await asyncio.wait({task}, timeout=ENDING_SECONDS)
    if not task.done():
        log.error("a part does not end; leaving without it")
        os._exit(1)
    if task.cancelled():
        return 0
    error = task.exception()
    return 0 if error is None else report_failure(innermost(error))


async def end_all(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks whose outcome does not matter any more."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def spare_the_collector() -> None:
    """Tell the garbage collector what lasts: all that was imported and seen so far.

    Every event is a document of hundreds of small dictionaries, and with Python's own thresholds
    each fourth of them makes the collector walk through everything anew.
    """
    gc.collect()
    give_back_memory()
    gc.freeze()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)


async def keep_small() -> None:
    """Events and answers of 16 KB and more come and go, and leave holes between what stays."""
    while True:
        await asyncio.sleep(TRIM_SECONDS)
        give_back_memory()


def give_back_memory() -> None:
    """What was freed goes back to the kernel, where the C library can do that (glibc)."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def innermost(error: BaseException) -> BaseException:
    """The first error of nested groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def report_failure(error: BaseException) -> int:
    """Tell the log why the process ends; its exit code."""
    if isinstance(error, SettingsError):
        log.error("cannot work with these settings", error=str(error))
        return 2
    if isinstance(error, LeaseLostError | UnsafeStore):
        log.error("ending", error=str(error))
        return 1
    log.error("ending: a part failed", exc_info=error)
    return 1


def take_signals(stop: asyncio.Event) -> None:
    """SIGTERM and SIGINT end the process in order."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)


async def wait_for_kinds(client: ApiClient) -> None:
    """Wait until the API server serves our kinds: the chart may still be installing them."""
    while missing := await until_answered(lambda: missing_kinds(client)):
        log.warning("waiting for custom resource definitions", missing=list(missing))
        await asyncio.sleep(RETRY_SECONDS)


async def until_answered(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask the API server until it answers."""
    while True:
        try:
            return await ask()
        except ClusterError as error:
            log.warning("the API server does not answer as it should", error=str(error))
            await asyncio.sleep(RETRY_SECONDS)


async def probe(store: RetryingMutableStore) -> None:
    """Prove once that the store keeps what was written first; then sleep for ever.

    A store that does not answer is asked again: the operator has work without it. Raises
    UnsafeStore for one that lets two writers win: evidence in it would prove nothing.
    """
    while True:
        try:
            await probe_conditional_create(store)
        except UnsafeStore:
            raise
        except StoreError as error:
            log.warning("the object store does not answer as it should", error=str(error))
            await asyncio.sleep(RETRY_SECONDS)
        else:
            log.info("the object store keeps what was written first")
            await asyncio.Event().wait()
