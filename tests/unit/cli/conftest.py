"""An API server in this process, which the real kubernetes client speaks to over HTTP."""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

Document = dict[str, Any]
BASE = "/apis/stayer.dev/v1alpha1/"
NAMESPACE = "lab"


class ApiServer:
    """Custom objects in memory: read, list, merge-patch, server-side apply; nothing is checked."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Document] = {}  # namespace, plural, name
        self.writes: list[tuple[str, str]] = []  # content type, path
        self.forbids_cluster_lists = False

    def put(self, plural: str, name: str, namespace: str = NAMESPACE, **fields: Any) -> Document:
        """Store an object as it is."""
        metadata = {"name": name, "namespace": namespace, **fields.pop("metadata", {})}
        metadata = {"uid": f"uid-of-{name}", "resourceVersion": "1", "generation": 1, **metadata}
        self.objects[namespace, plural, name] = made = {"metadata": metadata, **fields}
        return made

    def run(self, name: str = "small", namespace: str = NAMESPACE) -> Document:
        """A stored run."""
        return self.objects[namespace, "benchmarkruns", name]

    def answer(self, path: str, query: dict[str, list[str]]) -> tuple[int, Document]:
        """Of a GET."""
        where = path.removeprefix(BASE).split("/")
        if where[0] != "namespaces":
            if self.forbids_cluster_lists:
                return 403, {"message": f"{where[0]} is forbidden at the cluster scope"}
            return 200, self._items("", where[0], query)
        if len(where) == 3:
            return 200, self._items(where[1], where[2], query)
        found = self.objects.get((where[1], where[2], where[3]))
        return (200, found) if found else (404, {"message": f'"{where[3]}" not found'})

    def patch(self, path: str, kind: str, body: Document) -> tuple[int, Document]:
        """Of a PATCH."""
        _, namespace, plural, name = path.removeprefix(BASE).split("/")
        self.writes.append((kind, path))
        before = self.objects.get((namespace, plural, name))
        if before is None:
            if kind != "application/apply-patch+yaml":
                return 404, {"message": f'"{name}" not found'}
            return 201, self.put(plural, name, namespace, spec=body["spec"])
        spec = {**before["spec"], **body["spec"]}
        if spec != before["spec"]:
            before["spec"] = spec
            for counter in ("generation", "resourceVersion"):
                old = before["metadata"][counter]
                before["metadata"][counter] = type(old)(int(old) + 1)
        return 200, copy.deepcopy(before)

    def _items(self, namespace: str, plural: str, query: dict[str, list[str]]) -> Document:
        name = query.get("fieldSelector", [""])[0].removeprefix("metadata.name=")
        uid = query.get("labelSelector", [""])[0].removeprefix("stayer.dev/run-uid=")
        items = [
            found
            for (at, of, called), found in self.objects.items()
            if of == plural and namespace in ("", at) and name in ("", called)
            if not uid or found["metadata"].get("labels", {}).get("stayer.dev/run-uid") == uid
        ]
        return {"items": items, "metadata": {}}


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    """The server; KUBECONFIG leads to it, to the namespace `lab`."""
    server = ApiServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            self._send(*server.answer(url.path, parse_qs(url.query)))

        def do_PATCH(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._send(*server.patch(urlsplit(self.path).path, self.headers["Content-Type"], body))

        def _send(self, status: int, document: Document) -> None:
            data = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: Any) -> None:
            """Silent."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    write_kubeconfig(tmp_path / "kubeconfig", http.server_port, monkeypatch)
    yield server
    http.shutdown()
    thread.join()
    http.server_close()


def write_kubeconfig(path: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kubeconfig of a server on this machine, named by the environment."""
    context = {"cluster": "c", "user": "u", "namespace": NAMESPACE}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": context}],
        "current-context": "x",
    }
    path.write_text(yaml.safe_dump(document))
    monkeypatch.setenv("KUBECONFIG", str(path))
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
