"""What the workers share: where answers go, the folder to work in, and how they end."""

import contextlib
import fcntl
import os
import shutil
import signal
import sys
import tempfile
import threading
import time


def _end_with(parent, folder):
    """Ends this process when the one that started it is gone, also in the middle of a request."""
    while os.getppid() == parent:
        time.sleep(2)
    shutil.rmtree(folder, ignore_errors=True)
    os.kill(os.getpid(), signal.SIGKILL)


def _lock(folder):
    """Until this process ends, whoever looks for folders of killed processes leaves this one alone."""
    with contextlib.suppress(OSError):
        fcntl.flock(os.open(folder, os.O_RDONLY), fcntl.LOCK_SH | fcntl.LOCK_NB)


@contextlib.contextmanager
def session():
    """(file that answers are written to, folder to work in). What is printed otherwise goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    # Whoever of both sides ends last removes the folder.
    folder = os.environ.get("STAX_WORKER_FOLDER") or tempfile.mkdtemp(prefix="stax-worker-")
    _lock(folder)
    threading.Thread(target=_end_with, args=[os.getppid(), folder], daemon=True).start()
    try:
        yield answers, folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
