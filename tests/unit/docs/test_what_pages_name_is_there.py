"""Links, files, commands, settings and metrics that pages name are there."""

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from stayer_operator.cli.main import app

ROOT = Path(__file__).parents[3]
OWN = ("README.md", "CONTRIBUTING.md", "AGENTS.md", "CHANGELOG.md")
PAGES = sorted(
    path.relative_to(ROOT)
    for path in [
        *(ROOT / name for name in OWN),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "changelog").rglob("*.md"),
        *(ROOT / "hack").glob("*/*.md"),
        *(ROOT / "images").glob("*/*.md"),
        *(ROOT / "examples").glob("*/*.md"),
    ]
)
FOLDERS = "changelog|crds|docs|evaluator|examples|hack|helm|images|operator|requirements|tests"
SOURCES = ("operator", "evaluator", "hack", "helm", "images", "Makefile", "tests")

pages = pytest.mark.parametrize("page", PAGES, ids=str)


def text(page: Path) -> str:
    return (ROOT / page).read_text()


def code(page: Path) -> list[str]:
    """What stands in back-ticks or in a block of code."""
    found = text(page)
    blocks = re.findall(r"```.*?\n(.*?)```", found, re.DOTALL)
    words = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", found, flags=re.DOTALL))
    return [*words, *(line for block in blocks for line in block.splitlines())]


@cache
def sources() -> str:
    """Everything that is not a page."""
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *SOURCES],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    kept = [name for name in names if not name.endswith((".md", ".sum", ".mod"))]
    return "\n".join(
        (ROOT / name).read_text(errors="replace") for name in kept if (ROOT / name).is_file()
    )


@pages
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", text(page))
    local = [link for link in links if not re.match(r"[a-z]+:", link)]

    assert [link for link in local if not ((ROOT / page).parent / link).exists()] == []


@pages
def test_files_are_there(page: Path) -> None:
    named = {
        word.rstrip("/.,:")
        for piece in code(page)
        for word in re.findall(rf"(?<![\w./~-])(?:{FOLDERS})/[\w./-]*", piece)
        if not re.search(re.escape(word) + r"[<*{$…]", piece)
    }

    assert sorted(name for name in named if not (ROOT / name).exists()) == []


@pages
def test_make_has_the_targets(page: Path) -> None:
    targets = re.findall(r"^([a-z-]+):", text(Path("Makefile")), re.MULTILINE)
    calls = [re.match(r"(?:\$ )?(?:\w+=\S+ )*make ([a-z-]+)", piece) for piece in code(page)]
    named = {call[1] for call in calls if call}

    assert sorted(named - set(targets)) == []


def commands() -> Iterator[tuple[str, Any]]:
    """`stayer GROUP NAME` and the command."""
    for group, inner in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        for name, command in inner.commands.items():
            yield f"stayer {group} {name}", command


@pages
def test_the_command_line_knows_the_commands(page: Path) -> None:
    known = dict(commands())
    unknown = []
    for piece in code(page):
        for group, names, rest in re.findall(
            r"\bstayer (run|trial|tasks|storage) ([a-z|\\]+)([^\n#]*)", piece
        ):
            for name in re.split(r"[|\\]+", names):
                command = known.get(f"stayer {group} {name}")
                options = {o for p in command.params for o in p.opts} if command else set()
                wanted = set(re.findall(r"(?<!\S)--[a-z-]+", rest))
                if command is None or wanted - options:
                    unknown.append(f"stayer {group} {name}{rest}")

    assert unknown == []


@pages
def test_metrics_and_variables_are_in_the_code(page: Path) -> None:
    named = {
        word
        for piece in code(page)
        for word in re.findall(r"(?<![\w-])(?:stayer_[a-z_]+|STAYER_[A-Z0-9_]+)", piece)
    }
    # Prometheus clients add the ending of a counter themselves.
    missing = [w for w in named if w not in sources() and w.removesuffix("_total") not in sources()]

    assert sorted(missing) == []


@pages
def test_values_are_the_charts(page: Path) -> None:
    values = yaml.safe_load(text(Path("helm/stayer/values.yaml")))
    unknown = []
    for piece in code(page):
        if match := re.fullmatch(r"([a-z]\w*)((?:\.\w+)+)", piece):
            found = values.get(match[1])
            for name in match[2].split(".")[1:]:
                found = found.get(name, unknown) if isinstance(found, dict) else unknown
            if match[1] in values and found is unknown:
                unknown.append(piece)

    assert unknown == []
