#!/bin/sh
# Measures two builds in turns until pgstrata can tell them apart, and ends with its exit code.
#
#   ./gate.sh COMMAND-OF-THE-BASELINE COMMAND-OF-THE-CHANGE [options of pgstrata decide]
#
# Each command is one whole run of a benchmark and prints one number, the higher the better (for others add
# --lower-is-better). Give each run a fresh start and fresh data: what one leaves must not help or hurt the next.
set -eu

baseline=$1 change=$2
shift 2
results=${RESULTS:-results.csv}
echo block,environment,value > "$results"

measure() { # NAME COMMAND: one row
    value=$(sh -c "$2") || { echo "a run of $1 failed in block $block" >&2; exit 2; }
    echo "$block,$1,$value" >> "$results"
}

block=0
while [ "$block" -lt 24 ]; do
    block=$((block + 1))
    # a fresh order in every block, so that drift and warm caches favour neither
    for arm in $(printf 'baseline\nchange\n' | shuf); do
        case $arm in
            baseline) measure baseline "$baseline" ;;
            change) measure change "$change" ;;
        esac
    done
    # fewer blocks support no interval
    [ "$block" -ge 7 ] || continue
    code=0
    answer=$(pgstrata decide "$results" --baseline baseline "$@") || code=$?
    # 3 is undecided: go on measuring
    [ "$code" -eq 3 ] || break
done
printf '%s\n' "$answer"
exit "$code"
