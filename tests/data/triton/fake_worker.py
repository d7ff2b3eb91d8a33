"""Stands in for the worker that compiles kernels, and misbehaves: fake_worker.py FOLDER MODE...

Each process takes the next of the modes, and the last one again and again. FOLDER counts the processes."""

import hashlib
import json
import os
import pathlib
import signal
import struct
import sys
import time

MACHINE_CUDA = 190


def machine_code():
    """An ELF file without sections, and the name of its function."""
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 2, MACHINE_CUDA, 1, 0, 0, 64, 90, 64, 56, 0, 64, 0, 0)
    return header + b"fake_kernel\0"


def answer(mode):
    code = machine_code()
    fields = {"cubin": code.hex(), "cubin_hash": hashlib.sha256(code).hexdigest(), "entry": "fake_kernel"}
    if mode == "other code":
        fields["cubin"] = (code + b"\0").hex()
    if mode == "short code":
        code = code[:40]
        fields.update(cubin=code.hex(), cubin_hash=hashlib.sha256(code).hexdigest())
    if mode == "other machine":
        code = code.replace(struct.pack("<H", MACHINE_CUDA), struct.pack("<H", 62))
        fields.update(cubin=code.hex(), cubin_hash=hashlib.sha256(code).hexdigest())
    if mode == "other function":
        fields["entry"] = "another_kernel"
    fields.update(arguments=["*fp32", "i32"], scratch_pointers=2, warps=4, shared_bytes=64, registers=20, spill_bytes=0, seconds=0.01)
    fields.update(global_scratch_bytes=0, global_scratch_alignment=1)
    fields.update(profile_scratch_bytes=0, profile_scratch_alignment=1)
    if mode == "no registers":
        del fields["registers"]
    if mode == "refuse":
        fields = {"error": "CompilationError: at 3:4"}
    return fields


def main():
    folder, modes = pathlib.Path(sys.argv[1]), sys.argv[2:]
    number = len(list(folder.glob("started-*")))
    (folder / f"started-{number}").touch()
    mode = modes[min(number, len(modes) - 1)]
    if mode == "crash at start":
        sys.exit("no memory left")
    for line in sys.stdin.buffer:
        digest = hashlib.sha256(line.rstrip(b"\n")).hexdigest()
        version = mode.split()[1] if mode.startswith("version") else "3.6.0"
        if b'"hello"' in line:
            reply = {"triton": version, "python": "fake", "package": "fake", "files": []}
            if mode == "no triton":
                reply = {"missing": "No module named 'triton'"}
        elif mode == "crash":
            sys.stderr.write("the assembler is out of order\n")
            sys.stderr.flush()
            os.kill(os.getpid(), signal.SIGSEGV)
        elif mode == "hang":
            time.sleep(1000)
        elif mode == "garbage":
            print("Segmentation fault (core dumped)", flush=True)
            continue
        else:
            reply = answer(mode)
        reply["request"] = "0" * 64 if mode == "other request" and b'"hello"' not in line else digest
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
