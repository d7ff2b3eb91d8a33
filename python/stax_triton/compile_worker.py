"""A worker that compiles generated kernels: a JSON object a line in, one out.

Request {"hello": true}: the answer names Triton's version, the files it consists of ([path, bytes, time of change in
nanoseconds] each), and a hash of this package.

Any other request: source (text of the generated file), kernel (its name), capability, blocks (block parameter to
value), warps, stages, registers, wide, divisible. The answer has the machine code in hexadecimal digits, its hash, what a launch
has to know, and "request": the hash of the line that is answered, so that an answer cannot be taken for another's.

A request that fails is answered by {"request": ..., "error": text}.
"""

import contextlib
import hashlib
import json
import os
import pathlib
import select
import shutil
import sys
import time
import traceback

from stax_triton import worker


def package_hash(folder):
    """SHA-256 over the names and contents of the package's files."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py"), key=lambda path: path.name):
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


WARM_UP = """
import triton
import triton.language as tl
from stax_triton.runtime import libdevice, triton_helpers, triton_heuristics


@triton_heuristics.persistent_reduction(size_hints={}, signature={"out_ptr0": "*fp32"}, grid="Grid1D")
@triton.jit
def warm_up(out_ptr0, XBLOCK: tl.constexpr):
    index = tl.arange(0, XBLOCK)
    largest = triton_helpers.max2(libdevice.exp(index.to(tl.float32)), 0)
    tl.store(out_ptr0 + index, largest)
"""

PACKAGE = package_hash(pathlib.Path(__file__).parent)  # before what compiles is imported


def stamp(path):
    """[path, size, time of change] of a file."""
    status = os.stat(path)
    return [str(path), status.st_size, status.st_mtime_ns]


def describe_triton():
    """The answer to hello."""
    try:
        import triton

        version = triton.__version__
    except ImportError as error:
        return {"missing": str(error)}
    except Exception as error:  # a broken installation
        return {"missing": f"{type(error).__name__}: {error}"}
    folder = pathlib.Path(triton.__file__).parent
    files = [folder / "__init__.py"]
    files += sorted((folder / "_C").glob("libtriton*.so"))
    files += sorted((folder / "backends" / "nvidia" / "bin").glob("ptxas*"))
    for variable in ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"):
        if os.path.exists(os.environ.get(variable, "")):
            files.append(os.environ[variable])
    return {
        "triton": version,
        "python": f"{sys.executable} ({sys.version.split()[0]})",
        "package": PACKAGE,
        "files": [stamp(path) for path in files],
    }


class Compiler:
    """Compiles in a folder that is empty between requests."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def answer(self, request):
        from stax_triton import compile as stax_compile

        path = self.folder / f"{request['kernel']}.py"
        path.write_text(request["source"], encoding="utf-8")
        start = time.perf_counter()
        kernel = stax_compile.load_kernel(path, request["kernel"])
        compiled, log = stax_compile.compile_with_log(
            kernel,
            capability=request["capability"],
            blocks=request["blocks"],
            warps=request["warps"],
            stages=request["stages"],
            registers=request["registers"],
            wide=request["wide"],
            divisible=request["divisible"],
        )
        seconds = time.perf_counter() - start
        return self.describe(stax_compile, request, kernel, compiled, log, seconds)

    def describe(self, stax_compile, request, kernel, compiled, log, seconds):
        types = stax_compile.argument_types(kernel, request["wide"])
        arguments = [kind for kind in types.values() if kind != "constexpr"]
        registers, spill_bytes = stax_compile.resources(log)
        cubin, metadata = compiled.asm["cubin"], compiled.metadata
        return {
            "cubin": cubin.hex(),
            "cubin_hash": hashlib.sha256(cubin).hexdigest(),
            "entry": metadata.name,
            "arguments": arguments,
            "scratch_pointers": stax_compile.scratch_pointers(compiled.asm["ptx"], len(arguments)),
            "warps": metadata.num_warps,
            "shared_bytes": metadata.shared,
            "registers": registers,
            "spill_bytes": spill_bytes,
            "global_scratch_bytes": metadata.global_scratch_size,
            "global_scratch_alignment": metadata.global_scratch_align,
            "profile_scratch_bytes": getattr(metadata, "profile_scratch_size", 0),
            "profile_scratch_alignment": getattr(metadata, "profile_scratch_align", 1),
            "seconds": seconds,
        }

    def warm_up(self):
        """Compiles a kernel for nobody: Triton's first one takes several times longer than others."""
        how = {"capability": 90, "blocks": {"XBLOCK": 128}, "warps": 4, "stages": 1, "wide": False, "divisible": []}
        self.answer({"source": WARM_UP, "kernel": "warm_up", **how})
        self.clear()

    def clear(self):
        for path in self.folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def describe_error(error, folder):
    """What was raised, and the line of the generated file at which."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f"line {f.lineno}: {f.line}" for f in frames if f.filename.startswith(folder)]
    return ", at ".join([f"{type(error).__name__}: {error}"] + lines[-1:])


def is_asked():
    """Whether a request, or the end of all of them, is there already."""
    return bool(select.select([sys.stdin.buffer.raw], [], [], 0)[0])


def serve(folder, answers):
    hello = describe_triton()
    os.environ["TRITON_CACHE_DIR"] = os.path.join(folder, "cache")  # the only lasting cache is the other side's
    compiler = Compiler(folder)
    with contextlib.suppress(Exception):  # a request meets it again
        if "missing" not in hello and not is_asked():
            compiler.warm_up()
    for line in sys.stdin.buffer:
        digest = hashlib.sha256(line.rstrip(b"\n")).hexdigest()
        try:
            request = json.loads(line)
            answer = dict(hello) if "hello" in request else compiler.answer(request)
        except Exception as error:  # whatever Triton raises is told to the other side
            answer = {"error": describe_error(error, folder)}
        answer["request"] = digest
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
        compiler.clear()


if __name__ == "__main__":
    with worker.session() as (answers, folder):
        serve(folder, answers)
