#!/usr/bin/env bash
# demo.sh BUILD_DIR: names the types of this repository's own files with a real model, run by Stax.
set -euo pipefail
cd "$(dirname "$0")/.."
exec "$1/bin/filetype" --repository
