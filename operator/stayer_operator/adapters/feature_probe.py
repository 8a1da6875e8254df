"""Finds out by probe pods what the nodes' runtime can do; core/features decides, this asks.

One LIST where the answer is known already. Idempotent: pods have names that follow from the
question, and what they left is the answer; killed anywhere, the next start goes on from there.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import structlog

from stayer_operator.adapters.api_client import ApiClient, Resource
from stayer_operator.adapters.cluster import PODS
from stayer_operator.core.features.decide import (
    EVERY,
    Decided,
    Features,
    Finding,
    Outcome,
    Try,
    Variant,
    Wait,
    Wanted,
    assume,
    decide,
    variants,
)
from stayer_operator.core.features.judge import Patience, judge
from stayer_operator.core.features.pod import Owner, Question, build_probe_pod
from stayer_operator.core.observed import PodView
from stayer_operator.core.projection import pod_view
from stayer_operator.errors import (
    AlreadyExists,
    ClusterError,
    ClusterUnavailable,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    QuotaExceeded,
)

log = structlog.get_logger(__name__)

DEPLOYMENTS = Resource(group="apps", version="v1", plural="deployments")
LOOK_SECONDS = 0.5
RETRY_SECONDS = 2.0
TRIES = 2  # of a variant whose pod is ended from outside
# RBAC's own words (k8s.io/apiserver): our role lacks the verb, which says nothing about pods.
NOT_ALLOWED = "cannot create resource"


class FeatureProbe:
    """One search for an answer."""

    def __init__(
        self,
        client: ApiClient,
        question: Question,
        *,
        deployment: str = "",
        patience: Patience | None = None,
        may_write: Callable[[], bool] = lambda: True,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`deployment` owns the pods; empty: nobody does. Nothing is written while `may_write`
        says no. `now` is compared with times that the API server wrote.
        """
        self._client = client
        self._question = question
        self._deployment = deployment
        self._patience = patience or Patience()
        self._may_write = may_write
        self._now = now
        self._sleep = sleep
        self._refused: dict[Variant, Finding] = {}
        self._tries: Counter[Variant] = Counter()

    async def find(self, wanted: Wanted) -> Features:
        """What trial pods are to be made with. Asks nothing where everything is set.

        Bounded by `Patience` for each variant, but for an API server that does not answer.
        """
        while True:
            try:
                step = await self._step(wanted)
            except Forbidden as error:
                return assume(wanted, str(error))
            except ClusterError as error:
                log.warning("cannot probe yet", error=str(error))
                await self._sleep(RETRY_SECONDS)
                continue
            if isinstance(step, Decided):
                return step.features
            await self._sleep(LOOK_SECONDS)

    async def _step(self, wanted: Wanted) -> Decided | Wait:
        """Look once, and create what is missing."""
        step = decide(wanted, {})
        if isinstance(step, Decided):
            return step
        pods = {pod.name: pod for pod in await self._list()}
        findings = self._findings(wanted, pods)
        step = decide(wanted, findings)
        if isinstance(step, Try):
            await self._try(step.variant, pods.get(self._question.pod_name(step.variant)))
            return Wait(variant=step.variant)
        if isinstance(step, Decided):
            await self._tidy(pods, findings)
        return step

    def _findings(self, wanted: Wanted, pods: dict[str, PodView]) -> dict[Variant, Finding]:
        found = dict(self._refused)
        for variant in variants(wanted):
            pod = pods.get(self._question.pod_name(variant))
            if pod is None:
                continue
            finding = judge(pod, self._now(), self._patience)
            if finding.outcome is Outcome.LOST and self._tries[variant] >= TRIES:
                finding = Finding(outcome=Outcome.UNCLEAR, message=finding.message)
            found[variant] = finding
        return found

    async def _try(self, variant: Variant, lost: PodView | None) -> None:
        """Create a variant's pod; one that was ended from outside goes first."""
        if lost is not None:
            await self._delete(lost)
            return
        self._tries[variant] += 1
        owner = await self._owner()
        manifest = build_probe_pod(self._question, variant, owner)
        log.info("probing", pod=manifest["metadata"]["name"])
        try:
            await self._write("create", "POST", PODS.path(self._question.namespace), manifest)
        except AlreadyExists:
            pass  # by another operator, or by a request of ours whose answer was lost
        except (Invalid, Forbidden) as error:
            self._refused[variant] = refusal(error)

    async def _owner(self) -> Owner | None:
        if not self._deployment:
            return None
        path = DEPLOYMENTS.path(self._question.namespace, self._deployment)
        try:
            found = await self._client.request("get", "GET", path)
        except (NotFound, Forbidden) as error:
            log.warning("the probe pod will belong to nobody", error=str(error))
            return None
        secrets = found["spec"]["template"]["spec"].get("imagePullSecrets") or ()
        return Owner(
            name=self._deployment,
            uid=found["metadata"]["uid"],
            pull_secrets=tuple(secret["name"] for secret in secrets),
        )

    async def _tidy(self, pods: dict[str, PodView], findings: dict[Variant, Finding]) -> None:
        """Delete the pods of earlier questions, and those that told nothing: asked again at the
        next start. Best effort: they do no harm.
        """
        answers = {
            self._question.pod_name(variant)
            for variant in EVERY
            if variant not in findings or findings[variant].outcome is not Outcome.UNCLEAR
        }
        for pod in pods.values():
            if pod.name not in answers and pod.deletion is None:
                try:
                    await self._delete(pod)
                except ClusterError as error:
                    log.warning("an old probe pod stays", pod=pod.name, error=str(error))

    async def _list(self) -> list[PodView]:
        path = PODS.path(self._question.namespace)
        params = {"labelSelector": self._question.selector}
        answer = await self._client.request("list", "GET", path, params=params)
        return [pod_view(item) for item in answer.get("items") or ()]

    async def _delete(self, pod: PodView) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": pod.uid},
            "gracePeriodSeconds": 0 if pod.is_terminal or not pod.node else 1,
        }
        with suppress(NotFound, Conflict):  # gone, or another one by now
            await self._write("delete", "DELETE", PODS.path(pod.namespace, pod.name), body)

    async def _write(self, verb: str, method: str, path: str, body: Any) -> None:
        if not self._may_write():
            raise ClusterUnavailable(f"{method} {path}: not sent, another operator may lead now")
        await self._client.request(verb, method, path, body=body)


def refusal(error: ClusterError) -> Finding:
    """What it means that the API server did not take a probe pod."""
    message = str(error)
    if isinstance(error, Invalid):
        return Finding(outcome=Outcome.DID_NOT_RUN, message=message)
    if isinstance(error, QuotaExceeded) or NOT_ALLOWED in message:
        return Finding(outcome=Outcome.UNCLEAR, message=message)
    return Finding(outcome=Outcome.FORBIDDEN, message=message)
