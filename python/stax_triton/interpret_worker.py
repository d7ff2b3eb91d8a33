"""A worker that runs generated kernels in Triton's interpreter: a JSON object a line in, one out.

Request: source (text of the generated file), memory (path of the shared memory), size (its bytes), arguments (in
the order of the kernel's parameters: {"offset", "bytes", "dtype"} for a buffer, {"bits", "floating"} for a number
of the program, a plain integer for a size or an extent), grid (blocks along x, y and z) and blocks. Answer: {} or {"error": text}.
To {"hello": true} the answer is {}, or {"missing": text} where something that is needed cannot be imported.
"""

import json
import sys
import traceback

from stax_triton.worker import session

try:
    from stax_triton import interpret

    import numpy as np
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    MISSING = None
except ImportError as problem:
    MISSING = str(problem)
except Exception as problem:  # a broken installation
    MISSING = f"{type(problem).__name__}: {problem}"

NUMPY = {"bfloat16": "uint16"}


class Worker:
    def __init__(self, folder):
        self.folder = folder
        self.kernels = {}
        self.memory = None
        self.opened = None

    def kernel(self, source):
        """The kernel of a generated file, which is kept."""
        if source not in self.kernels:
            self.kernels[source] = interpret.load_kernel(source, self.folder, f"kernel_{len(self.kernels)}")
            if len(self.kernels) > 2000:
                self.kernels.pop(next(iter(self.kernels)))
        return self.kernels[source]

    def open(self, path, size):
        if self.opened != (path, size):
            self.memory = np.memmap(path, dtype=np.uint8, mode="r+", shape=(size,))
            self.opened = (path, size)

    def argument(self, value):
        if isinstance(value, int):
            return value
        if "bits" in value:
            if value["floating"]:
                number = np.array([value["bits"]], dtype=np.int64).view(np.float64)
                return tl.tensor(TensorHandle(number, tl.float64), tl.float64)
            return tl.tensor(TensorHandle(np.array([value["bits"]], dtype=np.int64), tl.int64), tl.int64)
        dtype = value["dtype"]
        data = self.memory[value["offset"] : value["offset"] + value["bytes"]]
        return interpret.Buffer(data.view(NUMPY.get(dtype, dtype)), dtype)

    def run(self, request):
        self.open(request["memory"], request["size"])
        arguments = [self.argument(value) for value in request["arguments"]]
        with np.errstate(all="ignore"):
            interpret.launch(self.kernel(request["source"]), arguments, request["grid"], request["blocks"])
        return {}


def describe(error, folder):
    """What was raised, and the line of the generated file at which."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f"line {f.lineno}: {f.line}" for f in frames if f.filename.startswith(folder)]
    return ", at ".join([f"{type(error).__name__}: {error}"] + lines[-1:])


def serve(folder, answers):
    worker = Worker(folder)
    for line in sys.stdin:
        try:
            request = json.loads(line)
            if "hello" in request:
                answer = {"missing": MISSING} if MISSING else {}
            else:
                answer = worker.run(request)
        except Exception as error:  # whatever a kernel raises is told to the other side
            answer = {"error": describe(error.__cause__ or error, folder)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    with session() as (answers, folder):
        serve(folder, answers)
