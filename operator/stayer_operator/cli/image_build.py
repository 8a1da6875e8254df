"""Building and pushing a task's image with what the machine has: buildah, docker or podman."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from stayer_operator.cli.errors import CliError

BUILDERS = ("buildah", "docker", "podman")
LOG_LINES = 15


@dataclass(frozen=True, slots=True)
class Builder:
    """A tool that builds images, and whether its registry speaks plain HTTP."""

    tool: str
    plain_http: bool = False

    @classmethod
    def find(cls, *, plain_http: bool) -> "Builder":
        """The first tool on this machine. Raises CliError where there is none.

        A docker client without a daemon, as some machines have it, does not count.
        """
        for tool in BUILDERS:
            if shutil.which(tool) and (tool == "buildah" or _answers(tool)):
                return cls(tool, plain_http)
        raise CliError(f"no image builder: accepted: one of {', '.join(BUILDERS)}")

    def build(self, directory: Path, tag: str, arguments: Mapping[str, str]) -> None:
        """Build `directory`'s Dockerfile as `tag`. Raises CliError with the log's last lines."""
        command = [self.tool, "build", "--tag", tag]
        if self.tool == "buildah":
            command += ["--isolation", "chroot", "--network", "host", "--layers"]
            command += ["--tls-verify=false"] if self.plain_http else []
        for name, value in arguments.items():
            command += ["--build-arg", f"{name}={value}"]
        _run([*command, str(directory)], f"building {tag}")

    def push(self, tag: str) -> str:
        """Push `tag`; the reference by digest. Raises CliError."""
        if self.tool == "docker":
            _run(["docker", "push", tag], f"pushing {tag}")
            found = _run(["docker", "inspect", "--format", "{{json .RepoDigests}}", tag], tag)
            name = tag.rpartition(":")[0]
            return next(str(d) for d in json.loads(found) if d.startswith(f"{name}@"))
        with tempfile.NamedTemporaryFile("r") as digest:
            command = [self.tool, "push", "--digestfile", digest.name]
            command += ["--tls-verify=false"] if self.plain_http else []
            _run([*command, tag], f"pushing {tag}")
            return f"{tag.rpartition(':')[0]}@{digest.read().strip()}"


def wanted_base(directory: Path, bases: Mapping[str, str]) -> dict[str, str]:
    """Build arguments for a task: the base image for the kind that its `x_base` names.

    A task without `x_base`, or whose kind has no entry, is built as its Dockerfile says.
    """
    try:
        task = yaml.safe_load((directory / "task.yaml").read_text())
    except (OSError, yaml.YAMLError) as error:
        raise CliError(f"{directory / 'task.yaml'}: {error}") from error
    kind = str(task.get("x_base")) if isinstance(task, dict) else ""
    return {"BASE_IMAGE": bases[kind]} if kind in bases else {}


def _answers(tool: str) -> bool:
    command = [tool, "info", "--format", "{{json .}}"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603


def _run(command: Sequence[str], what: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode == 0:
        return done.stdout
    log = (done.stderr or done.stdout).splitlines()[-LOG_LINES:]
    raise CliError("\n".join([f"{what} failed ({command[0]} exit {done.returncode}):", *log]))
