"""Checks how the C++ files hang together.

The order of the layers is the table in docs/architecture.md: a folder includes only itself and the folders above it.
Also refused: include cycles between files, includes that are not written from a root (include/, src/, tests/ or the
repository), third-party headers in headers, macros of public headers without the STAX_ prefix, headers without
`#pragma once`, thread-local state outside capture and device, files of more than 1000 lines, and functions of more than 120.
"""

import re
import sys

import repository

MAX_LINES = 1000
MAX_FUNCTION_LINES = 120
THREAD_LOCAL_LAYERS = ("src/capture", "src/device")  # own the trace scope, and the current stream
COUNTED_SUFFIXES = {".h", ".cpp", ".py", ".sh", ".cmake", ".inc", ".md"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)
DEFINE = re.compile(r"^\s*#\s*define\s+(\w+)", re.MULTILINE)
LAYER_ROW = re.compile(r"^\| `((?:include|src)/\w+)/` \|", re.MULTILINE)
STANDARD_HEADER = re.compile(r"^[a-z_0-9]+$")
SYSTEM_HEADER = re.compile(r"^(unistd|fcntl|dlfcn|pthread|sched|signal|immintrin|(sys|linux)/\w+)\.h$")


def read_layers(root):
    """The folders of the table in docs/architecture.md, first one first."""
    return LAYER_ROW.findall((root / "docs/architecture.md").read_text())


def layer_of(path):
    return "/".join(path.parts[:2]) if path.parts[0] in ("include", "src") and len(path.parts) > 2 else None


def without_comments(text):
    """The text with comments blanked and line breaks kept."""
    return re.sub(r"/\*.*?\*/|//[^\n]*", lambda match: "\n" * match.group().count("\n"), text, flags=re.DOTALL)


def long_functions(text, limit):
    """(line, length) of each function outside a class that is longer than `limit`; relies on the layout of clang-format."""
    found = []
    start = None
    for number, line in enumerate(text.split("\n"), 1):
        if line == "}":
            if start is not None and number - start > limit:
                found.append((start, number - start + 1))
            start = None
        elif line.startswith("}") or re.match(r"(inline )?namespace\b|extern \"C\" {", line):
            start = None
        elif line.endswith("{") and start is None:
            start = number
    return found


class Checker:
    def __init__(self, root, paths=None):
        self.root = root
        self.all_files = paths or repository.files(root)
        self.paths = [path for path in self.all_files if path.suffix in repository.CPP_SUFFIXES]
        self.known = {str(path) for path in self.paths} | {
            str(path) for path in self.all_files if path.suffix in (".inc", ".def")
        }
        self.cmake = "\n".join(
            (root / path).read_text() for path in self.all_files if path.name == "CMakeLists.txt" or path.suffix == ".cmake"
        )
        self.layers = read_layers(root)
        self.problems = []
        self.edges = {}

    def complain(self, path, line, text):
        self.problems.append(f"{path}:{line}: {text}")

    def run(self):
        self.check_table()
        for path in self.paths:
            self.check_file(path)
            self.check_functions(path)
        self.check_cycles()
        for path in self.all_files:
            self.check_length(path)
        return self.problems

    def check_table(self):
        built = ["src/" + name for name in re.findall(r"^stax_layer\((\w+)", self.cmake, re.MULTILINE)]
        in_table = [layer for layer in self.layers if layer in built]
        for layer in sorted({layer_of(path) for path in self.paths} - {None} - set(self.layers)):
            self.complain("docs/architecture.md", 1, f"the table of layers lacks {layer}/")
        for layer in built:
            if layer not in self.layers:
                self.complain("src/CMakeLists.txt", 1, f"{layer} is not in the table of docs/architecture.md")
        if in_table != [layer for layer in built if layer in self.layers]:
            self.complain("src/CMakeLists.txt", 1, "the layers are not in the order of docs/architecture.md")

    def resolve(self, path, name):
        """The repository's file that a quoted include means, 'generated' for a build's header, or None."""
        roots = ["include/", "src/", ""] + (["tests/"] if path.parts[0] == "tests" else [])
        for prefix in roots:
            if prefix + name in self.known:
                return prefix + name
        beside = str(path.parent / name)
        if beside not in self.known and name.rsplit("/", 1)[-1] in self.cmake:
            return "generated"
        return None

    def check_file(self, path):
        text = without_comments((self.root / path).read_text())
        if path.suffix == ".h" and not re.search(r"^#pragma once$", text, re.MULTILINE):
            self.complain(path, 1, "a header starts with #pragma once")
        match = re.search(r"\bthread_local\b", text)
        if match and layer_of(path) not in (None, *THREAD_LOCAL_LAYERS):
            line = text.count("\n", 0, match.start()) + 1
            self.complain(path, line, f"only {' and '.join(THREAD_LOCAL_LAYERS)} have thread-local state; pass a context")
        public = layer_of(path) == "include/stax"
        self.edges[str(path)] = []
        for match in INCLUDE.finditer(text):
            line = text.count("\n", 0, match.start(1)) + 1
            if match.group(1) == '"':
                self.check_quoted(path, line, match.group(2), public)
            else:
                self.check_angled(path, line, match.group(2), public)
        for match in DEFINE.finditer(text) if public else ():
            if not match.group(1).startswith("STAX_"):
                line = text.count("\n", 0, match.start(1)) + 1
                self.complain(path, line, f"macro {match.group(1)} of a public header needs the prefix STAX_")

    def check_quoted(self, path, line, name, public):
        target = self.resolve(path, name)
        if target is None:
            self.complain(path, line, f'"{name}" is no file below include/ or src/; write includes from there')
            return
        if target == "generated":
            if public and not name.startswith("stax/"):
                self.complain(path, line, f'public header includes the internal "{name}"')
            return
        self.edges[str(path)].append((target, line))
        own, other = layer_of(path), layer_of(repository.pathlib.Path(target))
        if public and other != "include/stax":
            self.complain(path, line, f'public header includes the internal "{name}"')
        elif own and other is None:
            self.complain(path, line, f'"{name}" lies outside the library')
        elif own in self.layers and other in self.layers and self.layers.index(other) > self.layers.index(own):
            self.complain(path, line, f"{own}/ may not include the lower layer {other}/ ({name})")

    def check_angled(self, path, line, name, public):
        if name.startswith("stax/"):
            if layer_of(path):
                self.complain(path, line, f'inside the library, write "{name}"')
        elif public and not STANDARD_HEADER.match(name):
            self.complain(path, line, f"public headers include only the standard library, not <{name}>")
        elif layer_of(path) and path.suffix == ".h":
            allowed = STANDARD_HEADER.match(name) or SYSTEM_HEADER.match(name) or name == "fmt/core.h"
            if not allowed:
                self.complain(path, line, f"headers include no third-party header but <fmt/core.h>; not <{name}>")

    def check_cycles(self):
        state = {}  # absent: unseen, 1: on the path, 2: done

        def visit(name, path):
            state[name] = 1
            for target, line in self.edges.get(name, ()):
                if state.get(target) == 1:
                    cycle = path[path.index(target) :] + [target]
                    self.complain(name, line, "include cycle: " + " -> ".join(cycle))
                elif target not in state:
                    visit(target, path + [target])
            state[name] = 2

        for name in sorted(self.edges):
            if name not in state:
                visit(name, [name])

    def check_functions(self, path):
        for line, length in long_functions((self.root / path).read_text(), MAX_FUNCTION_LINES):
            self.complain(path, line, f"a function of {length} lines; at most {MAX_FUNCTION_LINES} are allowed")

    def check_length(self, path):
        if path.suffix in COUNTED_SUFFIXES:
            lines = (self.root / path).read_bytes().count(b"\n")
            if lines > MAX_LINES:
                self.complain(path, lines, f"{lines} lines; at most {MAX_LINES} are allowed")


if __name__ == "__main__":
    sys.exit(repository.report("check_layers", Checker(repository.ROOT).run()))
