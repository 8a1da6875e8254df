"""Every object key of Stayer, and nothing else (design.md §5)."""

from dataclasses import dataclass


def trial_prefix(namespace: str, run: str, run_uid: str, trial: str) -> str:
    """Prefix of a trial's evidence, with trailing slash; uid8 = first 8 characters of the UID."""
    return f"{run_prefix(namespace, run, run_uid)}{trial}/"


def run_prefix(namespace: str, run: str, run_uid: str) -> str:
    """Prefix of a run, with trailing slash."""
    return f"runs/{namespace}/{run}-{run_uid[:8]}/"


def run_results(namespace: str, run: str, run_uid: str) -> str:
    """Results of a whole run; rewritten as trials end."""
    return f"{run_prefix(namespace, run, run_uid)}results.json"


def run_tasks(namespace: str, run: str, run_uid: str) -> str:
    """The tasks of a run as they were when it started; created once."""
    return f"{run_prefix(namespace, run, run_uid)}tasks.json"


@dataclass(frozen=True, slots=True)
class TrialKeys:
    """Keys below a trial's prefix. Numbers are written with eight digits."""

    prefix: str

    @property
    def document(self) -> str:
        return f"{self.prefix}trial.json"

    @property
    def results(self) -> str:
        return f"{self.prefix}results.json"

    @property
    def merged_trace(self) -> str:
        return f"{self.prefix}trace.jsonl.zst"

    def queue(self, number: int) -> str:
        return f"{self.prefix}queue/{number:08d}"

    def verdict(self, number: int) -> str:
        return f"{self.prefix}verdicts/{number:08d}"

    def pack(self, digest: str) -> str:
        return f"{self.prefix}packs/{digest}"

    def trace(self, writer: str, segment: int) -> str:
        return f"{self.prefix}trace/{writer}/{segment:08d}"

    def resume(self, number: int) -> str:
        return f"{self.prefix}resume/{number:08d}"

    def transcript(self, name: str) -> str:
        return f"{self.prefix}transcripts/{name}"

    def log(self, name: str) -> str:
        return f"{self.prefix}logs/{name}"

    def started(self, number: int, try_: int) -> str:
        """Marks that adjudicating entry `number` was begun for the `try_`-th time (from 1)."""
        return f"{self.prefix}verdicts/{number:08d}.try{try_}"


@dataclass(frozen=True, slots=True)
class TaskKeys:
    """Keys below a task digest."""

    digest: str

    @property
    def prefix(self) -> str:
        return f"tasks/{self.digest}/"

    @property
    def record(self) -> str:
        return f"{self.prefix}task.json"

    @property
    def public(self) -> str:
        """tar.zst: task.yaml, requirements/."""
        return f"{self.prefix}public.tar.zst"

    @property
    def suite(self) -> str:
        """tar.zst: tests/, run-tests.sh."""
        return f"{self.prefix}suite.tar.zst"

    @property
    def gold(self) -> str:
        """tar.zst: gold_patches/, patch_order.json, solution.sh, slug_diff_map.json."""
        return f"{self.prefix}gold.tar.zst"

    @property
    def inventory(self) -> str:
        return f"{self.prefix}inventory.json"

    @property
    def base_manifest(self) -> str:
        return f"{self.prefix}base/manifest"

    def base_pack(self, digest: str) -> str:
        return f"{self.prefix}base/packs/{digest}"


def taskset_entry(taskset: str, task: str) -> str:
    """A task's record in a task set: the same document as `TaskKeys.record`, newest push wins."""
    return f"{taskset.rstrip('/')}/{task}.json"
