"""Source of the program that starts pytest in the task container (docs/decisions)."""

#: Run as `python -I -B -c SOURCE WORKSPACE ARGS…`.
#:
#: pytest and its installed plugins are imported while the workspace is on no path at all; only
#: then does the workspace join, at the end, so that nothing in it shadows the standard library,
#: pytest or an installed package, and no metadata in it names a plugin. The process ends without
#: running exit handlers: what those print after the closing banner would be a claim more.
#:
#: No cache prefix is set: compiled files beside the tests cannot exist (the suite is our archive,
#: mounted read-only), those in the workspace are left out of every snapshot and could only stand
#: for the candidate's own modules, and the image's own are what makes pytest start quickly.
SOURCE = """
import os
import sys

import pytest


class Workspace:
    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(self):
        sys.path.append(sys.argv[1])


code = pytest.main(sys.argv[2:], plugins=[Workspace()])
sys.stdout.flush()
sys.stderr.flush()
os._exit(int(code))
"""
