#!/usr/bin/env bash
# check_install.sh BUILD_DIR JOBS: installs a finished build, moves it elsewhere, and builds and runs against it what a
# user would: the project of tests/consumer, and the runnable blocks of the documentation.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1 jobs=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cmake --install "$build" --prefix "$scratch/first" >"$scratch/install.log" || { cat "$scratch/install.log"; exit 1; }
mv "$scratch/first" "$scratch/prefix"
prefix=$scratch/prefix

# Only the public headers may have gone along.
strangers=$(find "$prefix/include" -type f -not -path "$prefix/include/stax/*.h" \
  -not -path "$prefix/include/stax/tensor_methods.inc")
[ -z "$strangers" ] || { echo "check_install: installed, but not public: $strangers" >&2; exit 1; }

cp -r tests/consumer "$scratch/consumer"
cmake -S "$scratch/consumer" -B "$scratch/consumer/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_PREFIX_PATH="$prefix" >"$scratch/configure.log" || { cat "$scratch/configure.log"; exit 1; }
cmake --build "$scratch/consumer/build" --parallel "$jobs"
"$scratch/consumer/build/consumer"
echo "check_install: the consumer project builds and runs"

# The installed program works with the installed Python package.
if .venv/bin/python -c 'import triton' 2>"$scratch/triton.log"; then
  printf '\nopen(%s, "w").close()\n' "'$scratch/imported'" >>"$prefix/share/stax/python/stax_triton/__init__.py"
  STAX_CACHE_DIR=$scratch/cache STAX_PYTHON=.venv/bin/python "$prefix/bin/stax" compile softmax --target cuda:sm_90
  [ -e "$scratch/imported" ] ||
    { echo "check_install: the installed Python package was not used" >&2; exit 1; }
  echo "check_install: the installed program compiles a kernel for a GPU"
fi

python3 tools/check_docs.py --prefix "$prefix" --programs "$build/bin"
