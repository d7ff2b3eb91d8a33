#!/usr/bin/env bash
# build.sh PRESET JOBS [TARGET...]: configures where needed and builds a preset of CMakePresets.json.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1 jobs=$2
shift 2

for tool in cmake ninja g++; do
  command -v "$tool" >/dev/null || { echo "build: $tool is missing; 'make setup' installs it" >&2; exit 1; }
done
[ -f "build/$preset/build.ninja" ] || cmake --preset "$preset"
cmake --build "build/$preset" --parallel "$jobs" ${1:+--target "$@"}
