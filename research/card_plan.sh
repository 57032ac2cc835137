#!/bin/sh
# What is due on a graphics card, one after the other: the benchmark, the quick check of all notebooks,
# then experiments. What is finished stays, and a second call goes on.
#
#     sh research/card_plan.sh PYTHON OUTPUT ["NAME [OPTIONS]" ...]
set -u
python=$1 output=$2
shift 2
mkdir -p "$output"
"$python" -m benchmarks.card "$output/benchmark.json" || echo "benchmark: failed" >&2
"$python" tools/rerun.py --card --workers 6 --training --output "$output/check.json" || echo "check: failed" >&2
for row in "$@"; do
    # shellcheck disable=SC2086  # a row is a name and its options
    "$python" -m research $row --output "$output/${row%% *}.csv" || echo "$row: failed" >&2
done
