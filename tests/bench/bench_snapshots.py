"""Snapshots of a 12,000-file tree against restic and `tar | zstd`, on one S3 server in one run.

The server is the one that STAYER_S3_* and AWS_* name; without them a versitygw found on PATH, or
named by VERSITYGW, is started for the run.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import socket
import statistics
import subprocess
import sysconfig
import tempfile
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bench.api import BenchError
from bench.evidence import SNAPSHOTS, bench_digest
from bench.report import Check, Report, Table
from stayer_evaluator.records.queue import EpisodeCursor, Writer
from stayer_evaluator.records.trial import SnapshotSettings
from stayer_evaluator.snapshots.base import NO_BASE, Base, write_base
from stayer_evaluator.snapshots.excludes import excludes
from stayer_evaluator.snapshots.packcache import PackCache
from stayer_evaluator.snapshots.restore import restore
from stayer_evaluator.snapshots.take import Snapshotter, entry_tree
from stayer_evaluator.storage.layout import TaskKeys, TrialKeys
from stayer_evaluator.storage.queue import QueueWriter
from stayer_evaluator.storage.retry import RetryingMutableStore
from stayer_evaluator.storage.s3 import connect_s3, make_client
from stayer_evaluator.storage.settings import StoreSettings

FILES = 12_000
FOLDERS = 1_500
ROUNDS = 7
FIRST_ROUNDS = 15  # the two that are compared are close
CHANGED = 12


@dataclass
class Row:
    what: str
    seconds: list[float] = field(default_factory=list)
    note: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def make_tree(root: Path) -> None:
    """Source-like files: lines of Python's own library, sizes log-normal, a few large ones."""
    chance = random.Random(12)
    library = Path(sysconfig.get_paths()["stdlib"])
    lines = [
        line
        for path in sorted(library.glob("*.py"))
        for line in path.read_bytes().splitlines(keepends=True)
    ]
    folders = [root]
    for number in range(FOLDERS):
        folder = chance.choice(folders[-200:]) / f"module_{number}"
        folder.mkdir()
        folders.append(folder)
    for number in range(FILES - 8):
        size = int(chance.lognormvariate(8.4, 1.2))
        start = chance.randrange(len(lines) - 3_000)
        text = b"".join(lines[start : start + max(1, min(3_000, size // 38))])
        (chance.choice(folders) / f"file_{number}.py").write_bytes(b"# %d\n%b" % (number, text))
    for number in range(8):
        (root / f"blob_{number}").write_bytes(chance.randbytes(2 * 1024**2))


def change(root: Path, number: int) -> None:
    """What an agent's step does: edits, an addition, a deletion."""
    paths = sorted(root.rglob("file_*.py"))
    for path in random.Random(number).sample(paths, CHANGED):
        path.write_bytes(path.read_bytes() + b"# edited %d\n" % number)
    paths[number].unlink()
    (root / f"file_new_{number}.py").write_text(f"value = {number}\n" * 50)


def bare_walk(root: Path) -> int:
    count = 0
    stack = [str(root)]
    while stack:
        with os.scandir(stack.pop()) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                count += 1
                if status.st_mode & 0o170000 == 0o040000:
                    stack.append(entry.path)
    return count


@contextlib.contextmanager
def server(directory: Path) -> Iterator[StoreSettings]:
    """The S3 server of the environment, or a versitygw of our own."""
    if os.environ.get("STAYER_S3_ENDPOINT"):
        yield StoreSettings.from_env(os.environ)
        return
    program = os.environ.get("VERSITYGW") or shutil.which("versitygw")
    if program is None:
        raise BenchError(
            "snapshots: no S3 server; set STAYER_S3_* and AWS_*, or VERSITYGW to a versitygw binary"
        )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    os.environ |= {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench-secret"}
    for name in ("data", "iam"):
        (directory / name).mkdir()
    options = ["--port", address, "--health", "/healthz", "--quiet", "--keep-alive"]
    process = subprocess.Popen(
        [program, *options, "--iam-dir", str(directory / "iam"), "posix", str(directory / "data")],
        env={**os.environ, "ROOT_ACCESS_KEY": "bench", "ROOT_SECRET_KEY": "bench-secret"},
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_for(f"http://{address}/healthz")
        settings = StoreSettings(bucket="bench", endpoint=f"http://{address}")
        make_client(settings).create_bucket(Bucket="bench")
        yield settings
    finally:
        process.terminate()
        process.wait()


def wait_for(url: str) -> None:
    until = time.monotonic() + 20
    while True:
        try:
            urllib.request.urlopen(url, timeout=1).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


async def timed(row: Row, call: Callable[[], Awaitable[object]]) -> None:
    started = time.perf_counter()
    await call()
    row.seconds.append(time.perf_counter() - started)


class Ours:
    def __init__(self, root: Path, store: RetryingMutableStore) -> None:
        self.root = root
        self.store = store
        self.first = Row("first snapshot")
        self.of_trial = Row("first of a trial (its task's base stored)")
        self.unchanged = Row("unchanged")
        self.small = Row("small change")
        self.whole = Row("restore")
        self.bare = Row("bare scandir + lstat walk")
        self.puts: list[int] = []
        self.read = 0

    async def begin(self, trial: str, base: Base) -> Snapshotter:
        writer = Writer(incarnation=1, nonce="bench")
        keys = TrialKeys(f"{SNAPSHOTS}{trial}/")
        queue = await QueueWriter.begin(self.store, keys, writer, time.time())
        return Snapshotter(self.root, queue, base, SnapshotSettings())

    async def store_base(self) -> Base:
        keys = TaskKeys(bench_digest("snapshots"))
        return await write_base(self.store, keys, self.root, excludes())

    async def take_first(self, row: Row, trial: str, base: Base) -> None:
        snapshotter = await self.begin(trial, base)
        await timed(row, lambda: snapshotter.take(EpisodeCursor(), time.time()))
        packs = snapshotter.packs
        row.note = f"{packs.bytes / 1e6:.1f} MB in {packs.packs} pack(s)"
        snapshotter.close()

    async def take_rest(self, directory: Path, base: Base) -> None:
        snapshotter = await self.begin("steps", base)
        await snapshotter.take(EpisodeCursor(), time.time())
        await snapshotter.take(EpisodeCursor(), time.time())
        read = snapshotter.bytes_read
        requests = self.store.counters.total
        for _ in range(ROUNDS):
            started = time.perf_counter()
            bare_walk(self.root)
            self.bare.seconds.append(time.perf_counter() - started)
            await timed(self.unchanged, lambda: snapshotter.take(EpisodeCursor(), time.time()))
        self.read = snapshotter.bytes_read - read
        self.unchanged.note = f"{self.store.counters.total - requests} requests in all"
        for number in range(ROUNDS):
            change(self.root, number)
            puts = self.store.counters.requests["create"]
            await timed(self.small, lambda: snapshotter.take(EpisodeCursor(), time.time()))
            self.puts.append(self.store.counters.requests["create"] - puts)
        self.small.note = f"{max(self.puts)} PUTs"
        await self.restore(directory, snapshotter, base)
        snapshotter.close()

    async def restore(self, directory: Path, snapshotter: Snapshotter, base: Base) -> None:
        last = snapshotter.queue.last_snapshot
        assert last is not None
        tree = entry_tree(last, base)
        cache = PackCache(directory / "packs")
        out = directory / "out"
        out.mkdir()
        started = time.perf_counter()
        fetched = await cache.fetch(self.store, tree)
        restore(tree, cache, out)
        self.whole.seconds.append(time.perf_counter() - started)
        self.whole.note = f"{fetched} GETs"
        cache.close()
        different = ["diff", "-r", "--no-dereference", str(self.root), str(out)]
        await asyncio.to_thread(subprocess.run, different, check=True)


class Restic:
    def __init__(self, root: Path, settings: StoreSettings, directory: Path) -> None:
        self.root = root
        bucket = f"s3:{settings.endpoint}/{settings.bucket}"
        self.place = f"{bucket}/{settings.prefix}{SNAPSHOTS}restic"
        self.env = {
            **os.environ,
            "RESTIC_PASSWORD": "bench",
            "RESTIC_CACHE_DIR": str(directory / "restic-cache"),
        }

    def init(self, name: str) -> None:
        self.env["RESTIC_REPOSITORY"] = f"{self.place}-{name}"
        self.run("init", "--quiet")

    async def backup(self) -> None:
        await asyncio.to_thread(self.run, "backup", "--quiet", str(self.root))

    def run(self, *arguments: str) -> None:
        subprocess.run(["restic", *arguments], env=self.env, check=True)


async def tar_zstd(root: Path, store: RetryingMutableStore, name: str) -> None:
    await store.create(f"{SNAPSHOTS}tar/{name}", await asyncio.to_thread(tarred, root))


def tarred(root: Path) -> bytes:
    tar = ["tar", "--sort=name", "-C", str(root), "-cf", "-", "."]
    with subprocess.Popen(tar, stdout=subprocess.PIPE) as source:
        zstd = ["zstd", "-q", "-3", "-T0", "-c"]
        return subprocess.run(zstd, stdin=source.stdout, capture_output=True, check=True).stdout


async def bench(directory: Path, settings: StoreSettings) -> Report:
    root = directory / "tree"
    root.mkdir()
    make_tree(root)
    store = connect_s3(settings)
    ours = Ours(root, store)
    restic = Restic(root, settings, directory)
    others = {name: Row(name) for name in ("restic first", "restic unchanged", "restic small")}
    tars = {name: Row(name) for name in ("tar|zstd first", "tar|zstd small")}
    await asyncio.sleep(0.1)  # past the racy window of the youngest file
    for number in range(FIRST_ROUNDS):
        await ours.take_first(ours.first, f"first-{number}", NO_BASE)
        if number % 5 == 0:  # it is far behind
            restic.init(str(number))
            await timed(others["restic first"], restic.backup)
        await timed(tars["tar|zstd first"], partial(tar_zstd, root, store, f"first-{number}"))
    base = await ours.store_base()
    for number in range(3):
        await timed(others["restic unchanged"], restic.backup)
        await ours.take_first(ours.of_trial, f"first-of-trial-{number}", base)
    await ours.take_rest(directory, base)
    for number in range(3):
        change(root, 100 + number)
        await timed(others["restic small"], restic.backup)
        await timed(tars["tar|zstd small"], partial(tar_zstd, root, store, f"small-{number}"))
    return report(ours, others, tars)


def report(ours: Ours, others: dict[str, Row], tars: dict[str, Row]) -> Report:
    rows = [ours.bare, ours.unchanged, ours.small, ours.first, ours.of_trial, ours.whole]
    rows += [*others.values(), *tars.values()]
    fastest_first = min(others["restic first"].median, tars["tar|zstd first"].median)
    fastest_small = min(others["restic small"].median, tars["tar|zstd small"].median)
    walk, unchanged = ours.bare.median, ours.unchanged.median
    checks = [
        Check(
            quantity="unchanged, against a bare walk",
            goal=f"<= 2 x {milliseconds(walk)}",
            seen=f"{milliseconds(unchanged)} = {unchanged / walk:.2f} x",
            holds=unchanged <= 2 * walk,
        ),
        Check(
            quantity="bytes read of unchanged files",
            goal="0",
            seen=str(ours.read),
            holds=ours.read == 0,
        ),
        Check(
            quantity="PUTs of a small change",
            goal="<= 2",
            seen=str(max(ours.puts)),
            holds=max(ours.puts) <= 2,
        ),
        Check(
            quantity="small change",
            goal=f"< {milliseconds(fastest_small)}",
            seen=milliseconds(ours.small.median),
            holds=ours.small.median < fastest_small,
        ),
        Check(
            quantity="first snapshot",
            goal=f"<= {milliseconds(fastest_first)}",
            seen=milliseconds(ours.first.median),
            holds=ours.first.median <= fastest_first,
        ),
    ]
    return Report(
        name="snapshots",
        title=f"a tree of {FILES:,} files, {CHANGED} edited at a time; goals are the faster of "
        "restic and tar | zstd, medians, same S3 server, same run",
        checks=checks,
        tables=[
            Table(
                title="Every measurement",
                columns=["", "median", "min", "max", "times", "note"],
                rows=[cells(row) for row in rows],
            )
        ],
        notes=["restic's time is that of its command, the opening of its repository included"],
        figures={row.what: row.seconds for row in rows} | {"puts": ours.puts, "read": ours.read},
    )


def cells(row: Row) -> list[str]:
    times = (row.median, min(row.seconds), max(row.seconds))
    return [row.what, *map(milliseconds, times), str(len(row.seconds)), row.note]


def milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms"


async def bench_snapshots() -> Report:
    with tempfile.TemporaryDirectory(prefix="stayer-bench-") as name:
        directory = Path(name)
        with server(directory) as settings:
            return await bench(directory, settings)
