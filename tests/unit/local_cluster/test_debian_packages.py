"""Debian's mirror and packages are taken from what the machine's apt says."""

from pathlib import Path

import pytest

from local_cluster.debian import Source, find_missing, select_sources
from local_cluster.errors import LocalClusterError
from local_cluster.images import parse_libraries

LISTING = """\
https://mirror.example/debian/ bookworm main Debian
https://mirror.example/debian/ bookworm contrib Debian
https://mirror.example/debian/ bookworm-updates main Debian
https://mirror.example/security/ bookworm-security main Debian
https://other.example/apt/ bookworm main Somebody
https://mirror.example/debian/ trixie main Debian
https://no-origin.example/ bookworm main
"""


def test_debians_own_suites_of_the_release_are_chosen_base_first() -> None:
    assert select_sources(LISTING, "bookworm") == (
        Source("https://mirror.example/debian", "bookworm"),
        Source("https://mirror.example/security", "bookworm-security"),
        Source("https://mirror.example/debian", "bookworm-updates"),
    )


def test_a_machine_without_the_release_is_told_so() -> None:
    with pytest.raises(LocalClusterError, match="knows no Debian bullseye"):
        select_sources(LISTING, "bullseye")


def test_only_packages_that_are_fully_installed_count() -> None:
    listing = "ipset installed\nbuildah config-files\nipset-dev installed\n"

    assert find_missing(["ipset", "buildah", "nftables"], listing) == ["buildah", "nftables"]


def test_the_libraries_of_a_program_are_its_files() -> None:
    listing = """\
\tlinux-vdso.so.1 (0x00007ffd)
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f22)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f23)
"""

    assert parse_libraries(listing) == (
        Path("/lib/x86_64-linux-gnu/libc.so.6"),
        Path("/lib64/ld-linux-x86-64.so.2"),
    )
