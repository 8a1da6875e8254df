"""Talks to the cluster as its administrator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from local_cluster.commands import read_output, try_command
from local_cluster.errors import NOT_UP, NOT_UP_ADVICE, LocalClusterError
from local_cluster.settings import Places


@dataclass(frozen=True)
class Kubectl:
    """One kubectl with one kubeconfig, and where it caches what it discovers."""

    program: Path
    kubeconfig: Path
    cache: Path | None = None

    @classmethod
    def of_local_cluster(cls, places: Places) -> Kubectl:
        """The cluster's own, which leaves nothing in the user's home directory."""
        return cls(places.bin / "kubectl", places.kubeconfig, places.state / "kubectl-cache")

    def read(self, *arguments: str, stdin: str | None = None) -> str:
        """What kubectl prints; raise LocalClusterError with its complaint."""
        return read_output(self._command(arguments), stdin=stdin)

    def succeeds(self, *arguments: str) -> bool:
        """Whether kubectl ends without an error."""
        return try_command(self._command(arguments)).returncode == 0

    def is_reachable(self) -> bool:
        """Whether the API server answers that it is ready."""
        return self.succeeds("get", "--raw=/readyz", "--request-timeout=5s")

    def count_ready(self, namespace: str, deployment: str) -> int:
        """How many pods of a Deployment are ready; 0 also if nobody can tell."""
        path = "jsonpath={.status.readyReplicas}"
        command = ["get", "deployment", deployment, "-n", namespace, "-o", path]
        answer = try_command(self._command([*command, "--request-timeout=5s"])).stdout
        return int(answer or 0)

    def show_logs(self, namespace: str, app: str, lines: int, *, follow: bool) -> list[str]:
        """The command that shows what the pods of an app have written."""
        command = ["logs", "-n", namespace, "-l", f"app={app}", "--all-containers", "--prefix"]
        command += [f"--tail={lines}", *(["--follow"] if follow else [])]
        return [str(part) for part in self._command(command)]

    def apply(self, manifest: str) -> None:
        """Create or update objects; those that are right already are left alone.

        On the server's side, which tells ports of one number and two protocols apart.
        """
        self.read("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=manifest)

    def wait_for_rollout(self, namespace: str, deployment: str, patience: int) -> None:
        """Wait until every pod of a Deployment is ready."""
        command = ["rollout", "status", "-n", namespace, f"deployment/{deployment}"]
        result = try_command(self._command([*command, f"--timeout={patience}s"]))
        if result.returncode != 0:
            events = try_command(
                self._command(["get", "pods,events", "-n", namespace, "--sort-by=.lastTimestamp"])
            )
            raise LocalClusterError(
                f"{deployment} in {namespace} is not ready: {result.stderr.strip()}\n"
                f"{events.stdout.rstrip()}",
                advice=f"kubectl -n {namespace} describe pods -l app={deployment}",
            )

    def _command(self, arguments: Sequence[str]) -> list[str | Path]:
        if not self.program.exists():  # the first `up` still builds it
            raise LocalClusterError(NOT_UP, advice=NOT_UP_ADVICE)
        cache = [] if self.cache is None else [f"--cache-dir={self.cache}"]
        return [self.program, f"--kubeconfig={self.kubeconfig}", *cache, *arguments]
