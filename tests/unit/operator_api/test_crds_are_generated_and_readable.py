"""The CRDs: as generated, structural, described, with the columns that people see."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stayer_operator.api.crds import run_crd, trial_crd
from stayer_operator.api.generate import DIRECTORY, main, stale

CRDS = {"brun": run_crd(), "btrial": trial_crd()}
FORBIDDEN = {"$ref", "$defs", "title", "allOf", "oneOf", "const", "nullable", "exclusiveMinimum"}


def version(crd: dict[str, Any]) -> dict[str, Any]:
    return crd["spec"]["versions"][0]


def nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from nodes(inner, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from nodes(schema[key], f"{path}[{key}]")


def all_nodes() -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{short}{path}", node)
        for short, crd in CRDS.items()
        for path, node in nodes(version(crd)["schema"]["openAPIV3Schema"])
    ]


def columns(crd: dict[str, Any], *, wide: bool) -> list[str]:
    listed = version(crd)["additionalPrinterColumns"]
    return [c["name"] for c in listed if bool(c.get("priority")) is wide]


def test_the_files_are_what_the_models_say():
    assert stale(DIRECTORY) == []


def test_check_fails_on_a_changed_file_and_names_the_line(tmp_path: Path, capsys):
    assert main([str(tmp_path)]) == 0
    changed = tmp_path / "trials.stayer.dev.yaml"
    changed.write_text(changed.read_text().replace("btrial", "trial"))

    assert main(["--check", str(tmp_path)]) == 1

    assert "+    - btrial" in capsys.readouterr().out


def test_check_passes_on_fresh_files(tmp_path: Path):
    main([str(tmp_path)])
    assert main(["--check", str(tmp_path)]) == 0


def test_every_node_is_structural():
    for path, node in all_nodes():
        assert not FORBIDDEN & node.keys(), path
        assert "type" in node or node.get("x-kubernetes-int-or-string"), path
        assert not ("properties" in node and "additionalProperties" in node), path


def test_every_field_says_what_it_is_for():
    silent = [
        path
        for path, node in all_nodes()
        if "[" not in path.rsplit(".", 1)[-1] and not node.get("description")
    ]
    assert silent == ["brun.metadata", "btrial.metadata"]


def test_lists_that_rules_look_at_are_bounded():
    for path, node in all_nodes():
        if node.get("type") == "array" and ".spec" in path:
            assert "maxItems" in node, path


@pytest.mark.parametrize(
    ("short", "expected", "wide"),
    [
        (
            "brun",
            ["Benchmark", "Phase", "Trials", "Running", "Resolved", "Regressions", "Age"],
            ["Reason"],
        ),
        (
            "btrial",
            [
                *("Run", "Task", "Agent", "Model", "Phase", "Round", "Units", "Snapshots"),
                *("Regressions", "Age"),
            ],
            ["Tokens-In", "Tokens-Out", "Agent-Pod", "Adjudicator-Pod", "Failure-Mode"],
        ),
    ],
)
def test_kubectl_get_shows(short: str, expected: list[str], wide: list[str]):
    assert columns(CRDS[short], wide=False) == expected
    assert columns(CRDS[short], wide=True) == wide


@pytest.mark.parametrize("short", ["brun", "btrial"])
def test_names_and_subresource(short: str):
    crd = CRDS[short]
    assert crd["spec"]["names"]["shortNames"] == [short]
    assert crd["spec"]["names"]["categories"] == ["stayer"]
    assert version(crd)["subresources"] == {"status": {}}


def test_columns_point_at_fields_that_exist():
    for crd in CRDS.values():
        schema = version(crd)["schema"]["openAPIV3Schema"]
        paths = {path for path, _ in nodes(schema)}
        for column in version(crd)["additionalPrinterColumns"]:
            path = column["jsonPath"].split("[")[0]
            assert path in paths or path.startswith(".metadata."), column


def test_optional_sections_default_to_empty_objects():
    spec = version(CRDS["brun"])["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert spec["properties"]["snapshots"]["default"] == {}
    assert spec["properties"]["matrix"]["properties"]["models"]["default"] == [{"name": "none"}]
    assert "default" not in spec["properties"]["tasks"]["properties"]["source"]
    assert spec["required"] == ["benchmark", "tasks", "matrix"]


def test_what_changes_the_meaning_of_results_has_a_rule_at_the_root():
    rules = version(CRDS["brun"])["schema"]["openAPIV3Schema"]["x-kubernetes-validations"]
    guarded = {rule.get("fieldPath") for rule in rules}
    assert guarded >= {
        *(".spec.benchmark", ".spec.tasks", ".spec.timeouts", ".spec.snapshots"),
        *(".spec.testVisibility", ".spec.network", ".spec.userNamespaces"),
        *(".spec.matrix.agents", ".spec.matrix.models", ".spec.matrix.loopProfiles"),
        *(".spec.attempts", ".spec.attemptsByTask"),
    }
