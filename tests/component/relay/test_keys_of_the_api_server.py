"""Public keys read from an API server over TLS, with the pod's own account."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import NameOID

from makers_relay import ISSUER, Issuer, make_token
from stayer_evaluator.relay.server_keys import ApiServerKeys
from stayer_evaluator.relay.tokens import KeysUnavailable, TokenVerifier


class Handler(BaseHTTPRequestHandler):
    """The two discovery documents, for whoever brings the account's token."""

    def do_GET(self) -> None:
        if self.headers["Authorization"] != "Bearer account-token":
            self.send_error(401)
            return
        documents = {
            "/.well-known/openid-configuration": {"issuer": ISSUER},
            "/openid/v1/jwks": Issuer("first").document(),
        }
        body = json.dumps(documents[self.path]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


def make_certificate(directory: Path) -> Path:
    """A self-signed certificate for 127.0.0.1, key beside it."""
    key = Issuer().key("tls")
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = directory / "server.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    public = certificate.public_bytes(serialization.Encoding.PEM)
    path.write_bytes(private + public)
    (directory / "ca.crt").write_bytes(public)
    (directory / "token").write_text("account-token\n")
    return path


@contextmanager
def api_server(certificate: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_token_is_verified_with_keys_read_from_the_api_server(tmp_path: Path) -> None:
    with api_server(make_certificate(tmp_path)) as url:
        source = ApiServerKeys(url, tmp_path)
        verifier = TokenVerifier(source, service_account="stayer-trial")

        identity = asyncio.run(verifier.verify(make_token(Issuer("first"))))

    assert identity.namespace == "lab"


@pytest.mark.parametrize("wrong", ["token", "ca.crt"])
def test_a_server_that_refuses_us_or_is_not_ours_gives_no_keys(tmp_path: Path, wrong: str) -> None:
    certificate = make_certificate(tmp_path)
    account = tmp_path / "account"
    account.mkdir()
    for name in ("token", "ca.crt"):
        content = (tmp_path / name).read_bytes()
        (account / name).write_bytes(b"another-token" if name == wrong == "token" else content)
    if wrong == "ca.crt":
        (account / "ca.crt").write_bytes(b"")

    with api_server(certificate) as url, pytest.raises(KeysUnavailable):
        asyncio.run(ApiServerKeys(url, account).fetch())


def test_no_account_no_keys(tmp_path: Path) -> None:
    with pytest.raises(KeysUnavailable):
        asyncio.run(ApiServerKeys("https://127.0.0.1:1", tmp_path).fetch())
