"""`python3 -m stayer_evaluator.relay`: settings from the environment, then serve until SIGTERM."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass

import structlog
import uvicorn

from stayer_evaluator.logs import log_as_json
from stayer_evaluator.records import places
from stayer_evaluator.relay.app import MAX_OBJECT, Relay, make_app
from stayer_evaluator.relay.metrics import RelayMetrics
from stayer_evaluator.relay.server_keys import ApiServerKeys
from stayer_evaluator.relay.tokens import KeysUnavailable, TokenVerifier
from stayer_evaluator.storage.probe import UnsafeStore, probe_conditional_create
from stayer_evaluator.storage.retry import RetryingMutableStore, RetryPolicy
from stayer_evaluator.storage.s3 import S3Store
from stayer_evaluator.storage.settings import SettingsError, StoreSettings
from stayer_evaluator.storage.store import StoreError

STORE_DEADLINE = 20.0
"""Seconds: the sidecars repeat for minutes, so a request need not hang here that long."""
PROBE_EVERY = 10.0
EXIT_SETTINGS = 2
EXIT_UNSAFE_STORE = 6


@dataclass(frozen=True, slots=True)
class RelaySettings:
    """What the relay is told."""

    store: StoreSettings
    service_account: str = "stayer-trial"
    """Name of the account of trial pods, in whatever namespace."""
    port: int = places.RELAY_PORT
    max_object: int = MAX_OBJECT

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "RelaySettings":
        """Settings from STAYER_*. Raises SettingsError naming every variable that is wrong."""
        problems = []
        store = StoreSettings(bucket="")
        try:
            store = StoreSettings.from_env(env)
        except SettingsError as error:
            problems.append(str(error))
        numbers = {"STAYER_RELAY_PORT": places.RELAY_PORT, "STAYER_RELAY_MAX_OBJECT": MAX_OBJECT}
        for name in numbers:
            text = env.get(name) or str(numbers[name])
            if text.isascii() and text.isdigit() and int(text) > 0:
                numbers[name] = int(text)
            else:
                problems.append(f"{name}: found {text!r}; accepted: a whole number above 0")
        if problems:
            raise SettingsError("\n".join(problems))
        return cls(
            store=store,
            service_account=env.get("STAYER_TRIAL_SERVICE_ACCOUNT") or "stayer-trial",
            port=numbers["STAYER_RELAY_PORT"],
            max_object=numbers["STAYER_RELAY_MAX_OBJECT"],
        )


class Readiness:
    """Ready once the store has passed its probe and the cluster's keys are at hand."""

    def __init__(self, store: RetryingMutableStore, verifier: TokenVerifier) -> None:
        self._store = store
        self._verifier = verifier
        self._store_passed = False

    async def prove_store(self) -> None:
        """Repeat the probe until the store answers. Raises UnsafeStore."""
        log = structlog.get_logger()
        while not self._store_passed:
            try:
                await probe_conditional_create(self._store)
                self._store_passed = True
            except UnsafeStore:
                raise
            except StoreError as error:
                log.warning("store not ready", error=str(error))
                await asyncio.sleep(PROBE_EVERY)
        log.info("store passed its probe")

    async def missing(self) -> str:
        """What keeps the relay from being ready; empty when nothing does."""
        try:
            await self._verifier.ready()
        except KeysUnavailable as error:
            return f"the cluster's token keys cannot be read: {error}"
        return "" if self._store_passed else "the store has not passed its probe"


async def serve(settings: RelaySettings) -> int:
    """Serve until SIGTERM; returns the process's exit code."""
    store = RetryingMutableStore(
        S3Store(settings.store), RetryPolicy(deadline=STORE_DEADLINE, longest_wait=3.0)
    )
    verifier = TokenVerifier(ApiServerKeys(), service_account=settings.service_account)
    relay = Relay(store, verifier, RelayMetrics(), max_object=settings.max_object)
    readiness = Readiness(store, verifier)
    config = uvicorn.Config(
        make_app(relay, readiness.missing),
        host="0.0.0.0",  # noqa: S104 (a pod's only door)
        port=settings.port,
        access_log=False,
        log_level="warning",
        timeout_graceful_shutdown=30,
    )
    server = uvicorn.Server(config)
    async with asyncio.TaskGroup() as tasks:
        proof = tasks.create_task(_proven(readiness, server))
        await server.serve()
        if not proof.done():
            proof.cancel()
    return 0 if proof.cancelled() else proof.result()


async def _proven(readiness: Readiness, server: uvicorn.Server) -> int:
    try:
        await readiness.prove_store()
    except UnsafeStore as error:
        structlog.get_logger().error("the store is not safe for evidence", error=str(error))
        server.should_exit = True
        return EXIT_UNSAFE_STORE
    return 0


def main() -> int:
    """Entry point."""
    log_as_json()
    try:
        settings = RelaySettings.from_env(os.environ)
    except SettingsError as error:
        sys.stderr.write(f"stayer relay: settings cannot be used\n{error}\n")
        return EXIT_SETTINGS
    # uvicorn raises the signal that ended it once more; here it has done its work by then.
    signal.signal(signal.SIGTERM, lambda *_: None)
    return asyncio.run(serve(settings))


if __name__ == "__main__":
    sys.exit(main())
