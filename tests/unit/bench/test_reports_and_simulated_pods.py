"""What a bench prints, and the manifests that simulated nodes live by."""

from __future__ import annotations

import json

import pytest
import yaml

from bench.report import Check, Report, Table, align
from bench.simulated import ADJUDICATOR_SAYS, AGENT_SAYS, LABEL, TAINT, node, placement, stages
from stayer_evaluator.records.reports import TerminationMessage
from stayer_operator.api.pods import PodTemplate


def make_report(*holds: bool | None) -> Report:
    checks = [
        Check(quantity=f"q{n}", goal="<= 1", seen="2", holds=held) for n, held in enumerate(holds)
    ]
    table = Table(title="behind it", columns=["", "p50"], rows=[["all", "1.5"]])
    return Report(name="x", title="a bench", checks=checks, tables=[table], notes=["quiet"])


@pytest.mark.parametrize(
    ("holds", "expected"),
    [([True, None], True), ([True, False], False), ([None], True), ([], True)],
)
def test_a_report_holds_unless_a_goal_was_missed(holds: list[bool | None], expected: bool) -> None:
    assert make_report(*holds).holds is expected


def test_a_report_shows_goal_seen_and_verdict() -> None:
    text = make_report(True, False, None).render()

    lines = [line.split() for line in text.splitlines()]
    assert ["q0", "<=", "1", "2", "ok"] in lines
    assert ["q1", "<=", "1", "2", "MISSED"] in lines
    assert ["q2", "<=", "1", "2", "-"] in lines
    assert "behind it" in text
    assert "(quiet)" in text


def test_a_report_is_json() -> None:
    document = json.loads(json.dumps(make_report(False).to_json()))

    assert document["holds"] is False
    assert document["checks"][0]["goal"] == "<= 1"


def test_columns_are_as_wide_as_what_is_in_them() -> None:
    assert align(["", "goal"], [["long name", "1"]]) == "             goal\n  long name     1"


def test_every_stage_is_a_document_and_its_template_is_filled() -> None:
    documents = list(yaml.safe_load_all(stages()))

    assert [document["kind"] for document in documents] == ["Stage"] * 7
    for document in documents:
        assert "@" not in document["spec"]["next"].get("statusTemplate", "")


def test_simulated_sidecars_say_what_real_ones_say() -> None:
    for said, kind in ((AGENT_SAYS, "end"), (ADJUDICATOR_SAYS, "results")):
        message = json.dumps(said, separators=(",", ":"))
        assert TerminationMessage.model_validate_json(message).kind == kind
        assert message in "".join(
            document["spec"]["next"].get("statusTemplate", "")
            for document in yaml.safe_load_all(stages())
        )


def test_only_pods_that_ask_for_it_land_on_simulated_nodes() -> None:
    template = PodTemplate.model_validate(placement())
    made = node("n", {"a": "b"})

    assert made["metadata"]["labels"] == {LABEL: "true", "a": "b"}
    assert template.node_selector == {LABEL: "true"}
    [taint], [toleration] = made["spec"]["taints"], template.tolerations
    assert (taint["key"], taint["effect"]) == (TAINT, "NoSchedule")
    assert (toleration.key, toleration.operator) == (TAINT, "Exists")
