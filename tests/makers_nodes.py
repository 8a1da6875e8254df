"""Scheduler, kubelets and taint manager of a small deterministic world."""

from __future__ import annotations

from collections.abc import Callable

from makers_sidecars import Object, PodEnd, Sidecars, sidecar_of
from stayer_evaluator.records.reports import TerminationMessage
from stayer_operator.adapters.memory_cluster import NODE, POD, MemoryCluster
from stayer_operator.adapters.memory_time import MemoryClock
from stayer_operator.core.projection import parse_time
from stayer_operator.core.trial.status import render_time


class Nodes:
    """The machines, and everything about pods that the operator does not do."""

    def __init__(self, cluster: MemoryCluster, clock: MemoryClock, sidecars: Sidecars) -> None:
        self._cluster = cluster
        self._clock = clock
        self._sidecars = sidecars
        self.schedulable: Callable[[Object], bool] = lambda pod: True
        self.pod_runs: Callable[[Object], bool] = lambda pod: True
        self.silent: dict[str, bool] = {}  # nodes that the API server does not hear of; dead?
        self.slow_stop = 0.0  # seconds that a deleted pod takes to end
        self.add("node-1")

    def add(self, name: str) -> None:
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": self._stamp()}
        self._cluster.create(NODE, {"metadata": {"name": name}, "status": {"conditions": [ready]}})

    async def tick(self) -> None:
        """One second of every pod."""
        for pod in list(self._cluster.objects(POD)):
            await self._advance(pod)
        self._evict_from_silent_nodes()

    # What happens to pods and nodes.

    def end_pod(self, pod: Object, exit_code: int, reason: str, message: str = "") -> None:
        """The task container ends and takes the sidecar along."""
        stopped = TerminationMessage(kind="stopped")
        self._write_end(pod, PodEnd(exit_code, reason, stopped, 143, message))

    def refuse(self, pod: Object, reason: str) -> None:
        """The sidecar ends with exit code 4 and waits to be restarted."""
        said = TerminationMessage(kind="error", reason=reason, message="10.96.0.1:443 answers")
        end = {"exitCode": 4, "reason": "Error", "message": said.to_bytes().decode()}

        def crash(pod: Object) -> None:
            pod["status"]["initContainerStatuses"] = [
                {
                    "name": sidecar_of(pod),
                    "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                    "lastState": {"terminated": end},
                    "restartCount": 1,
                }
            ]

        self._update(pod, crash)

    def silence(self, node: str, *, dead: bool = True) -> None:
        """A node is not heard of any more: dead, or only cut off while its pods work on. A fresh
        one takes its place.
        """
        self.silent[node] = dead
        self.add(f"{node}-next")
        ready = {"type": "Ready", "status": "Unknown", "lastTransitionTime": self._stamp()}
        self._cluster.update(NODE, "", node, lambda held: held["status"].update(conditions=[ready]))

    def _evict_from_silent_nodes(self) -> None:
        """The taint manager deletes the pods of a node that was silent for five minutes."""
        for pod in self._cluster.objects(POD):
            node = self._cluster.find(NODE, "", pod["spec"].get("nodeName", ""))
            if node is None or node["metadata"]["name"] not in self.silent:
                continue
            since = parse_time(node["status"]["conditions"][0]["lastTransitionTime"]) or 0
            if self._clock.now() - since >= 300 and not pod["metadata"].get("deletionTimestamp"):
                self._update(pod, self._mark_deleted)

    def _mark_deleted(self, pod: Object) -> None:
        pod["metadata"]["deletionTimestamp"] = render_time(self._clock.now() + 600)
        pod["metadata"]["deletionGracePeriodSeconds"] = 600

    # Scheduler and kubelet.

    async def _advance(self, pod: Object) -> None:
        status, metadata = pod["status"], pod["metadata"]
        if self._cluster.find(POD, metadata["namespace"], metadata["name"]) is not pod:
            return
        node = pod["spec"].get("nodeName")
        if node in self.silent:
            if not self.silent[node] and status.get("phase") == "Running":
                await self._work(pod)
        elif metadata.get("deletionTimestamp"):
            self._terminate(pod)
        elif status.get("phase") in ("Succeeded", "Failed"):
            return
        elif not node:
            self._schedule(pod)
        elif status.get("phase") == "Pending":
            if self.pod_runs(pod):
                self._start(pod)
        else:
            await self._work(pod)

    async def _work(self, pod: Object) -> None:
        end = await self._sidecars.work(pod)
        if end is not None:
            self._write_end(pod, end)

    def _schedule(self, pod: Object) -> None:
        fits = self.schedulable(pod)
        condition = {
            "type": "PodScheduled",
            "status": "True" if fits else "False",
            "reason": "" if fits else "Unschedulable",
            "message": "" if fits else "0/1 nodes are available: 1 Insufficient cpu.",
            "lastTransitionTime": self._stamp(),
        }
        old = pod["status"].get("conditions") or [{}]
        if old[0].get("status") == condition["status"]:
            return

        def bind(pod: Object) -> None:
            if fits:
                pod["spec"]["nodeName"] = self._free_node()
            pod["status"]["conditions"] = [condition]

        self._update(pod, bind)

    def _free_node(self) -> str:
        nodes = [node["metadata"]["name"] for node in self._cluster.objects(NODE)]
        return next(name for name in nodes if name not in self.silent)

    def _start(self, pod: Object) -> None:
        state = {"running": {"startedAt": self._stamp()}}

        def start(pod: Object) -> None:
            pod["status"] |= {
                "phase": "Running",
                "startTime": self._stamp(),
                "initContainerStatuses": [
                    {"name": sidecar_of(pod), "state": state, "started": True, "restartCount": 0}
                ],
                "containerStatuses": [{"name": "task", "state": state, "restartCount": 0}],
            }

        self._update(pod, start)

    def _terminate(self, pod: Object) -> None:
        """A deleted pod: its containers are stopped, in the next tick the kubelet lets it go."""
        metadata = pod["metadata"]
        left = (parse_time(metadata["deletionTimestamp"]) or 0) - self._clock.now()
        if pod["status"].get("phase") == "Running":
            grace = metadata.get("deletionGracePeriodSeconds") or 0
            if left <= 0 or grace - left >= self.slow_stop:
                self.end_pod(pod, 143, "Error")
        else:
            self._cluster.remove(POD, metadata["namespace"], metadata["name"])

    def _write_end(self, pod: Object, end: PodEnd) -> None:
        if pod["spec"].get("nodeName") in self.silent:
            return  # it has ended, and nobody hears of it
        text = end.said.to_bytes().decode() if end.said is not None else ""
        sidecar = {"exitCode": end.sidecar_code, "reason": "Completed", "message": text}
        task = {"exitCode": end.exit_code, "reason": end.reason, "message": ""}

        def finish(pod: Object) -> None:
            pod["status"] |= {
                "phase": "Succeeded" if end.exit_code == 0 else "Failed",
                "message": end.message,
                "initContainerStatuses": [{"name": sidecar_of(pod), "state": self._ended(sidecar)}],
                "containerStatuses": [{"name": "task", "state": self._ended(task)}],
            }

        self._sidecars.forget(pod)
        self._update(pod, finish)

    def _ended(self, how: Object) -> Object:
        return {"terminated": {**how, "finishedAt": self._stamp()}}

    def _update(self, pod: Object, change: Callable[[Object], None]) -> None:
        metadata = pod["metadata"]
        self._cluster.update(POD, metadata["namespace"], metadata["name"], change)

    def _stamp(self) -> str | None:
        return render_time(self._clock.now())
