#!/usr/bin/env bash
# The reference solution: applies the gold patches in reference order to the workspace and leaves
# each one in requirement_patches/, as an agent would.
set -euo pipefail

workspace="${WORKSPACE:-/workspace}"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
gold="$here/gold_patches"
[ -d "$gold" ] || gold="$workspace/gold_patches"

units=(
    cell-refs
    number-format
    dependency-graph
    formula-parser
    formula-eval
    function-library
    reactive-sheet
    sheet-files
)

cd "$workspace"
mkdir -p requirement_patches
for unit in "${units[@]}"; do
    if command -v git >/dev/null; then
        git apply "$gold/$unit.diff"
    else
        patch --batch --strip=1 <"$gold/$unit.diff"
    fi
    cp "$gold/$unit.diff" "requirement_patches/$unit.diff"
done
