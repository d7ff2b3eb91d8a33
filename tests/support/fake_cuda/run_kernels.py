"""Runs the launches of the fake driver in Triton's interpreter: a JSON object a line in, "ok" or an error out.

{"memory": path, "size": bytes} first; then {"code": what was asked to be compiled, with the types of the arguments,
"arguments": [value, offset in the memory, bytes from there on] each, "grid": [x, y, z]}.
"""

import json
import sys

from stax_triton import interpret

import numpy as np
import triton.language as tl
from triton.runtime.interpreter import TensorHandle

from stax_triton.worker import session

DTYPES = {"i1": "bool", "u8": "uint8", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "fp16": "float16",
          "bf16": "bfloat16", "fp32": "float32", "fp64": "float64"}  # fmt: skip
STORED = {"bfloat16": "uint16"}


class Runner:
    def __init__(self, folder):
        self.folder = folder
        self.kernels = {}
        self.memory = None

    def kernel(self, source):
        if source not in self.kernels:
            self.kernels[source] = interpret.load_kernel(source, self.folder, f"kernel_{len(self.kernels)}")
        return self.kernels[source]

    def argument(self, kind, value, offset, size):
        if kind.startswith("*"):
            dtype = DTYPES[kind[1:]]
            width = np.dtype(STORED.get(dtype, dtype)).itemsize
            data = self.memory[offset : offset + size // width * width]
            return interpret.Buffer(data.view(STORED.get(dtype, dtype)), dtype)
        if kind == "fp64":
            number = np.array([value], dtype=np.uint64).view(np.float64)
            return tl.tensor(TensorHandle(number, tl.float64), tl.float64)
        if kind == "i32":
            return int(np.array([value & 0xFFFFFFFF], dtype=np.uint32).view(np.int32)[0])
        return tl.tensor(TensorHandle(np.array([value], dtype=np.uint64).view(np.int64), tl.int64), tl.int64)

    def run(self, message):
        request = message["code"]
        kernel = self.kernel(request["source"])
        arguments = [self.argument(k, *a) for k, a in zip(request["types"], message["arguments"])]
        with np.errstate(all="ignore"):
            kernel.fn[tuple(message["grid"])](*arguments, **request["blocks"])

    def answer(self, line):
        message = json.loads(line)
        if "memory" in message:
            self.memory = np.memmap(message["memory"], dtype=np.uint8, mode="r+", shape=(message["size"],))
        else:
            self.run(message)
        return "ok"


def main():
    with session() as (answers, folder):
        runner = Runner(folder)
        for line in sys.stdin:
            try:
                text = runner.answer(line)
            except Exception as error:
                text = f"{type(error).__name__}: {error.__cause__ or error}"
            answers.write(text.replace("\n", " ") + "\n")
            answers.flush()


if __name__ == "__main__":
    main()
