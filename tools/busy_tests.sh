#!/usr/bin/env bash
# Runs the tests in the circumstances that disturb them most: under nohup in the background of a script, where SIGINT and
# SIGHUP are ignored and there is no standard input, while four processes keep the machine busy.
#
#   tools/busy_tests.sh              three times in a row
#   tools/busy_tests.sh 1 tests/web  once, and with these arguments for pytest
set -uo pipefail
cd "$(dirname "$0")/.." || exit
times=${1:-3}
shift "$(($# > 0 ? 1 : 0))"
folder=$(mktemp -d)
busy=()
trap 'kill "${busy[@]}"' EXIT
for _ in 1 2 3 4; do
    sh -c 'while :; do :; done' &
    busy+=("$!")
done
failed=0
for ((number = 1; number <= times; number++)); do
    nohup python -m pytest -n auto "$@" > "$folder/$number.txt" 2>&1 &
    wait "$!" || failed=1
    echo "$folder/$number.txt: $(tail -n 1 "$folder/$number.txt")"
done
exit "$failed"
