"""The object store over boto3: conditional creates, own checksums, explicit time limits.

boto3 blocks, so every call runs in a thread of this store. The SDK's own retries are off: the
decorator above (`retry.py`) repeats until a deadline and counts every try.
"""

import asyncio
import hashlib
import io
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

import boto3
import botocore.exceptions
import botocore.session
from botocore.config import Config
from botocore.handlers import add_expect_header, convert_body_to_file_like_object

from stayer_evaluator.storage.documents import CorruptObject
from stayer_evaluator.storage.retry import RetryingMutableStore, RetryPolicy, StoreCounters
from stayer_evaluator.storage.settings import StoreSettings
from stayer_evaluator.storage.store import AccessDenied, ObjectExists, ObjectMissing, StoreError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

T = TypeVar("T")

PIECE = 1024 * 1024
SHA256 = "sha256"
EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"})
DENIED = frozenset(
    {"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "AllAccessDisabled"}
)
NO_CREDENTIALS = (
    botocore.exceptions.NoCredentialsError,
    botocore.exceptions.PartialCredentialsError,
)
MISSING = frozenset({"NoSuchKey", "404", "NotFound"})
DELETE_AT_ONCE = 1000
ENDPOINTS = frozenset({"s3", "sts", "oidc", "portal.sso", "sso"})


class BucketMissing(StoreError):  # noqa: N818 (reads as what happened)
    """The bucket of the settings does not exist."""

    retryable = False


class S3Store:
    """A MutableStore in one bucket. One try a call; see `connect_s3`."""

    def __init__(self, settings: StoreSettings) -> None:
        self.settings = settings
        self._threads = ThreadPoolExecutor(settings.connections, thread_name_prefix="s3")
        self._client: S3Client | None = None
        self._making = threading.Lock()

    def close(self) -> None:
        """End the threads once their calls are done, and close the connections."""
        self._threads.shutdown()
        if self._client is not None:
            self._client.close()
            self._client = None

    async def create(self, key: str, data: bytes) -> bool:
        try:
            await self._run(key, lambda s3: self._put(s3, key, data, {"IfNoneMatch": "*"}))
        except ObjectExists:
            if await self.get(key) != data:
                raise
        return True

    async def put(self, key: str, data: bytes) -> None:
        await self._run(key, lambda s3: self._put(s3, key, data, {}))

    async def get(self, key: str) -> bytes:
        return await self._run(key, lambda s3: self._get(s3, key))

    async def get_range(self, key: str, offset: int, length: int) -> bytes:
        if length == 0:
            return b""
        data, there = await self._run(key, lambda s3: self._get_range(s3, key, offset, length))
        if not there.startswith(f"bytes {offset}-{offset + length - 1}/"):
            raise CorruptObject(f"{key}: wanted {length} bytes at {offset}, there are {there}")
        if len(data) != length:
            raise StoreError(f"{key}: cut off after {len(data)} of {length} bytes")
        return data

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        answer = await self._run(key, lambda s3: s3.get_object(**self._address(key)))
        body = answer["Body"]
        hasher = hashlib.sha256()
        try:
            while piece := await self._run(key, lambda _: body.read(PIECE)):
                hasher.update(piece)
                yield piece
        finally:
            body.close()
        _check(key, answer["Metadata"], hasher.hexdigest())

    async def keys(self, prefix: str) -> list[str]:
        return list(await self.sizes(prefix))

    async def sizes(self, prefix: str) -> dict[str, int]:
        return await self._run(prefix, lambda s3: self._list(s3, prefix))

    async def delete(self, keys: list[str]) -> None:
        for start in range(0, len(keys), DELETE_AT_ONCE):
            batch = keys[start : start + DELETE_AT_ONCE]
            await self._run(batch[0], lambda s3, batch=batch: self._delete(s3, batch))  # type: ignore[misc]

    async def _run(self, key: str, call: "Callable[[S3Client], T]") -> T:
        return await asyncio.get_running_loop().run_in_executor(
            self._threads, self._translated, key, call
        )

    def _translated(self, key: str, call: "Callable[[S3Client], T]") -> T:
        try:
            return call(self._connect())
        except botocore.exceptions.ClientError as error:
            raise self._trouble(key, error) from error
        except NO_CREDENTIALS as error:
            raise AccessDenied(
                f"{key}: {error}; accepted: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
                "another way in which boto3 finds credentials"
            ) from error
        except (botocore.exceptions.BotoCoreError, OSError) as error:
            raise StoreError(f"{key}: {type(error).__name__}: {error}") from error

    def _connect(self) -> "S3Client":
        # One client for all threads: each costs 15 MB, and making two at once is not safe.
        with self._making:
            if self._client is None:
                self._client = make_client(self.settings)
            return self._client

    def _trouble(self, key: str, error: botocore.exceptions.ClientError) -> StoreError:
        code = str(error.response.get("Error", {}).get("Code", ""))
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        detail = f"{key}: {status} {code}: {error.response.get('Error', {}).get('Message', '')}"
        if code == "PreconditionFailed" or status == 412:
            return ObjectExists(key)
        if code in MISSING:
            return ObjectMissing(key)
        if code == "NoSuchBucket":
            return BucketMissing(f"bucket {self.settings.bucket!r} does not exist")
        if code == "InvalidRange" or status == 416:
            return CorruptObject(f"{key}: shorter than it must be")
        if code in EXPIRED:
            self._client = None  # the next try reads the credentials afresh
            return StoreError(detail)
        if code == "RequestTimeTooSkewed":
            return StoreError(f"{detail}: this machine's clock and the store's differ")
        return AccessDenied(detail) if code in DENIED else StoreError(detail)

    def _address(self, key: str) -> Any:
        return {"Bucket": self.settings.bucket, "Key": self.settings.prefix + key}

    def _put(self, s3: "S3Client", key: str, data: bytes, condition: dict[str, str]) -> None:
        extra: dict[str, Any] = dict(condition)
        if self.settings.encryption != "none":
            extra["ServerSideEncryption"] = self.settings.encryption
        if self.settings.kms_key is not None:
            extra["SSEKMSKeyId"] = self.settings.kms_key
        s3.put_object(
            **self._address(key),
            Body=data,
            Metadata={SHA256: hashlib.sha256(data).hexdigest()},
            **extra,
        )

    def _get(self, s3: "S3Client", key: str) -> bytes:
        answer = s3.get_object(**self._address(key))
        data = answer["Body"].read()
        _check(key, answer["Metadata"], hashlib.sha256(data).hexdigest())
        return data

    def _get_range(self, s3: "S3Client", key: str, offset: int, length: int) -> tuple[bytes, str]:
        wanted = f"bytes={offset}-{offset + length - 1}"
        answer = s3.get_object(**self._address(key), Range=wanted)
        return answer["Body"].read(), answer.get("ContentRange", "")

    def _list(self, s3: "S3Client", prefix: str) -> dict[str, int]:
        pages = s3.get_paginator("list_objects_v2").paginate(
            Bucket=self.settings.bucket, Prefix=self.settings.prefix + prefix
        )
        start = len(self.settings.prefix)
        found = {
            item["Key"][start:]: item["Size"] for page in pages for item in page.get("Contents", [])
        }
        return dict(sorted(found.items()))

    def _delete(self, s3: "S3Client", keys: list[str]) -> None:
        answer = s3.delete_objects(
            Bucket=self.settings.bucket,
            Delete={"Objects": [{"Key": self.settings.prefix + key} for key in keys]},
        )
        failed = answer.get("Errors", [])
        if failed:
            raise StoreError(f"{len(failed)} keys not deleted, first {failed[0]}")


def make_client(settings: StoreSettings) -> "S3Client":
    """A boto3 client with Stayer's time limits and without the SDK's retries."""
    config = Config(
        signature_version="s3v4",
        connect_timeout=settings.connect_timeout,
        read_timeout=settings.read_timeout,
        max_pool_connections=settings.connections,
        retries={"mode": "standard", "total_max_attempts": 1},
        parameter_validation=False,  # of our own few calls; it costs a tenth of each
        request_checksum_calculation=settings.checksums,
        response_checksum_validation=settings.checksums,
        s3={
            "addressing_style": "path" if settings.path_style else "virtual",
            "payload_signing_enabled": True,
        },
    )
    client: S3Client = _session().client(
        "s3",
        endpoint_url=settings.endpoint,
        region_name=settings.region,
        verify=settings.ca_file,
        config=config,
    )
    building = "before-parameter-build.s3.PutObject"
    client.meta.events.unregister(building, convert_body_to_file_like_object)
    client.meta.events.register_last(building, _as_file_if_large)
    client.meta.events.unregister("before-call.s3", add_expect_header)
    client.meta.events.register("before-call.s3", _expect_for_large)
    return client


def _session() -> boto3.session.Session:
    """A session that knows where S3 and the givers of credentials are: the addresses of all the
    other services take 7 MB for as long as the client lives. Times stay text, as nobody reads
    them: understanding when an object was last modified is a tenth of reading it.
    """
    session = botocore.session.get_session()
    known = session.get_component("data_loader").load_data("endpoints")
    for partition in known["partitions"]:
        services = partition["services"]
        partition["services"] = {name: services[name] for name in ENDPOINTS & services.keys()}
    session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=str)
    return boto3.session.Session(botocore_session=session)


class _Whole(io.BytesIO):
    """Bytes as a file that is read in one go. Read in the usual pieces of 16 KB, each waits for the
    interpreter, and a program that is busy with something else sends nothing meanwhile.
    """

    def read(self, size: int | None = -1, /) -> bytes:  # noqa: ARG002 (as every file's)
        return super().read()


def _as_file_if_large(params: dict[str, Any], **_more: Any) -> None:
    """The SDK makes a file of every body, which is sent apart from its headers: for those that are
    announced. A small one goes with them.
    """
    if len(params["Body"]) > PIECE:
        params["Body"] = _Whole(params["Body"])


def _expect_for_large(model: Any, params: dict[str, Any], **more: Any) -> None:
    """The SDK asks before every body whether to send it. For a small one the question costs more
    than the body: a round trip, and an answer that is read byte by byte.
    """
    if not isinstance(params.get("body"), bytes):
        add_expect_header(model, params, **more)


def connect_s3(
    settings: StoreSettings, *, counters: StoreCounters | None = None
) -> RetryingMutableStore:
    """The bucket of the settings, every call repeated until its deadline."""
    policy = RetryPolicy(deadline=settings.deadline)
    return RetryingMutableStore(S3Store(settings), policy, counters=counters)


def _check(key: str, metadata: dict[str, str], found: str) -> None:
    stated = metadata.get(SHA256)
    if stated is not None and stated != found:
        raise CorruptObject(f"{key}: sha256 {found}, stored as {stated}")
