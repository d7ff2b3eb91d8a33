#!/usr/bin/env bash
# interpreted.sh PYTHON PROGRAM [ARGUMENT...]: runs a test program with compiled functions as Triton kernels in Triton's
# interpreter. Exit status 77 where neither STAX_PYTHON nor PYTHON has Triton.
python=${STAX_PYTHON:-$1}
shift
if ! "$python" -c 'import numpy, triton' 2>/dev/null; then
  echo "no Python with Triton: neither STAX_PYTHON nor .venv of \`make setup\`"
  exit 77
fi
STAX_TRITON=interpret STAX_PYTHON=$python exec "$@"
