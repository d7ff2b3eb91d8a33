"""What the Python that runs a file of `stax show --stage triton` has to have. Imports nothing of that."""

import importlib
import os
import re
import sys

# As tools/requirements.txt has them, and the first version that does.
PACKAGES = {"numpy": ("2.4.6", "1.26"), "triton": ("3.6.0", "3.4")}


def check():
    """Ends the process, saying what to do, where Triton or NumPy is missing."""
    os.environ.pop("TRITON_INTERPRET", None)  # kernels are compiled here
    wrong = []
    for name, (pinned, oldest) in PACKAGES.items():
        try:
            version = importlib.import_module(name).__version__
            if tuple(map(int, re.findall(r"\d+", version)[:2])) < tuple(map(int, oldest.split("."))):
                wrong.append((f"{name} {version} is older than {oldest}", f"{name}=={pinned}"))
        except Exception as error:  # a broken installation raises anything
            wrong.append((f"{name} cannot be imported ({error})", f"{name}=={pinned}"))
    if wrong:
        why, wanted = zip(*wrong)
        raise SystemExit(f"{'; '.join(why)}. Install what the file needs by\n"
                         f"  {sys.executable} -m pip install {' '.join(wanted)}")  # fmt: skip
