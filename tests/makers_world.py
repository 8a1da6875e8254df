"""A small deterministic world around the operator: people, nodes, sidecars, garbage collector.

Time moves in ticks of one second. Nothing is random.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from makers_nodes import Nodes
from makers_run import make_record
from makers_sidecars import NAMESPACE, START, Object, Sidecars, name_of
from stayer_evaluator.records.results import TrialResults
from stayer_evaluator.storage.memory import MemoryStore
from stayer_operator.adapters.memory_cluster import CONFIG_MAP, POD, MemoryCluster, Request
from stayer_operator.adapters.memory_time import MemoryClock
from stayer_operator.api import names
from stayer_operator.core.trial.status import render_time

TERMINAL = ("Succeeded", "Failed", "Cancelled")


def make_world_run(name: str = "demo", **changes: Any) -> Object:
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.RUN_KIND,
        "metadata": {"namespace": NAMESPACE, "name": name},
        "spec": {
            "benchmark": "loops",
            "tasks": {"source": {"configMap": {"name": "tasks"}}},
            "matrix": {
                "agents": [
                    {"name": "oracle", "harness": "oracle"},
                    {"name": "nop", "harness": "nop"},
                ]
            },
            "parallelism": 4,
            **changes,
        },
    }


class World:
    """The cluster and everything in it but the operator."""

    def __init__(self, runs: Iterable[Object] | None = None) -> None:
        self.clock = MemoryClock(START)
        self.cluster = MemoryCluster(self.clock)
        self.store = MemoryStore()
        self.sidecars = Sidecars(self.cluster, self.store)
        self.nodes = Nodes(self.cluster, self.clock, self.sidecars)
        self.ticks = 0
        self.disturbances: list[tuple[Callable[[World], bool], Callable[[World], None]]] = []
        self.most_live: Counter[tuple[str, str]] = Counter()
        self.cluster.listen(self._count_live)
        record = make_record("parser")
        self.cluster.create(
            CONFIG_MAP,
            {
                "metadata": {"namespace": NAMESPACE, "name": "tasks"},
                "data": {"parser.json": record.to_bytes().decode()},
            },
        )
        for run in runs if runs is not None else [make_world_run()]:
            self.cluster.create(names.RUN_KIND, run)

    def stamp(self) -> str | None:
        return render_time(self.clock.now())

    def when(self, condition: Callable[[World], bool], do: Callable[[World], None]) -> None:
        """Once, in the first tick in which the condition holds."""
        self.disturbances.append((condition, do))

    async def tick(self) -> None:
        """One second."""
        self.ticks += 1
        self.clock.advance(1)
        for entry in list(self.disturbances):
            if entry[0](self):
                self.disturbances.remove(entry)
                entry[1](self)
        self.cluster.collect_garbage()
        await self.nodes.tick()

    def edit_run(self, name: str = "demo", **changes: Any) -> None:
        """A person changes the spec."""
        self.cluster.update(
            names.RUN_KIND, NAMESPACE, name, lambda run: run["spec"].update(changes)
        )

    # What is there.

    def pods(self, role: str = "") -> list[Object]:
        return [pod for pod in self.cluster.objects(POD) if f"-{role}" in name_of(pod)]

    def live_pods(self) -> list[Object]:
        return [p for p in self.pods() if p["status"].get("phase") not in ("Succeeded", "Failed")]

    def trials(self) -> list[Object]:
        return self.cluster.objects(names.TRIAL_KIND)

    def running(self, role: str) -> list[Object]:
        """Pods of attempts whose task container runs."""
        return [
            pod
            for pod in self.cluster.objects(POD)
            if f"-{role}-" in name_of(pod)
            and "-inv-" not in name_of(pod)
            and pod["status"].get("phase") == "Running"
        ]

    def agent_of(self, pod: Object) -> str:
        """The agent of the matrix that works in it."""
        trial = pod["metadata"]["labels"][names.LABEL_TRIAL]
        found = self.cluster.find(names.TRIAL_KIND, NAMESPACE, trial)
        return str(found["spec"].get("agent")) if found is not None else ""

    def oracle_pod(self, role: str, ticks: int = 2) -> Object | None:
        """The oracle's pod of a role once its sidecar has worked for some ticks."""
        for pod in self.running(role):
            if self.agent_of(pod) == "oracle" and self.sidecars.ticks_of(pod) >= ticks:
                return pod
        return None

    def phases(self) -> dict[str, str]:
        return {name_of(trial): trial["status"].get("phase", "") for trial in self.trials()}

    def run_status(self, name: str = "demo") -> Object:
        run = self.cluster.find(names.RUN_KIND, NAMESPACE, name)
        return (run or {}).get("status") or {}

    # What came of it.

    def creations(self) -> Counter[str]:
        """Pod POSTs answered 201, by pod name."""
        return Counter(
            line.name
            for line in self.cluster.audit
            if (line.verb, line.kind, line.code) == ("create", POD, 201)
        )

    def writes(self, *kinds: str) -> list[Request]:
        return [line for line in self.cluster.audit if line.kind in kinds and line.code < 300]

    def is_over(self) -> bool:
        """All runs are complete and no pod is left."""
        runs = self.cluster.objects(names.RUN_KIND)
        over = [(run.get("status") or {}).get("phase") in TERMINAL for run in runs]
        return all(over) and not self.cluster.objects(POD)

    def outcomes(self) -> dict[str, Any]:
        """What must be the same however it went: results and final statuses, without what tells
        of the way there.
        """
        results = {}
        for key, data in self.store.objects.items():
            if key.endswith("/results.json") and key.count("/") == 4:
                found = TrialResults.from_bytes(data)
                results[found.trial] = (
                    found.valid, found.failure_mode, found.metrics, found.snapshots_taken,
                )  # fmt: skip
        fields = ("phase", "unitsCleared", "unitsTotal", "resolved", "failureMode")
        statuses = {
            name_of(trial): {name: trial["status"].get(name) for name in fields}
            for trial in self.trials()
        }
        return {"results": results, "statuses": statuses}

    def _count_live(self, type_: str, kind: str, raw: Any) -> None:
        if kind != POD:
            return
        self.most_live |= Counter(
            (labels[names.LABEL_TRIAL], labels[names.LABEL_ROLE])
            for pod in self.cluster.objects(POD)
            if pod["status"].get("phase") not in ("Succeeded", "Failed")
            and (labels := pod["metadata"]["labels"])
        )
