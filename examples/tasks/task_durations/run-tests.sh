#!/usr/bin/env bash
# Runs the tests from the workspace (the current directory): all, or those of one unit.
#   TEST_DIR       where the tests lie (default /tests)
#   UNIT_TEST_DIR  the same for one unit (default $TEST_DIR)
#   STAYER_UNIT    the unit; empty: everything
set -u

TEST_DIR="${TEST_DIR:-/tests}"
UNIT_TEST_DIR="${UNIT_TEST_DIR:-$TEST_DIR}"
STAYER_UNIT="${STAYER_UNIT:-}"

root="$TEST_DIR"
target="$TEST_DIR"
if [ -n "$STAYER_UNIT" ] && [ -d "$UNIT_TEST_DIR/$STAYER_UNIT" ]; then
    root="$UNIT_TEST_DIR"
    target="$UNIT_TEST_DIR/$STAYER_UNIT"
fi

# The tests may be read-only; ids are relative to the test folder however many units run;
# no configuration file of the workspace, or above the tests, has a say.
# A unit that is not there yet must not keep the others from running.
export PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
exec python3 -m pytest -v -rA -p no:cacheprovider -c /dev/null --rootdir "$root" \
    --continue-on-collection-errors "$target"
