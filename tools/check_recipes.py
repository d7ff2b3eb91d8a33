"""Checks that code shown in documents is the code that tests run.

A fenced block after the comment `from: FILE NAME` must be, up to indentation, the lines of FILE between the comments
`recipe: NAME` and `end of recipe`.
"""

import re
import sys
import textwrap

import repository

SHOWN = re.compile(r"^<!-- from: (\S+) (\S+) -->\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def recipe(text, name):
    match = re.search(rf"^ *// recipe: {name}\n(.*?)^ *// end of recipe$", text, re.MULTILINE | re.DOTALL)
    return textwrap.dedent(match.group(1)) if match else None


def main():
    problems = []
    for path in repository.files():
        if path.suffix != ".md":
            continue
        for source, name, code in SHOWN.findall((repository.ROOT / path).read_text()):
            if recipe((repository.ROOT / source).read_text(), name) != textwrap.dedent(code):
                problems.append(f"{path}: the block '{name}' differs from {source}")
    return repository.report("recipes", problems)


if __name__ == "__main__":
    sys.exit(main())
