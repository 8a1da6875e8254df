"""`stayer run watch`: how it ends."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from stayer_operator.cli import main as command
from stayer_operator.cli import watch


def put_run(api, phase: str, complete: str = "True", observed: int = 1, **more: Any) -> None:
    conditions = [{"type": "Complete", "status": complete}, *more.pop("conditions", [])]
    status = {"phase": phase, "conditions": conditions, "observedGeneration": observed, **more}
    api.put("benchmarkruns", "small", spec={}, status=status)


def watched(monkeypatch: pytest.MonkeyPatch, *options: str) -> int:
    """Exit code of the whole command."""
    monkeypatch.setattr(sys, "argv", ["stayer", "run", "watch", "small", *options])
    with pytest.raises(SystemExit) as ended:
        command.main()
    return int(ended.value.code or 0)


@pytest.mark.parametrize(("phase", "code"), [("Succeeded", 0), ("Failed", 1), ("Cancelled", 1)])
def test_the_exit_code_says_how_the_run_ended(api, monkeypatch, phase, code):
    put_run(api, phase)

    assert watched(monkeypatch) == code


@pytest.mark.parametrize(
    "state",
    [
        pytest.param({"phase": "Running", "complete": "False"}, id="it runs"),
        pytest.param({"phase": "Succeeded", "observed": 0}, id="it was just run again"),
    ],
)
def test_a_run_that_goes_on_after_the_time_is_another_code(api, monkeypatch, capsys, state):
    put_run(api, **state)

    assert watched(monkeypatch, "--timeout", "0.01") == 2
    assert "run small did not end in time" in capsys.readouterr().err


def test_a_run_that_was_refused_is_told_with_its_reason(api, monkeypatch, capsys):
    refused = {"type": "Accepted", "status": "False", "message": "spec.x: found 1, accepted: 2"}
    put_run(api, "Failed", "False", conditions=[refused])

    assert watched(monkeypatch) == 1
    assert "was not accepted: spec.x: found 1" in capsys.readouterr().err


@pytest.mark.parametrize(("count", "words"), [(1, "1 regression"), (2, "2 regressions")])
def test_one_regression_is_one(api, monkeypatch, capsys, count, words):
    monkeypatch.setattr(watch.console, "_width", 200)
    put_run(api, "Succeeded", regressions=count)

    watched(monkeypatch)

    assert capsys.readouterr().out.rstrip().endswith(words)
