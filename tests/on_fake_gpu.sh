#!/usr/bin/env bash
# on_fake_gpu.sh PYTHON DRIVER PROGRAM [ARGUMENT...]: runs a test program with tensors on the GPU of the driver for tests,
# whose kernels Triton interprets. Exit status 77 where neither STAX_PYTHON nor PYTHON has Triton.
python=${STAX_PYTHON:-$1} driver=$2
shift 2
if ! "$python" -c 'import numpy, triton' 2>/dev/null; then
  echo "no Python with Triton: neither STAX_PYTHON nor .venv of \`make setup\`"
  exit 77
fi
export STAX_TEST_DEVICE=cuda STAX_CUDA_DRIVER=$driver STAX_TUNING=none FAKE_CUDA_PYTHON=$python
STAX_PYTHON=$(dirname "$0")/support/fake_cuda/python exec "$@"
