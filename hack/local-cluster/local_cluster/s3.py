"""Makes the bucket: one signed request, so that no client library is needed."""

from __future__ import annotations

import datetime
import hashlib
import hmac
import http.client
from dataclasses import dataclass

from local_cluster.errors import LocalClusterError

REGION = "us-east-1"
EMPTY_HASH = hashlib.sha256(b"").hexdigest()
SIGNED_HEADERS = "host;x-amz-content-sha256;x-amz-date"


@dataclass(frozen=True)
class Credentials:
    """The S3 server's root account."""

    access_key: str
    secret_key: str


def sign(
    method: str, host: str, path: str, credentials: Credentials, moment: datetime.datetime
) -> dict[str, str]:
    """Headers that sign a request without body and query (AWS Signature Version 4)."""
    stamp = moment.strftime("%Y%m%dT%H%M%SZ")
    scope = f"{stamp[:8]}/{REGION}/s3/aws4_request"
    headers = {"host": host, "x-amz-content-sha256": EMPTY_HASH, "x-amz-date": stamp}
    listed = "".join(f"{name}:{value}\n" for name, value in headers.items())
    request = "\n".join([method, path, "", listed, SIGNED_HEADERS, EMPTY_HASH])
    request_hash = hashlib.sha256(request.encode()).hexdigest()
    to_sign = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, request_hash])
    key = f"AWS4{credentials.secret_key}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, to_sign.encode(), "sha256").hex()
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={credentials.access_key}/{scope}, "
        f"SignedHeaders={SIGNED_HEADERS}, Signature={signature}"
    )
    return headers


def ensure_bucket(address: str, port: int, bucket: str, credentials: Credentials) -> None:
    """Make the bucket unless it is there."""
    if _request("HEAD", address, port, bucket, credentials) == 200:
        return
    status = _request("PUT", address, port, bucket, credentials)
    if status not in (200, 409):
        raise LocalClusterError(
            f"the S3 server answered {status} when the bucket {bucket} was made",
            advice="`cluster logs s3` shows why",
        )


def _request(method: str, address: str, port: int, bucket: str, credentials: Credentials) -> int:
    moment = datetime.datetime.now(datetime.UTC)
    headers = sign(method, f"{address}:{port}", f"/{bucket}", credentials, moment)
    connection = http.client.HTTPConnection(address, port, timeout=10)
    try:
        connection.request(method, f"/{bucket}", headers=headers)
        return connection.getresponse().status
    except OSError as error:
        raise LocalClusterError(
            f"the S3 server at {address}:{port} does not answer: {error}",
            advice="`cluster status`, then `cluster restart s3`",
        ) from error
    finally:
        connection.close()
