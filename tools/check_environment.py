"""Checks that docs/environment.md has a row for each variable STAX_... or FAKE_CUDA_... that the sources read, and for no other.

A variable is read where a C++ or Python file has its name as a string, or a shell script or the Makefile has it after a
dollar sign.
"""

import re
import sys

import repository

DOCUMENT = "docs/environment.md"
FOLDERS = {"src", "python", "tests", "bench", "examples", "tools"}
# From one process of Stax to another, of no use to anybody else; and macros of generated C++.
EXCEPTIONS = {"STAX_WORKER_FOLDER", "STAX_WORKER_TEST", "STAX_INLINE", "STAX_NOINLINE"}
NAME = r"(?:STAX|FAKE_CUDA)_[A-Z0-9_]+"
IN_STRING = re.compile(rf"""["']({NAME})["'=]""")
IN_SHELL = re.compile(rf"\$\{{?({NAME})")
ROW = re.compile(rf"^\|((?: ?`{NAME}`,?)+) \|", re.MULTILINE)


def documented(text):
    return {name for row in ROW.findall(text) for name in re.findall(NAME, row)}


def read_in(path, text):
    """The variables that a file reads."""
    if path.suffix in {".cpp", ".h", ".py"}:
        return set(IN_STRING.findall(text))
    if path.suffix == ".sh" or path.name == "Makefile":
        return set(IN_SHELL.findall(text))
    return set()


def problems_of(document, sources):
    """The complaints; `sources` are pairs of a path and its text."""
    places = {}
    for path, text in sources:
        for name in read_in(path, text) - EXCEPTIONS:
            places.setdefault(name, path)
    known = documented(document)
    missing = [f"{places[name]}:1: {name} has no row in {DOCUMENT}" for name in sorted(set(places) - known)]
    stale = [f"{DOCUMENT}:1: nothing reads {name}" for name in sorted(known - set(places))]
    return missing + stale


def check(root, paths):
    chosen = [path for path in paths if path.parts[0] in FOLDERS or path.name == "Makefile"]
    own = {"check_environment.py", "check_environment_test.py"}
    sources = [(path, (root / path).read_text(errors="replace")) for path in chosen if path.name not in own]
    return problems_of((root / DOCUMENT).read_text(), sources)


if __name__ == "__main__":
    sys.exit(repository.report("check_environment", check(repository.ROOT, repository.files())))
