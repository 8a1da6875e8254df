"""What the agent is told. Versioned: a change of the text is a change of the version.

The text names the task, the workspace contract (evaluation.md §4) and, from round 2 on, what is
left (§5). It never says which unit is ready, what was tested or how that went.
"""

import hashlib
from dataclasses import dataclass

VERSION = "1"

_CONTRACT = """\
# Task

{instruction}

# How the work is organised

- You work in `{workspace}`, a git repository whose only commit is the starting state.
- `requirements/` holds one file for each requirement, named `<name>.yaml`. Read all of them \
before you begin: later ones build on earlier ones, and nobody tells you the order.
- When a requirement is done, stage everything with `git add -A`, write the staged difference to \
`requirement_patches/<name>.diff` with `git diff --cached`, and commit. A requirement counts as \
done once that file is there and not empty.
- If you plan, you may put the plan into `agent_plans/plan.json`: an object with `nodes` (each \
with an `id`, the name of a requirement) and `edges` (each with `from` and `to`).
- Tests that you write for yourself belong into `agent_tests/`.
- What worked once has to go on working: finished requirements are tested again and again.
- Work on without asking; nobody answers. No single command should take longer than 10 minutes.
"""

_TESTS = (
    "- The tests of the requirements lie in `{suite}`; you can read them but not change them.\n"
)

_RESIDUAL = """
# Where you are

This is round {number}. An earlier round ended before everything was done; its work is in the \
workspace. These requirements have no patch file yet:

{names}

Go on with them. Leave what is finished intact.
"""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A round's text and which template made it."""

    text: str
    version: str
    template: str
    """sha256 of the templates, for the trace."""


def template_digest() -> str:
    """sha256 over all templates of this version."""
    return hashlib.sha256("\0".join((VERSION, _CONTRACT, _TESTS, _RESIDUAL)).encode()).hexdigest()


def build_prompt(
    instruction: str,
    number: int,
    residual: tuple[str, ...],
    *,
    workspace: str = "/workspace",
    suite: str | None = None,
) -> Prompt:
    """The whole instruction, and from round 2 on the residual (evaluation.md §5).

    `suite` is where the visible tests lie, null when they are hidden.
    """
    text = _CONTRACT.format(instruction=instruction.strip(), workspace=workspace)
    if suite is not None:
        text += _TESTS.format(suite=suite)
    if number > 1 and residual:
        names = "\n".join(f"- {name}" for name in residual)
        text += _RESIDUAL.format(number=number, names=names)
    return Prompt(text, VERSION, template_digest())
