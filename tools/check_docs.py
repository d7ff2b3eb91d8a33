"""Runs what the documentation shows.

A block that opens with ```cpp run is a whole program: it is compiled against an installed Stax and run. A block that opens
with ```sh run is run by bash from the root of the repository with the built programs in PATH. A block ```text output right
after one of these is what it must print. Blocks without such a mark are not run.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import repository

BLOCK = re.compile(r"^```(cpp run|sh run|text output)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(stax_documentation LANGUAGES CXX)
find_package(stax CONFIG REQUIRED)
"""
TIMEOUT_S = 300


def blocks(text):
    """(kind, line, code, expected output or None) of each runnable block, in order."""
    found = []
    end = 0
    for match in BLOCK.finditer(text):
        kind, code = match.groups()
        line = text.count("\n", 0, match.start()) + 1
        if kind == "text output":
            if not found or text[end : match.start()].strip():
                raise ValueError(f"line {line}: an output block follows directly on the block that prints it")
            found[-1] = (*found[-1][:3], code)
        else:
            found.append((kind.split()[0], line, code, None))
        end = match.end()
    return found


def compile_programs(programs, folder, prefix):
    """Builds {name: code} against the package below `prefix`; the folder of the programs, or None after printing why not."""
    cmake = PROJECT
    for name, code in programs.items():
        (folder / f"{name}.cpp").write_text(code)
        cmake += f"add_executable({name} {name}.cpp)\ntarget_link_libraries({name} PRIVATE stax::stax)\n"
    (folder / "CMakeLists.txt").write_text(cmake)
    build = folder / "build"
    configure = ["cmake", "-S", folder, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
    for command in (configure + [f"-DCMAKE_PREFIX_PATH={prefix}"], ["cmake", "--build", build, "--parallel", "2"]):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            print(done.stdout, file=sys.stderr)
            return None
    return build


def run_block(command, where, expected, environment):
    """A complaint, or None."""
    try:
        done = subprocess.run(
            command, cwd=repository.ROOT, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        return f"{where}: still running after {TIMEOUT_S} s"
    if done.returncode:
        return f"{where}: exit status {done.returncode}\n{done.stdout}{done.stderr}"
    if expected is not None and done.stdout.strip() != expected.strip():
        return f"{where}: expected\n{expected}\ngot\n{done.stdout}"
    return None


def check(documents, prefix, programs_folder):
    """(number of blocks run, complaints); `documents` maps a path to its text."""
    found = [(path, *block) for path, text in documents.items() for block in blocks(text)]
    environment = dict(os.environ, PATH=f"{pathlib.Path(programs_folder).resolve()}:{os.environ['PATH']}")
    problems = []
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        sources = {f"block_{i}": code for i, (_, kind, _, code, _) in enumerate(found) if kind == "cpp"}
        build = compile_programs(sources, scratch, prefix) if sources else scratch
        if build is None:
            return len(found), ["a block of the documentation does not compile (see above)"]
        for i, (path, kind, line, code, expected) in enumerate(found):
            command = [str(build / f"block_{i}")] if kind == "cpp" else ["bash", "-euo", "pipefail", "-c", code]
            problem = run_block(command, f"{path}:{line}", expected, environment)
            problems += [problem] if problem else []
    return len(found), problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--prefix", required=True, help="where Stax is installed")
    parser.add_argument("--programs", required=True, help="folder of the built programs")
    arguments = parser.parse_args()
    documents = {path: (repository.ROOT / path).read_text() for path in repository.files() if path.suffix == ".md"}
    count, problems = check(documents, arguments.prefix, arguments.programs)
    print(f"check_docs: ran {count} blocks")
    return repository.report("check_docs", problems)


if __name__ == "__main__":
    sys.exit(main())
