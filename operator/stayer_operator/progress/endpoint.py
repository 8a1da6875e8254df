"""POST /v1/progress: who reports is proved by the pod's own projected token."""

from __future__ import annotations

from typing import Protocol

import structlog
from aiohttp import web
from pydantic import ValidationError

from stayer_evaluator.records.reports import ProgressReport
from stayer_evaluator.relay.tokens import Identity, KeysUnavailable, TokenRejected, trial_pod
from stayer_operator.core.observed import ObjectKey
from stayer_operator.progress.book import ProgressBook

log = structlog.get_logger(__name__)

LONGEST_REPORT = 16 * 1024
PATH = "/v1/progress"


class Verifier(Protocol):
    """Tells who a token's bearer is."""

    async def verify(self, token: str) -> Identity:
        """Raises TokenRejected, KeysUnavailable."""


class ProgressEndpoint:
    """204 taken, 400 not a report, 401 no valid token, 403 another pod's report, 410 about a trial
    that is over, 503 later.

    Serve it only once every Trial is observed: 410 makes a recorder that is being stopped give up
    what it could not save yet, since deleting a run must not wait for it.
    """

    def __init__(self, book: ProgressBook, verifier: Verifier) -> None:
        self._book = book
        self._verifier = verifier

    def application(self) -> web.Application:
        """The web application to serve."""
        application = web.Application(client_max_size=LONGEST_REPORT)
        application.router.add_post(PATH, self._handle)
        return application

    async def _handle(self, request: web.Request) -> web.Response:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            return web.Response(status=401, text="a bearer token is needed")
        try:
            pod = trial_pod(await self._verifier.verify(token.strip()))
        except TokenRejected as error:
            log.info("report refused", reason=str(error))
            return web.Response(status=401, text=str(error))
        except KeysUnavailable as error:
            log.warning("reports cannot be verified", error=str(error))
            return web.Response(status=503, text="tokens cannot be verified now")
        try:
            report = ProgressReport.from_bytes(await request.read())
        except ValidationError as error:
            return web.Response(status=400, text=f"not a report: {error.error_count()} problems")
        said = (report.trial, report.role, report.incarnation)
        if said != (pod.trial, pod.role.value, pod.incarnation):
            return web.Response(status=403, text="the report is about another pod")
        key = ObjectKey(pod.namespace, pod.trial)
        if not self._book.knows(key):
            return web.Response(status=410, text="the trial is over")
        self._book.take(key, report)
        return web.Response(status=204)
