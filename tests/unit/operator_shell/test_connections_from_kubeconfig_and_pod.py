"""Where the API server is: kubeconfigs of all kinds, and a pod's own files."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from stayer_operator.adapters.connection import find_connection, from_kubeconfig, in_cluster
from stayer_operator.errors import SettingsError


def write(
    folder: Path, user: dict[str, Any], cluster: dict[str, Any] | None = None, **top: Any
) -> Path:
    document = {
        "current-context": "lab",
        "contexts": [
            {"name": "lab", "context": {"cluster": "c", "user": "u", "namespace": "team"}}
        ],
        "clusters": [{"name": "c", "cluster": cluster or {"server": "http://10.0.0.1:8080/"}}],
        "users": [{"name": "u", "user": user}],
    } | top
    path = folder / "config"
    path.write_text(yaml.safe_dump(document))
    return path


def test_a_token_becomes_a_header(tmp_path: Path) -> None:
    connection = from_kubeconfig(write(tmp_path, {"token": "secret"}))
    assert connection.server == "http://10.0.0.1:8080"
    assert connection.namespace == "team"
    assert connection.headers() == {"Authorization": "Bearer secret"}


def test_a_token_file_is_found_beside_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from file\n")
    connection = from_kubeconfig(write(tmp_path, {"tokenFile": "token"}))
    assert connection.headers() == {"Authorization": "Bearer from file"}


def test_inlined_certificates_become_private_files(tmp_path: Path) -> None:
    data = base64.b64encode(b"certificate").decode()
    user = {"client-certificate-data": data, "client-key-data": data}
    connection = from_kubeconfig(write(tmp_path, user))
    assert connection.certificate_path is not None
    path = Path(connection.certificate_path)
    assert path.read_bytes() == b"certificate"
    assert path.parent.stat().st_mode & 0o077 == 0
    assert connection.headers() == {}


@pytest.mark.parametrize(
    ("user", "top", "complaint"),
    [
        ({"exec": {"command": "login"}}, {}, "credential plugin"),
        ({}, {"current-context": "other"}, "'other'; it has: lab"),
        ({}, {"clusters": []}, "clusters has no 'c'; it has: none"),
        ({}, {"users": []}, "users has no 'u'"),
    ],
    ids=["plugin", "no-context", "no-cluster", "no-user"],
)
def test_what_is_missing_is_named(
    tmp_path: Path, user: dict[str, Any], top: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(SettingsError, match=complaint):
        from_kubeconfig(write(tmp_path, user, **top))


def test_a_kubeconfig_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="No such file"):
        find_connection({"KUBECONFIG": str(tmp_path / "nowhere")})


def test_a_file_that_is_no_yaml_is_named(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("a: [")
    with pytest.raises(SettingsError, match="not YAML"):
        from_kubeconfig(path)


def test_a_pod_without_its_variables_is_told_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="KUBERNETES_SERVICE_HOST"):
        in_cluster({}, tmp_path)
