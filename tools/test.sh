#!/usr/bin/env bash
# test.sh BUILD_DIR JOBS: every test of a finished build. Runs all groups, and fails when one of them failed.
set -uo pipefail
cd "$(dirname "$0")/.."
build=$1 jobs=$2
source tools/sections.sh

section "unit and end-to-end tests" run_ctest "$build" "$jobs"
section "tests of the tools" python3 -m unittest discover -s tests/tools -p '*_test.py'
section "installed package and documentation" tools/check_install.sh "$build" "$jobs"
report_sections
