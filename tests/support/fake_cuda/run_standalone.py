"""Runs a file of `stax show --stage triton` on the fake driver: what passes for machine code names the kernel, which is
interpreted when it is launched. run_standalone.py FILE FROM TO OPTION...: what is launched has TO for the first FROM,
if that is not empty. SCRATCH_BYTES and SHARED_BYTES: what an instance needs of global scratch and shared memory."""

import importlib.machinery
import importlib.util
import os
import pathlib
import runpy
import sys

from stax_triton import compile as stax_compile
from stax_triton import cuda_driver, example, standalone


def stand_in():
    """The module of the file `python` beside this one, which has no ending."""
    path = os.path.join(os.path.dirname(__file__), "python")
    loader = importlib.machinery.SourceFileLoader("stand_in", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("stand_in", loader))
    loader.exec_module(module)
    return module


def main(path, old, new, *options):
    machine_code = stand_in().machine_code

    def compile_for(kernel, capability):
        assert capability == 90
        blocks = example.blocks_of(kernel)
        kinds = stax_compile.argument_types(kernel, kernel.wide)
        types = [kind for kind in kinds.values() if kind != "constexpr"]
        files = pathlib.Path(example.file_of(kernel)).read_text(encoding="utf-8").split("import triton\n")
        source = "import triton\n" + next(file for file in files if f"def {kernel.name}(" in file)
        if old:
            assert old in source
            source = source.replace(old, new, 1)
        code = machine_code({"source": source, "kernel": kernel.name, "blocks": blocks}, types)
        scratch, shared = (int(os.environ.get(name, "0")) for name in ("SCRATCH_BYTES", "SHARED_BYTES"))
        return standalone.Compiled(code, kernel.name, types, [scratch, 0], kernel.config["num_warps"], shared, 1)

    standalone.compile_for = compile_for
    cuda_driver.WARM_UP, cuda_driver.TIMED = 1, 1  # the interpreter is slow
    sys.argv = [path, *options]
    runpy.run_path(path, run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
