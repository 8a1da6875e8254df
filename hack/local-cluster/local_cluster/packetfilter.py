"""Finds the packet filter rules that the cluster's programs made, and takes them away.

Nothing tells whose a rule is but its chain's name. So what was there before the cluster is
remembered, another Kubernetes on the machine is refused, and of the chains that any container
runtime makes only those are ours whose rules name our pod network.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from local_cluster.commands import try_command
from local_cluster.render import CNI_NETWORK

PROXY_TABLES = ("ip kube-proxy", "ip6 kube-proxy")
SET_NAME = re.compile(r"(inet6:)?(KUBE-|kube-router-)")


@dataclass(frozen=True)
class FilterState:
    """Names of what is in the packet filter: chains, tables and address sets."""

    chains: tuple[str, ...]
    tables: tuple[str, ...]
    sets: tuple[str, ...]

    def shows_kubernetes(self) -> bool:
        """Whether another Kubernetes has left its marks."""
        return any(" KUBE-" in chain for chain in self.chains) or any(
            table in PROXY_TABLES for table in self.tables
        )


def read_filter_state() -> FilterState:
    """What is there now."""
    chains = [
        f"{family} {table} {chain}"
        for family, save in (("4", "iptables-save"), ("6", "ip6tables-save"))
        for table, chain in parse_chains(try_command([save]).stdout)
    ]
    return FilterState(
        chains=tuple(chains),
        tables=parse_tables(try_command(["nft", "list", "tables"]).stdout),
        sets=tuple(try_command(["ipset", "list", "-name"]).stdout.split()),
    )


def parse_tables(listing: str) -> tuple[str, ...]:
    """The tables that `nft list tables` names, as `FAMILY NAME`."""
    return tuple(re.findall(r"^table (\S+ \S+)", listing, re.MULTILINE))


def parse_chains(save: str) -> list[tuple[str, str]]:
    """Every (table, chain) in the output of iptables-save."""
    found: list[tuple[str, str]] = []
    table = ""
    for line in save.splitlines():
        if line.startswith("*"):
            table = line[1:]
        elif line.startswith(":"):
            found.append((table, line[1:].split()[0]))
    return found


def plan_removal(save: str, before: Iterable[tuple[str, str]]) -> str:
    """What to feed to `iptables-restore --noflush` to take our chains out; empty if none.

    Args:
        save: the output of iptables-save.
        before: chains that were there before the cluster, as (table, chain).
    """
    sections: list[str] = []
    for table, rules, chains in _split_tables(save):
        known = {chain for other, chain in before if other == table}
        ours = {chain for chain in chains - known if _is_ours(chain, rules)}
        if not ours:
            continue
        jumps = [rule for rule in rules if _jumps_into(rule, ours) and rule.split()[1] not in ours]
        lines = [rule.replace("-A ", "-D ", 1) for rule in jumps]
        lines += [f"-F {chain}" for chain in sorted(ours)]
        lines += [f"-X {chain}" for chain in sorted(ours)]
        sections.append("\n".join([f"*{table}", *lines, "COMMIT"]))
    return "\n".join(sections) + "\n" if sections else ""


def _split_tables(save: str) -> list[tuple[str, list[str], set[str]]]:
    tables: list[tuple[str, list[str], set[str]]] = []
    for line in save.splitlines():
        if line.startswith("*"):
            tables.append((line[1:], [], set()))
        elif line.startswith(":"):
            tables[-1][2].add(line[1:].split()[0])
        elif line.startswith("-A "):
            tables[-1][1].append(line)
    return tables


def _is_ours(chain: str, rules: list[str]) -> bool:
    if chain.startswith(("KUBE-", "CNI-HOSTPORT-")):
        return True
    # Made by the bridge and portmap plugins, which write the network's name into comments.
    name = f'name: \\"{CNI_NETWORK}\\"'
    own = [rule for rule in rules if chain in rule.split()]
    return chain.startswith("CNI-") and any(name in rule for rule in own)


def _jumps_into(rule: str, chains: set[str]) -> bool:
    target = re.search(r" -[jg] (\S+)", rule)
    return target is not None and target.group(1) in chains


def remove_rules(before: FilterState) -> list[str]:
    """Remove our chains, tables and sets; return complaints of what could not be done."""
    trouble: list[str] = []
    for family, prefix in (("4", "iptables"), ("6", "ip6tables")):
        known = [tuple(chain.split()[1:]) for chain in before.chains if chain[0] == family]
        pairs = [(table, chain) for table, chain in known]
        plan = plan_removal(try_command([f"{prefix}-save"]).stdout, pairs)
        if plan:
            trouble += _complaint([f"{prefix}-restore", "--noflush"], plan)
    for name in try_command(["ipset", "list", "-name"]).stdout.split():
        if SET_NAME.match(name) and name not in before.sets:
            trouble += _complaint(["ipset", "destroy", name])
    for table in parse_tables(try_command(["nft", "list", "tables"]).stdout):
        if table not in before.tables and (table in PROXY_TABLES or _is_empty(table)):
            trouble += _complaint(["nft", "delete", "table", *table.split()])
    return trouble


def _is_empty(table: str) -> bool:
    listing = try_command(["nft", "-j", "list", "table", *table.split()]).stdout
    try:
        entries = json.loads(listing)["nftables"]
    except (ValueError, KeyError):
        return False
    return not any("rule" in entry or "set" in entry or "map" in entry for entry in entries)


def _complaint(command: list[str], stdin: str | None = None) -> list[str]:
    result = try_command(command, stdin=stdin)
    return [f"{' '.join(command)}: {result.stderr.strip()}"] if result.returncode else []
