#!/usr/bin/env bash
# Runs the tests from the workspace (the current directory): all, or those of one unit.
#   TEST_DIR       where the tests lie (default /tests)
#   UNIT_TEST_DIR  the same for one unit (default $TEST_DIR)
#   STAYER_UNIT    the unit; empty: everything
set -u
shopt -s nullglob

TEST_DIR="${TEST_DIR:-/tests}"
UNIT_TEST_DIR="${UNIT_TEST_DIR:-$TEST_DIR}"
STAYER_UNIT="${STAYER_UNIT:-}"

# Globs are sorted by the locale.
export LC_ALL=C
if [ -n "$STAYER_UNIT" ] && [ -d "$UNIT_TEST_DIR/$STAYER_UNIT" ]; then
    files=("$UNIT_TEST_DIR/$STAYER_UNIT"/*.test.js)
else
    files=("$TEST_DIR"/*/*.test.js)
fi
if [ "${#files[@]}" -eq 0 ]; then
    echo "no tests in $TEST_DIR" >&2
    exit 1
fi

exec node --test --test-reporter=spec "${files[@]}"
