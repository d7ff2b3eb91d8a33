#!/usr/bin/env bash
# bench.sh BUILD_DIR: runs every benchmark program, one after another, so that they do not disturb each other.
set -euo pipefail
cd "$(dirname "$0")/.."
for program in "$1"/bin/bench_*; do
  [ -x "$program" ] || { echo "bench: no benchmark was built in $1/bin" >&2; exit 1; }
  printf '\n=== %s\n' "$(basename "$program")"
  "$program"
done
