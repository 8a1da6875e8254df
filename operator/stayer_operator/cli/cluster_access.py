"""The cluster as a person reaches it: kubeconfig, custom objects, pods and their logs."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import urllib3
import yaml
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from kubernetes.config.config_exception import ConfigException

from stayer_operator.api import names
from stayer_operator.cli.errors import CliError

Document = dict[str, Any]
MERGE_PATCH = "application/merge-patch+json"
SECONDS = 5  # for an answer about a single object
KUBECONFIG = "~/.kube/config"  # where the environment names none

# A server that does not answer is told once, by the error, and not for every try besides.
logging.getLogger("urllib3").setLevel(logging.ERROR)


class ClusterAccess:
    """Calls as the user of the kubeconfig's current context."""

    def __init__(self, namespace: str | None) -> None:
        context, connection = _connect()
        self.namespace = namespace or context.get("namespace") or "default"
        self._objects = client.CustomObjectsApi(connection)
        self._core = client.CoreV1Api(connection)

    def run(self, name: str) -> Document:
        """A BenchmarkRun."""
        return self._get(names.RUN_PLURAL, name, "run")

    def runs(self, *, everywhere: bool = False) -> list[Document]:
        """All BenchmarkRuns of the namespace, or of all namespaces."""
        return (
            self._list_everywhere(names.RUN_PLURAL)
            if everywhere
            else self._list(names.RUN_PLURAL, "")
        )

    def find_run(self, name: str) -> Document | None:
        """A BenchmarkRun; None when there is none. Soon an error where no cluster answers."""
        return self._find(names.RUN_PLURAL, name, f"run {name}", SECONDS)

    def trial(self, name: str) -> Document:
        """A Trial."""
        return self._get(names.TRIAL_PLURAL, name, "trial")

    def trials(self, run: Document) -> list[Document]:
        """All Trials of a run, inventory trials included."""
        return self._list(names.TRIAL_PLURAL, f"{names.LABEL_RUN_UID}={run['metadata']['uid']}")

    def patch_run(self, name: str, spec: Document) -> Document:
        """Merge `spec` into a run's spec."""
        found: Document = self._call(
            lambda: self._objects.patch_namespaced_custom_object(
                names.GROUP,
                names.VERSION,
                self.namespace,
                names.RUN_PLURAL,
                name,
                {"spec": spec},
                _content_type=MERGE_PATCH,
            ),
            f"run {name}",
        )
        return found

    def apply_run(self, manifest: Document) -> tuple[Document, str]:
        """Server-side apply of a run with strict validation: the object and what was done."""
        name = manifest["metadata"]["name"]
        before = self._find(names.RUN_PLURAL, name, f"run {name}")
        # The client knows no 201 for a patch and would give nothing for what it has created.
        response = self._call(
            lambda: self._objects.patch_namespaced_custom_object(
                names.GROUP,
                names.VERSION,
                self.namespace,
                names.RUN_PLURAL,
                name,
                manifest,
                field_manager="stayer-cli",
                field_validation="Strict",
                force=True,
                _content_type="application/apply-patch+yaml",
                _preload_content=False,
            ),
            f"run {name}",
        )
        after: Document = json.loads(response.data)
        if before is None:
            return after, "created"
        return after, "unchanged" if _asked(before) == _asked(after) else "configured"

    def pods(self, trial: Document) -> list[Document]:
        """Pods of a trial that still exist."""
        selector = f"{names.LABEL_TRIAL_UID}={trial['metadata']['uid']}"
        response = self._call(
            lambda: self._core.list_namespaced_pod(
                self.namespace, label_selector=selector, _preload_content=False
            ),
            "pods",
        )
        return list(json.loads(response.data)["items"])

    def logs(self, pod: str, container: str, *, follow: bool) -> Iterator[str]:
        """Lines of a container's log, as they come when `follow`."""
        response = self._call(
            lambda: self._core.read_namespaced_pod_log(
                pod, self.namespace, container=container, follow=follow, _preload_content=False
            ),
            f"log of {pod}/{container}",
        )
        rest = b""
        for piece in response.stream(decode_content=False):
            *lines, rest = (rest + piece).split(b"\n")
            yield from (line.decode(errors="replace") for line in lines)
        if rest:
            yield rest.decode(errors="replace")

    def _list(self, plural: str, selector: str) -> list[Document]:
        answer = self._call(
            lambda: self._objects.list_namespaced_custom_object(
                names.GROUP, names.VERSION, self.namespace, plural, label_selector=selector
            ),
            plural,
        )
        return list(answer["items"])

    def _list_everywhere(self, plural: str, name: str = "") -> list[Document]:
        answer = self._call(
            lambda: self._objects.list_cluster_custom_object(
                names.GROUP,
                names.VERSION,
                plural,
                field_selector=f"metadata.name={name}" if name else "",
            ),
            plural,
        )
        return list(answer["items"])

    def _get(self, plural: str, name: str, kind: str) -> Document:
        found = self._find(plural, name, f"{kind} {name}")
        if found is not None:
            return found
        message = f"{kind} {name} not found in namespace {self.namespace}"
        try:
            elsewhere = self._list_everywhere(plural, name)
        except CliError:  # not everyone may list everywhere
            raise CliError(message) from None
        spaces = sorted(other["metadata"]["namespace"] for other in elsewhere)
        hint = f"; there is one in {', '.join(spaces)} (-n {spaces[0]})" if spaces else ""
        raise CliError(f"{message}{hint}")

    def _find(
        self, plural: str, name: str, what: str, seconds: float | None = None
    ) -> Document | None:
        try:
            found: Any = self._objects.get_namespaced_custom_object(
                names.GROUP, names.VERSION, self.namespace, plural, name, _request_timeout=seconds
            )
        except ApiException as error:
            if error.status == 404:
                return None
            raise CliError(_explain(error, what, self.namespace)) from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise CliError(f"the cluster does not answer: {error}") from error
        return dict(found)

    def _call(self, call: Callable[[], Any], what: str) -> Any:
        try:
            return call()
        except ApiException as error:
            raise CliError(_explain(error, what, self.namespace)) from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise CliError(f"the cluster does not answer: {error}") from error


def _connect() -> tuple[Document, Any]:
    """The kubeconfig's current context and a client for it. Raises CliError naming the file."""
    path = os.environ.get("KUBECONFIG") or KUBECONFIG
    try:
        files = [Path(part).expanduser() for part in path.split(os.pathsep) if part]
        if not any(file.exists() for file in files):
            raise ConfigException("no such file")
        connection = config.new_client_from_config(config_file=path)  # type: ignore[no-untyped-call]
        context = config.list_kube_config_contexts(config_file=path)[1]["context"]  # type: ignore[no-untyped-call]
    except (ConfigException, OSError, yaml.YAMLError) as error:
        trouble = " ".join(str(error).split()).rstrip(".")
        raise CliError(
            f"no cluster: {path}: {trouble}. Set KUBECONFIG; for a local cluster run "
            "`make cluster-up`."
        ) from error
    return context, connection


def _asked(run: Document) -> tuple[object, ...]:
    """What people write of an object. Its resourceVersion grows with the operator's status too."""
    metadata = run["metadata"]
    return metadata["generation"], metadata.get("labels"), metadata.get("annotations")


def _explain(error: ApiException, what: str, namespace: str) -> str:
    """The API server's own message, which names field, found and accepted."""
    try:
        message = json.loads(error.body or "{}").get("message", error.reason)
    except ValueError:
        message = error.reason
    if error.status == 404:
        return f"{what} not found in namespace {namespace}"
    return f"{what}: {message}"
