#!/usr/bin/env bash
# bench.sh BUILD_DIR: runs every benchmark program, one after another, so that they do not disturb each other; then the model
# against ONNX Runtime, where the Python environment has it.
set -euo pipefail
cd "$(dirname "$0")/.."
for program in "$1"/bin/bench_*; do
  [ -x "$program" ] || { echo "bench: no benchmark was built in $1/bin" >&2; exit 1; }
  printf '\n=== %s\n' "$(basename "$program")"
  "$program"
done
printf '\n=== peers\n'
if ORT_DISABLE_TELEMETRY=1 .venv/bin/python -c 'import magika, numpy, onnxruntime' 2>/dev/null; then
  .venv/bin/python bench/peers.py "$1/bin/stax"
else
  echo "bench: .venv has no onnxruntime or no magika (make setup installs them): the model is not compared"
fi
