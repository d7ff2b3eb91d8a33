"""Checks the text of every file: no unfinished-work marks, no paths of one machine, no addresses outside the list below,
no merge marks, no trailing blanks, and no large files."""

import re
import sys

import repository

MAX_BYTES = 256 * 1024
MAX_TEST_DATA_BYTES = 2 * 1024 * 1024
TAB_FILES = {"Makefile"}

# Hosts that the documentation may point to: standards, papers, and projects that Stax interoperates with.
HOSTS = {
    "arxiv.org",
    "cmake.org",
    "doi.org",
    "en.cppreference.com",
    "example.com",
    "example.org",
    "numpy.org",
    "onnx.ai",
    "pytorch.org",
    "www.apache.org",
}

# The letters in brackets keep this file from matching itself.
RULES = [
    (r"\b(T[O]DO|FIX[M]E|X[X]X|HAC[K])\b", "unfinished work is finished, or left out and written in the documentation"),
    (r"(?<![\w.$}/])/(home|root|Users|work|workspace|mnt|scratch)/\w", "a path of one machine"),
    (r"(?<![\w.$}/])/tmp/\w+/", "a path of one machine; take the temporary folder from the environment"),
    (r"^(<{7}|={7}|>{7})( |$)", "a merge mark"),
    (r"[ \t]+$", "blanks at the end of a line"),
    (r"\r", "a carriage return"),
]
RULES = [(re.compile(pattern), text) for pattern, text in RULES]
ADDRESS = re.compile(r"\b(?:https?|ftp)://([\w.-]+)")


def problems_of_text(path, text):
    """The complaints about one file's text, as `path:line: what`."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        found += [f"{path}:{number}: {why}" for pattern, why in RULES if pattern.search(line)]
        if "\t" in line and path.name not in TAB_FILES:
            found.append(f"{path}:{number}: a tab")
        hosts = set(ADDRESS.findall(line)) - HOSTS
        found += [f"{path}:{number}: address on {host}, which is not in the list" for host in sorted(hosts)]
    if text and not text.endswith("\n"):
        found.append(f"{path}:{text.count(chr(10)) + 1}: no line break at the end of the file")
    return found


def check(root, paths):
    problems = []
    data_bytes = 0
    for path in paths:
        content = (root / path).read_bytes()
        if path.parts[:2] == ("tests", "data"):
            data_bytes += len(content)
        if len(content) > MAX_BYTES:
            problems.append(f"{path}:1: {len(content)} bytes; at most {MAX_BYTES} are allowed")
        if b"\0" in content or path.parts[:2] == ("tests", "data"):
            continue
        try:
            problems += problems_of_text(path, content.decode())
        except UnicodeDecodeError:
            problems.append(f"{path}:1: not UTF-8")
    if data_bytes > MAX_TEST_DATA_BYTES:
        problems.append(f"tests/data:1: {data_bytes} bytes; at most {MAX_TEST_DATA_BYTES} are allowed")
    return problems


if __name__ == "__main__":
    sys.exit(repository.report("check_words", check(repository.ROOT, repository.files())))
