#!/usr/bin/env bash
# The reference solution: applies the gold patches in reference order to the workspace and leaves
# each one in requirement_patches/, as an agent would.
set -euo pipefail

workspace="${WORKSPACE:-/workspace}"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
gold="$here/gold_patches"
[ -d "$gold" ] || gold="$workspace/gold_patches"

units=(
    money-amounts
    date-periods
    journal-model
    journal-format
    query-language
    balance-engine
    price-history
    journal-checks
    csv-import
    sample-books
    period-reports
    command-line
    data-export
    budget-tracking
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
