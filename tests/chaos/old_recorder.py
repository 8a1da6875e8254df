"""A recorder of an earlier incarnation that comes back: `append` or `record`, told by JSON.

append  its process was only asleep: it writes the snapshot that it was about to write
record  its process is started again: the program of the container, from the beginning
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from stayer_evaluator.episode.config import Places, RecorderSettings
from stayer_evaluator.episode.main import serve
from stayer_evaluator.records.queue import SnapshotEntry, Writer
from stayer_evaluator.storage.layout import TrialKeys
from stayer_evaluator.storage.queue import Fenced, QueueWriter
from stayer_evaluator.storage.relay import connect_relay


def main() -> int:
    """Exit status: the recorder's own, or 3 as the recorder's when an append was fenced."""
    mode, path = sys.argv[1:]
    told = json.loads(Path(path).read_text())
    if mode == "append":
        return asyncio.run(append(told))
    return asyncio.run(serve(settings(told)))


def settings(told: dict[str, Any]) -> RecorderSettings:
    """As its pod had them, in other places."""
    folder = Path(told["folder"])
    places = {}
    for name in ("jobs", "out", "state", "workspace", "home", "suite"):
        places[name] = folder / name
        places[name].mkdir(exist_ok=True)
    return RecorderSettings(
        trial=told["trial"],
        prefix=told["prefix"],
        incarnation=1,
        trial_sha256=told["sha256"],
        relay_url=told["relay"],
        places=Places(**places, token=folder / "token", termination_log=folder / "termination-log"),
    )


async def append(told: dict[str, Any]) -> int:
    """The writer as it stood before it fell asleep."""
    store = connect_relay(
        told["relay"], prefix=told["prefix"], token=Path(told["folder"]) / "token"
    )
    writer = Writer(incarnation=1, nonce=told["nonce"])
    queue = QueueWriter(store, TrialKeys(told["prefix"]), writer)
    last = SnapshotEntry.model_validate(told["last"])
    queue.last_snapshot, queue.next_number = last, told["next"]
    changes = {"snapshot": last.snapshot + 1, "writer": writer, "implemented": ("forged",)}
    try:
        await queue.append(lambda number: last.model_copy(update={"number": number, **changes}))
    except Fenced:
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
