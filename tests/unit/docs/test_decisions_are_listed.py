"""docs/decisions/README.md lists every record once, by number, with its title and a line."""

import re
from pathlib import Path

FOLDER = Path(__file__).parents[3] / "docs" / "decisions"
RECORDS = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")


def test_the_list_holds_every_record_by_number_and_title() -> None:
    listed = re.findall(
        r"^\| \[(\d+)\]\((\S+)\) \| (.+?) \| (.+) \|$",
        (FOLDER / "README.md").read_text(),
        re.MULTILINE,
    )
    first_lines = [path.read_text().partition("\n")[0] for path in RECORDS]

    assert [name for _, name, _, _ in listed] == [path.name for path in RECORDS]
    assert [f"# {number}. {title}" for number, _, title, _ in listed] == first_lines


def test_the_number_is_the_files_and_used_once() -> None:
    numbers = [int(path.name[:4]) for path in RECORDS]
    headed = [int(path.read_text().removeprefix("# ").partition(".")[0]) for path in RECORDS]

    assert headed == numbers
    assert len(set(numbers)) == len(numbers)
