"""What the checks share: the files of the repository, and how a check reports."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CPP_SUFFIXES = {".h", ".cpp"}


def files(root=ROOT):
    """Paths, relative to `root` and sorted, of the files that git tracks or would track; all files without git."""
    listing = subprocess.run(
        ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        capture_output=True,
    )
    if listing.returncode == 0:
        names = [name for name in listing.stdout.decode().split("\0") if name]
        return sorted(pathlib.Path(name) for name in set(names) if (root / name).is_file())
    skipped = {"build", ".git", ".venv", ".cache", "__pycache__"}
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in skipped]
        found += [pathlib.Path(folder, name).relative_to(root) for name in names]
    return sorted(found)


def cpp_files(root=ROOT):
    return [path for path in files(root) if path.suffix in CPP_SUFFIXES]


def report(check, problems):
    """Prints the problems; the exit status of the program."""
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{check}: {len(problems)} problem{'s' if len(problems) > 1 else ''}" if problems else f"{check}: fine")
    return 1 if problems else 0
