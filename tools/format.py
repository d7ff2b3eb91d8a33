"""Formats every C++ file of the repository with clang-format, or with --check says which are not formatted."""

import re
import shutil
import subprocess
import sys

import repository

VERSION = "14"  # Debian 12's; another version formats differently


def main(arguments):
    program = shutil.which(f"clang-format-{VERSION}") or shutil.which("clang-format")
    if not program:
        print("format: clang-format is missing; 'make setup' installs it", file=sys.stderr)
        return 1
    found = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    if not re.search(rf"version {VERSION}\.", found):
        print(f"format: clang-format {VERSION} is needed, got: {found.strip()}", file=sys.stderr)
        return 1
    paths = [str(repository.ROOT / path) for path in repository.cpp_files()]
    mode = ["--dry-run", "--Werror"] if "--check" in arguments else ["-i"]
    status = 0
    for start in range(0, len(paths), 50):
        status |= subprocess.run([program, "--style=file", *mode, *paths[start : start + 50]]).returncode
    if status and "--check" in arguments:
        print("format: run 'make format'", file=sys.stderr)
    elif not status:
        print(f"format: {len(paths)} files fine")
    return 1 if status else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
