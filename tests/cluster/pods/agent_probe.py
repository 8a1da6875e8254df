"""Run by a scripted agent inside of its task container: what is to be found and reached from there.

Prints nothing; writes what it found to probe.json, which the next snapshot holds. Standard library
only. AGENT_PROBE (JSON) says which addresses to try and what gold looks like.
"""

# System calls are what is tried here.
# ruff: noqa: PTH113, PTH118, PTH123, PTH202, PTH208
from __future__ import annotations

import concurrent.futures
import json
import os
import re
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

PROBE = json.loads(os.environ.pop("AGENT_PROBE"))
SECONDS = 3
TOKEN = re.compile(rb"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.")
NAMES = re.compile(r"AWS|S3|TOKEN|SECRET|KUBECONFIG|CREDENTIAL|PASSWORD", re.IGNORECASE)
# Of other programs in the image, and what the kernel shows of itself.
LEFT_OUT = ("/proc", "/sys", "/usr", "/lib", "/lib64", "/bin", "/sbin", "/boot")
BIGGEST = 4 << 20


def files() -> Iterator[str]:
    """Every file that this user can see and that is no program of the image."""
    for folder, names, found in os.walk("/"):
        names[:] = [name for name in names if os.path.join(folder, name) not in LEFT_OUT]
        yield from (os.path.join(folder, name) for name in found)


def content(path: str) -> bytes:
    """What this user can read of a regular file."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > BIGGEST:
            return b""
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def environments() -> Iterator[str]:
    """Variables of every process whose environment can be read."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            data = content_of_process(f"/proc/{entry}/environ")
            yield from (line.decode(errors="replace") for line in data.split(b"\0") if line)


def content_of_process(path: str) -> bytes:
    """Files of /proc have no size."""
    try:
        with open(path, "rb") as file:
            return file.read(BIGGEST)
    except OSError:
        return b""


def connects(address: str) -> bool:
    """Whether a TCP connection comes about."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=SECONDS).close()
    except OSError:
        return False
    return True


def asks(server: str) -> bool:
    """Whether a name server answers over UDP."""
    query = bytes.fromhex("123401000001000000000000") + b"\x0akubernetes\x07default\x03svc"
    query += b"\x07cluster\x05local\x00\x00\x01\x00\x01"
    host, _, port = server.rpartition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.settimeout(SECONDS)
        try:
            udp.sendto(query, (host, int(port)))
            return bool(udp.recv(512))
        except OSError:
            return False


def resolves(name: str) -> bool:
    """Whether the container's own resolver knows a name."""
    try:
        return bool(socket.getaddrinfo(name, 443))
    except OSError:
        return False


def status_of(url: str) -> int:
    """HTTP status of an answer; 0 for none."""
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def writes(path: str) -> bool:
    """Whether a file can be made or changed."""
    try:
        # Without blocking: one of them is a FIFO.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK, 0o644)
    except OSError:
        return False
    os.close(descriptor)
    return True


def lists(path: str) -> bool:
    """Whether a folder can be looked into."""
    try:
        os.listdir(path)
    except OSError:
        return False
    return True


def suite_files() -> list[str]:
    """The visible tests."""
    return [os.path.join(folder, name) for folder, _, names in os.walk("/tests") for name in names]


def mounts() -> list[str]:
    """Mount points."""
    with open("/proc/self/mountinfo") as file:
        return [line.split()[4] for line in file]


def look() -> dict[str, Any]:
    """Everything."""
    suite = suite_files()
    with open("/tmp/control", "w") as control:
        control.write(f"{PROBE['gold']} eyJhbGciOiJub25lIn0.eyJzdWIiOiJub2JvZHkifQ.")
    everything = [(path, content(path)) for path in files()]
    places = [
        "/tests/planted.py", *suite[:1], "/stayer/jobs/planted", "/stayer/jobs/fifo",
        "/stayer/out/planted", "/stayer/bin/planted", "/stayer/bin/runner", "/stayer/planted",
    ]  # fmt: skip
    with concurrent.futures.ThreadPoolExecutor(32) as threads:
        reached = threads.map(connects, PROBE["addresses"])
        asked = threads.map(asks, PROBE["name_servers"])
        resolved = threads.map(resolves, PROBE["names"])
        answered = threads.map(status_of, PROBE["urls"])
    gold = PROBE["gold"].encode()
    return {
        "uid": os.getuid(),
        "groups": os.getgroups(),
        "uid_map": content_of_process("/proc/self/uid_map").decode().split(),
        "mounts": mounts(),
        "files_read": sum(bool(data) for _, data in everything),
        "suite": suite,
        "tokens": [path for path, data in everything if TOKEN.search(data)],
        "gold": [path for path, data in everything if gold in data],
        "variables": sorted({line.partition("=")[0] for line in environments()}),
        "secret_variables": sorted(
            {line.partition("=")[0] for line in environments() if NAMES.search(line)}
        ),
        "runner_environment": bool(content_of_process("/proc/1/environ")),
        "connected": dict(zip(PROBE["addresses"], reached, strict=True)),
        "asked": dict(zip(PROBE["name_servers"], asked, strict=True)),
        "resolved": dict(zip(PROBE["names"], resolved, strict=True)),
        "answered": dict(zip(PROBE["urls"], answered, strict=True)),
        "written": {path: writes(path) for path in places},
        "listed": {path: lists(path) for path in ("/stayer/jobs", "/stayer/out")},
    }


with open("/workspace/probe.json", "w") as file:
    json.dump(look(), file, indent=1)
