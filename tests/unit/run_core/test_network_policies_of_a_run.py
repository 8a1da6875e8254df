"""Who may talk to whom."""

from __future__ import annotations

from typing import Any

from stayer_operator.core.run.identity import RunIdentity
from stayer_operator.core.run.networks import network_policies
from stayer_operator.core.run.settings import OpenNetwork, RunSettings

RUN = RunIdentity(
    namespace="lab",
    name="demo",
    uid="11111111-1111",
    resource_version="1",
    generation=1,
    deleting=False,
)


def policies(network: str, **settings: Any) -> dict[str, Any]:
    made = network_policies(RUN, network, RunSettings(**settings))
    return {
        policy.manifest["spec"]["podSelector"]["matchLabels"]["stayer.dev/role"]: policy.manifest
        for policy in made
    }


def ports(policy: dict[str, Any]) -> list[int]:
    return [port["port"] for rule in policy["spec"]["egress"] for port in rule.get("ports", ())]


def test_one_for_each_role_and_nothing_comes_in():
    made = policies("closed")
    assert sorted(made) == ["adjudicator", "agent"]
    for policy in made.values():
        assert policy["spec"]["ingress"] == []
        assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
        assert policy["spec"]["podSelector"]["matchLabels"]["stayer.dev/run-uid"] == RUN.uid


def test_closed_reaches_relay_and_progress_only():
    for policy in policies("closed").values():
        assert ports(policy) == [8088, 8087]
        for rule in policy["spec"]["egress"]:
            assert {"namespaceSelector", "podSelector"} == rule["to"][0].keys()


def test_open_gives_agents_dns_and_public_addresses_but_no_private_ones():
    made = policies(
        "open", open_network=OpenNetwork(closed_ranges=("10.0.0.0/8", "203.0.113.7/32"))
    )
    assert 53 in ports(made["agent"])
    blocks = [
        peer["ipBlock"]
        for rule in made["agent"]["spec"]["egress"]
        for peer in rule["to"]
        if "ipBlock" in peer
    ]
    assert blocks == [{"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8", "203.0.113.7/32"]}]


def test_dns_is_where_the_installation_says():
    dns = OpenNetwork(dns_namespace="dns", dns_pod_labels={"dns.example/of": "all"}, dns_port=5353)
    [rule] = [
        rule
        for rule in policies("open", open_network=dns)["agent"]["spec"]["egress"]
        if "podSelector" in rule["to"][0] and "UDP" in {p["protocol"] for p in rule["ports"]}
    ]
    [peer] = rule["to"]
    assert peer["podSelector"] == {"matchLabels": {"dns.example/of": "all"}}
    assert peer["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "dns"}
    assert [port["port"] for port in rule["ports"]] == [5353, 5353]


def test_open_changes_nothing_for_the_adjudicator():
    assert policies("open")["adjudicator"] == policies("closed")["adjudicator"]
