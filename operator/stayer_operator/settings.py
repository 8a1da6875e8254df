"""Everything an installation decides, read once from the environment and passed down.

How a run behaves is said in its spec, never here. All problems are told at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from stayer_evaluator.storage.settings import SettingsError as StoreSettingsError
from stayer_evaluator.storage.settings import StoreSettings
from stayer_operator.core.run.settings import CLOSED_RANGES, OpenNetwork
from stayer_operator.errors import SettingsError


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """Where this process runs and which namespaces it serves."""

    namespace: str = "stayer-system"
    """Our own: the Lease and the Services are there."""
    run_namespaces: tuple[str, ...] = ()
    """Namespaces with runs; empty: all. Rights are limited to them."""
    identity: str = ""
    """Holder of the Lease: the pod's UID, so that a restarted container leads at once."""
    deployment: str = ""
    """Our Deployment, which owns the probe pods; empty: there is none."""
    pod_name: str = "stayer-operator"
    """Stands in Events as the reporting instance."""
    version: str = "unknown"
    """The chart's; recorded in every trial's document, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialPods:
    """What all trial pods have in common."""

    evaluator_image: str
    """Image of the sidecars."""
    runner_image: str
    """Image that holds the runner."""
    runner_delivery: Literal["image-volume", "init-copy"] | None = None
    """`image-volume`, or `init-copy` where the runtime does not run programs from volumes; None:
    found out by a probe pod."""
    pull_policy: str = "IfNotPresent"
    """Of our two images. They are tagged by content: nothing is gained by asking again."""
    relay_url: str = ""
    """Address of the evidence relay as the sidecars use it."""
    relay_ip: str = ""
    """Its Service's address; empty: asked of the API server at the start."""
    progress_url: str = ""
    """Address of our progress endpoint as the sidecars use it."""
    progress_ip: str = ""
    """Its Service's address; empty: asked of the API server at the start."""
    service_account: str = "stayer-trial"
    """Their identity, without any rights."""
    priority_class: str = ""
    """Empty: the cluster's default."""
    must_fail: tuple[str, ...] = ()
    """host:port that no trial pod may reach, proved before each start."""
    user_namespaces: bool | None = None
    """Whether the nodes' runtime has them; False: runs that say `preferred` go without, those that
    say `required` are refused; None: found out by a probe pod."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How hard we press on the API server and on ourselves."""

    api_rate: int = 100
    """Requests a second on average: what a scheduler places on a large cluster."""
    api_burst: int = 200
    """Requests at once after a pause: two seconds' worth."""
    workers: int = 16
    """Keys reconciled at the same time: they wait for answers, not for CPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """Our own endpoints."""

    metrics_port: int = 9090
    """/metrics, /healthz, /readyz."""
    progress_port: int = 8087
    """/v1/progress; its own port, so that policies can tell the two apart."""
    lease_name: str = "stayer-operator"
    """Name of the Lease in our namespace."""
    log_level: str = "info"
    """debug, info, warning or error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All groups."""

    installation: Installation
    trial_pods: TrialPods
    open_network: OpenNetwork
    store: StoreSettings
    pace: Pace
    serving: Serving


def read_settings(env: Mapping[str, str]) -> Settings:
    """Settings from the environment. Raises SettingsError naming every variable at fault."""
    reader = _Reader(env)
    settings = Settings(
        installation=_installation(reader),
        trial_pods=_trial_pods(reader),
        open_network=_open_network(reader),
        store=_store(reader),
        pace=Pace(
            api_rate=reader.number("STAYER_API_RATE", 100, 1, 10_000),
            api_burst=reader.number("STAYER_API_BURST", 200, 1, 20_000),
            workers=reader.number("STAYER_WORKERS", 16, 1, 1000),
        ),
        serving=Serving(
            metrics_port=reader.number("STAYER_METRICS_PORT", 9090, 1, 65535),
            progress_port=reader.number("STAYER_PROGRESS_PORT", 8087, 1, 65535),
            lease_name=reader.text("STAYER_LEASE_NAME", "stayer-operator", _NAME),
            log_level=reader.choice(
                "STAYER_LOG_LEVEL", "info", ("debug", "info", "warning", "error")
            ),
        ),
    )
    reader.finish()
    return settings


_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_ADDRESS = re.compile(r"[^\s,]+:[0-9]{1,5}")
_LABEL = re.compile(r"[^\s,=]+=[^\s,=]*")
_RANGE = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){3}/[0-9]{1,2}")
_URL = re.compile(r"https?://[^\s/]+")
_ANY = re.compile(r"\S.*")
AUTO = "auto"


def _installation(reader: _Reader) -> Installation:
    pod_name = reader.text("POD_NAME", "stayer-operator", _ANY)
    return Installation(
        namespace=reader.text("STAYER_NAMESPACE", "stayer-system", _NAME),
        run_namespaces=reader.several("STAYER_RUN_NAMESPACES", _NAME),
        identity=reader.text("POD_UID", pod_name, _ANY),
        deployment=reader.text("STAYER_DEPLOYMENT", "", _NAME),
        pod_name=pod_name,
        version=reader.text("STAYER_VERSION", "unknown", _ANY),
    )


def _trial_pods(reader: _Reader) -> TrialPods:
    api_server = ""
    if host := reader.env.get("KUBERNETES_SERVICE_HOST"):
        host = f"[{host}]" if ":" in host else host
        api_server = f"{host}:{reader.env.get('KUBERNETES_SERVICE_PORT', '443')}"
    return TrialPods(
        evaluator_image=reader.required("STAYER_EVALUATOR_IMAGE", _ANY, "an image reference"),
        runner_image=reader.required("STAYER_RUNNER_IMAGE", _ANY, "an image reference"),
        runner_delivery=_delivery(reader),
        pull_policy=reader.choice(
            "STAYER_PULL_POLICY", "IfNotPresent", ("IfNotPresent", "Always", "Never")
        ),
        relay_url=reader.required("STAYER_RELAY_URL", _URL, "http://HOST:PORT"),
        relay_ip=reader.text("STAYER_RELAY_IP", "", _ANY),
        progress_url=reader.required("STAYER_PROGRESS_URL", _URL, "http://HOST:PORT"),
        progress_ip=reader.text("STAYER_PROGRESS_IP", "", _ANY),
        service_account=reader.text("STAYER_TRIAL_SERVICE_ACCOUNT", "stayer-trial", _NAME),
        priority_class=reader.text("STAYER_TRIAL_PRIORITY_CLASS", "", _ANY),
        must_fail=reader.several("STAYER_MUST_FAIL", _ADDRESS)
        or ((api_server,) if api_server else ()),
        user_namespaces=reader.flag_or_auto("STAYER_USER_NAMESPACES"),
    )


def _open_network(reader: _Reader) -> OpenNetwork:
    labels = reader.several("STAYER_DNS_POD_LABELS", _LABEL) or ("k8s-app=kube-dns",)
    return OpenNetwork(
        dns_namespace=reader.text("STAYER_DNS_NAMESPACE", "kube-system", _NAME),
        dns_pod_labels=dict(_label(text) for text in labels),
        dns_port=reader.number("STAYER_DNS_PORT", 53, 1, 65535),
        closed_ranges=(*CLOSED_RANGES, *reader.several("STAYER_CLOSED_RANGES", _RANGE)),
    )


def _label(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


def _delivery(reader: _Reader) -> Literal["image-volume", "init-copy"] | None:
    accepted = (AUTO, "image-volume", "init-copy")
    match reader.choice("STAYER_RUNNER_DELIVERY", AUTO, accepted):
        case "image-volume":
            return "image-volume"
        case "init-copy":
            return "init-copy"
        case _:
            return None


def _store(reader: _Reader) -> StoreSettings:
    try:
        return StoreSettings.from_env(reader.env)
    except StoreSettingsError as error:
        reader.blame(str(error))
        return StoreSettings(bucket="")


class _Reader:
    """Reads variables and collects what is wrong with them. An empty one counts as not set."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.env = env
        self._problems: list[str] = []

    def text(self, name: str, default: str, pattern: re.Pattern[str]) -> str:
        return self._read(name, default, pattern.fullmatch, f"text like {pattern.pattern}")

    def required(self, name: str, pattern: re.Pattern[str], accepted: str) -> str:
        if not self.env.get(name):
            self._problems.append(f"{name} is not set; accepted: {accepted}")
            return ""
        return self._read(name, "", pattern.fullmatch, accepted)

    def several(self, name: str, pattern: re.Pattern[str]) -> tuple[str, ...]:
        parts = tuple(part.strip() for part in self.env.get(name, "").split(",") if part.strip())
        for part in parts:
            if not pattern.fullmatch(part):
                self._problems.append(f"{name}: {part!r}; accepted: texts like {pattern.pattern}")
        return parts

    def choice(self, name: str, default: str, accepted: tuple[str, ...]) -> str:
        return self._read(name, default, lambda text: text in accepted, ", ".join(accepted))

    def flag_or_auto(self, name: str) -> bool | None:
        """None: to be found out."""
        text = self.choice(name, AUTO, (AUTO, "true", "false"))
        return None if text == AUTO else text == "true"

    def number(self, name: str, default: int, least: int, most: int) -> int:
        def fits(text: str) -> bool:
            return text.isdecimal() and least <= int(text) <= most

        text = self._read(name, str(default), fits, f"a whole number from {least} to {most}")
        return int(text)

    def blame(self, problem: str) -> None:
        """Add a problem that somebody else found."""
        self._problems.append(problem)

    def finish(self) -> None:
        """Raise everything that was found."""
        if self._problems:
            raise SettingsError("\n".join(self._problems))

    def _read(self, name: str, default: str, fits: Callable[[str], object], accepted: str) -> str:
        text = self.env.get(name, "").strip()
        if not text:
            return default
        if not fits(text):
            self._problems.append(f"{name}: {text!r}; accepted: {accepted}")
            return default
        return text
