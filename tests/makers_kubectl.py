"""kubectl against the cluster under test."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Kubectl:
    """kubectl against the cluster under test."""

    program: str
    kubeconfig: str

    def __call__(self, *arguments: str, stdin: str | None = None) -> tuple[int, str]:
        done = subprocess.run(
            [self.program, f"--kubeconfig={self.kubeconfig}", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return done.returncode, done.stdout + done.stderr

    def must(self, *arguments: str, stdin: str | None = None) -> str:
        code, said = self(*arguments, stdin=stdin)
        assert code == 0, said
        return said


def find_kubectl() -> Kubectl:
    """The one that was built with the cluster, else the one in PATH."""
    own = Path.home() / ".local/state/stayer/cluster"
    state = Path(os.environ.get("STAYER_CLUSTER_STATE", own))
    built = Path(os.environ.get("STAYER_BIN", state / "bin")) / "kubectl"
    program = str(built) if built.exists() else shutil.which("kubectl")
    assert program is not None, "kubectl: found none, neither in the cluster's state nor in PATH"
    given = os.environ.get("STAYER_KUBECONFIG") or os.environ.get("KUBECONFIG")
    return Kubectl(program, given or str(state / "pki" / "admin.kubeconfig"))
