#!/usr/bin/env bash
# fuzz.sh BUILD_DIR JOBS: the random-program tests with FUZZ_COUNT programs from FUZZ_SEED on.
set -euo pipefail
cd "$(dirname "$0")/.."
export STAX_FUZZ_COUNT=${FUZZ_COUNT:-10000} STAX_FUZZ_SEED=${FUZZ_SEED:-$RANDOM$RANDOM}
echo "fuzz: $STAX_FUZZ_COUNT programs from seed $STAX_FUZZ_SEED"
exec ctest --test-dir "$1" --label-regex fuzz --parallel "$2" --output-on-failure --no-tests=error
