"""The API server's audit log, read and counted: who wrote what, and which Trial it was about."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import orjson

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
READS = frozenset({"get", "list"})
POD_NAME = re.compile(r"^(?P<trial>.+)-[ab]-[1-9][0-9]*$")
TRIAL_UID = re.compile(r"stayer\.dev/trial-uid=([0-9a-f-]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One answered request. `at`: when the server received it, seconds since the epoch."""

    at: float
    verb: str
    resource: str
    code: int
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    uri: str = ""

    @property
    def is_write(self) -> bool:
        """It was meant to change something; whether it did, `code` tells."""
        return self.verb in WRITES

    @property
    def kind(self) -> str:
        """For tables: `create pods`, `patch trials/status`."""
        subresource = f"/{self.subresource}" if self.subresource else ""
        return f"{self.verb} {self.resource}{subresource}"


class AuditLog:
    """The requests of one user that come in after `mark`."""

    def __init__(self, path: Path, user: str) -> None:
        self._path = path
        self._user = user
        self._offset = 0
        self.mark()

    def mark(self) -> None:
        """Whatever was logged before now is of no interest."""
        self._offset = self._path.stat().st_size

    def requests(self) -> tuple[Request, ...]:
        """All since the mark. Raises ValueError when the log was rotated since then."""
        if self._path.stat().st_size < self._offset:
            raise ValueError(f"{self._path} was rotated while the bench ran; run it again")
        with self._path.open("rb") as log:
            log.seek(self._offset)
            return tuple(parse_requests(log, self._user))


def parse_requests(lines: Iterable[bytes], user: str) -> Iterator[Request]:
    """The completed requests of a user in the lines of an audit log.

    A line that is cut off, as the last one may be, is passed over. A watch is logged twice, when
    it begins and when it ends: the beginning is the request.
    """
    mark = f'"username":"{user}"'.encode()
    for line in lines:
        if mark not in line:
            continue
        try:
            event = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        wanted = "ResponseStarted" if event.get("verb") == "watch" else "ResponseComplete"
        if event.get("stage") == wanted and event.get("user", {}).get("username") == user:
            yield _request(event)


def _request(event: Mapping[str, Any]) -> Request:
    about = event.get("objectRef") or {}
    return Request(
        at=datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp(),
        verb=event["verb"],
        resource=about.get("resource", ""),
        code=(event.get("responseStatus") or {}).get("code", 0),
        subresource=about.get("subresource", ""),
        namespace=about.get("namespace", ""),
        name=about.get("name", ""),
        uri=event.get("requestURI", ""),
    )


@dataclass(slots=True, kw_only=True)
class TrialWrites:
    """What one Trial cost. `refused`: answered with an error, whatever it was."""

    trial_posts: int = 0
    pod_posts: int = 0
    status: int = 0
    cleanup: int = 0
    other: int = 0
    events: int = 0
    refused: int = 0

    @property
    def total(self) -> int:
        """Writes that count against the goal, progress among the status writes: Events do not."""
        return self.trial_posts + self.pod_posts + self.status + self.cleanup + self.other


def count_trial_writes(
    requests: Iterable[Request], trials: Mapping[str, str]
) -> dict[str, TrialWrites]:
    """The writes about each of these Trials (name → UID)."""
    counts = {name: TrialWrites() for name in trials}
    by_uid = {uid: name for name, uid in trials.items()}
    for request in requests:
        trial = _trial_of(request, by_uid)
        if request.is_write and trial in counts:
            column = _column(request)
            setattr(counts[trial], column, getattr(counts[trial], column) + 1)
    return counts


def _trial_of(request: Request, by_uid: Mapping[str, str]) -> str:
    if request.resource == "trials":
        return request.name
    if request.resource == "events":
        return request.name.rpartition(".")[0]
    if request.resource != "pods":
        return ""
    if request.verb == "deletecollection":
        match = TRIAL_UID.search(unquote(request.uri))
        return by_uid.get(match[1], "") if match else ""
    match = POD_NAME.match(request.name)
    return match["trial"] if match else ""


def _column(request: Request) -> str:
    if request.code >= 400:
        return "refused"
    if request.resource == "events":
        return "events"
    if request.verb == "create":
        return "trial_posts" if request.resource == "trials" else "pod_posts"
    if request.resource == "trials" and request.subresource == "status":
        return "status"
    return "cleanup" if request.verb in ("delete", "deletecollection") else "other"


def mean_writes(counts: Iterable[TrialWrites]) -> dict[str, float]:
    """The mean of every column and of the total."""
    rows = tuple(counts)
    names = [field.name for field in fields(TrialWrites)]
    sums = {name: float(sum(getattr(row, name) for row in rows)) for name in [*names, "total"]}
    return {name: value / len(rows) for name, value in sums.items()} if rows else sums


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """Requests while nothing was to be done. `others`: neither the Lease nor a watch, by kind."""

    lease_writes: int
    watches: int
    other_writes: int
    other_reads: int
    others: Mapping[str, int]


def count_idle(requests: Iterable[Request]) -> Idle:
    """Split the requests of an idle time. A watch that is begun anew at its time limit reads
    nothing that did not change.
    """
    rest: list[Request] = []
    lease = watches = 0
    for request in requests:
        if request.resource == "leases" and request.is_write:
            lease += 1
        elif request.verb == "watch":
            watches += 1
        else:
            rest.append(request)
    writes = sum(request.is_write for request in rest)
    return Idle(
        lease_writes=lease,
        watches=watches,
        other_writes=writes,
        other_reads=len(rest) - writes,
        others=Counter(request.kind for request in rest),
    )
