"""`stayer run list`, and what is said of a run that is not there."""

import json

import pytest
from typer.testing import CliRunner

from stayer_operator.cli.cluster_access import ClusterAccess
from stayer_operator.cli.errors import CliError
from stayer_operator.cli.main import app

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def listed(*options: str) -> str:
    said = CliRunner().invoke(app, ["run", "list", *options])
    assert (said.exit_code, said.exception) == (0, None)
    return said.stdout


def test_json_has_what_people_wrote_and_no_bookkeeping(api):
    more = {"annotations": {LAST_APPLIED: "{}", "team": "a"}, "managedFields": [{"manager": "m"}]}
    api.put("benchmarkruns", "one", metadata=more, spec={})
    api.put("benchmarkruns", "two", metadata={"annotations": {LAST_APPLIED: "{}"}}, spec={})

    one, two = json.loads(listed("-o", "json"))

    assert one["metadata"]["annotations"] == {"team": "a"}
    assert not {"annotations", "managedFields"} & set(two["metadata"])
    assert one["metadata"]["uid"] == "uid-of-one"


@pytest.mark.parametrize("option", ["-A", "--all-namespaces"])
def test_runs_of_all_namespaces_name_theirs(api, option):
    api.put("benchmarkruns", "here", spec={})
    api.put("benchmarkruns", "there", "other", spec={})

    header, *rows = listed(option).splitlines()

    assert header.split()[:2] == ["NAMESPACE", "NAME"]
    assert [row.split()[:2] for row in rows] == [["lab", "here"], ["other", "there"]]
    assert "there" not in listed()


def test_a_run_that_is_elsewhere_is_pointed_at(api):
    for namespace in ("b", "a"):
        api.put("benchmarkruns", "small", namespace, spec={})

    with pytest.raises(CliError) as error:
        ClusterAccess(None).run("small")

    assert str(error.value) == "run small not found in namespace lab; there is one in a, b (-n a)"


@pytest.mark.parametrize("forbidden", [True, False])
def test_a_run_that_is_nowhere_or_cannot_be_looked_for_is_just_not_found(api, forbidden):
    api.forbids_cluster_lists = forbidden
    api.put("benchmarkruns", "large", "other", spec={})

    with pytest.raises(CliError) as error:
        ClusterAccess(None).run("small")

    assert str(error.value) == "run small not found in namespace lab"


def test_trials_are_looked_for_likewise(api):
    api.put("trials", "t", "other", spec={})

    with pytest.raises(CliError, match=r"trial t not found in namespace lab; there is one in oth"):
        ClusterAccess(None).trial("t")
