"""How to reach the object store: read once from the environment, passed down from there."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast, get_args

Encryption = Literal["none", "AES256", "aws:kms"]
Checksums = Literal["when_supported", "when_required"]


class SettingsError(ValueError):
    """Settings that cannot be used; the message lists every problem, one a line."""


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """An S3 bucket. Credentials are not here: boto3 finds them (AWS_ACCESS_KEY_ID and
    AWS_SECRET_ACCESS_KEY, AWS_WEB_IDENTITY_TOKEN_FILE with AWS_ROLE_ARN, or pod identity).
    """

    bucket: str
    endpoint: str | None = None
    """None: AWS's own for the region."""
    region: str = "us-east-1"
    prefix: str = ""
    """Before every key; empty or with trailing slash."""
    path_style: bool = True
    ca_file: str | None = None
    """PEM bundle of a private certificate authority."""
    encryption: Encryption = "none"
    kms_key: str | None = None
    checksums: Checksums = "when_required"
    """Additional checksums of the SDK; some servers refuse their headers (security.md F20). Every
    object carries its SHA-256 and every request signs its body's, whatever stands here."""
    connect_timeout: float = 5.0
    read_timeout: float = 30.0
    """Seconds without a byte; boto3's own 60 s would hide a stalled server for a minute."""
    connections: int = 16
    deadline: float = 300.0
    """Seconds after which a call that keeps failing is given up."""

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "StoreSettings":
        """Settings from STAYER_S3_*. Raises SettingsError naming every variable that is wrong."""
        reader = _Reader(env)
        settings = cls(
            bucket=reader.text("BUCKET", ""),
            endpoint=reader.text("ENDPOINT", "") or None,
            region=reader.text("REGION", env.get("AWS_REGION", "us-east-1")),
            prefix=reader.text("PREFIX", ""),
            path_style=reader.flag("PATH_STYLE", default=True),
            ca_file=reader.text("CA", "") or None,
            encryption=cast("Encryption", reader.choice("SSE", get_args(Encryption), "none")),
            kms_key=reader.text("SSE_KMS_KEY", "") or None,
            checksums=cast(
                "Checksums", reader.choice("CHECKSUMS", get_args(Checksums), "when_required")
            ),
            connect_timeout=reader.number("CONNECT_TIMEOUT_SECONDS", 5.0),
            read_timeout=reader.number("READ_TIMEOUT_SECONDS", 30.0),
            connections=int(reader.number("CONNECTIONS", 16)),
            deadline=reader.number("DEADLINE_SECONDS", 300.0),
        )
        problems = reader.problems + settings._problems()
        if problems:
            raise SettingsError("\n".join(problems))
        return settings

    def _problems(self) -> list[str]:
        problems = []
        if not self.bucket:
            problems.append("STAYER_S3_BUCKET: not set; accepted: the name of a bucket")
        if self.endpoint is not None and not self.endpoint.startswith(("http://", "https://")):
            problems.append(f"STAYER_S3_ENDPOINT: found {self.endpoint!r}; accepted: http(s)://…")
        if self.prefix and not self.prefix.endswith("/"):
            problems.append(f"STAYER_S3_PREFIX: found {self.prefix!r}; must end with /")
        if self.kms_key and self.encryption != "aws:kms":
            problems.append("STAYER_S3_SSE_KMS_KEY: needs STAYER_S3_SSE=aws:kms")
        return problems


class _Reader:
    """Reads STAYER_S3_<name> and collects what is wrong with it."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.env = env
        self.problems: list[str] = []

    def text(self, name: str, default: str) -> str:
        return self.env.get(f"STAYER_S3_{name}") or default

    def flag(self, name: str, *, default: bool) -> bool:
        text = self.text(name, str(default).lower()).lower()
        if text not in ("true", "false"):
            self.problems.append(f"STAYER_S3_{name}: found {text!r}; accepted: true, false")
        return text == "true"

    def choice(self, name: str, accepted: tuple[str, ...], default: str) -> str:
        text = self.text(name, default)
        if text not in accepted:
            found = f"STAYER_S3_{name}: found {text!r}"
            self.problems.append(f"{found}; accepted: {', '.join(accepted)}")
        return text

    def number(self, name: str, default: float) -> float:
        text = self.text(name, str(default))
        try:
            value = float(text)
        except ValueError:
            value = 0.0
        if not 0 < value < float("inf"):
            found = f"STAYER_S3_{name}: found {text!r}"
            self.problems.append(f"{found}; accepted: a number above 0")
        return value
