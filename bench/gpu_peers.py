#!/usr/bin/env python3
"""gpu_peers.py BENCH_GPU [PART]: the suite of bench_gpu beside PyTorch, eagerly, compiled, and compiled with max-autotune.

Both measure the milliseconds that the device spends, from a cold L2 cache, in turns on the same GPU; a figure is the
median of the rounds' medians. With PART only rows that have it in their names, and those beside the suite, too. The ratio
is PyTorch's best over Stax. Needs a GPU and a Python with PyTorch."""

import json
import math
import statistics
import subprocess
import sys
import types

ROUNDS = 3

try:
    import torch
    import torch.nn.functional as F
    from triton.testing import do_bench
except ImportError as error:
    print(f"gpu_peers: not run: {error}")
    sys.exit()
if not torch.cuda.is_available():
    print("gpu_peers: not run: PyTorch sees no GPU")
    sys.exit()


def numbers(*sizes, dtype=torch.float32):
    return torch.randn(*sizes, device="cuda").to(dtype)


def half(*sizes):
    return numbers(*sizes, dtype=torch.bfloat16)


def squares(dim):
    return lambda a: (a * a).sum(dim)


def running(dim):
    return lambda a: torch.cumsum(a, dim)


def norm(a, *weights):
    return F.layer_norm(a, (4096,), *weights)


def targets():
    return (numbers(8192).abs() * 1000).to(torch.int64)


# By the names of bench_gpu: the function, and what makes its inputs.
ROWS = {
    "relu(x+y)*2, 2^26": (lambda a, b: torch.relu(a + b) * 2, lambda: (numbers(1 << 26), numbers(1 << 26))),
    "gelu(x), float32": (lambda a: F.gelu(a), lambda: (numbers(1 << 26),)),
    "x.t()+y, 8192x8192": (lambda a, b: a.t() + b, lambda: (numbers(8192, 8192), numbers(8192, 8192))),
    "(x*x).sum(-1), 8192x8192": (squares(-1), lambda: (numbers(8192, 8192),)),
    "(x*x).sum(0), 8192x8192": (squares(0), lambda: (numbers(8192, 8192),)),
    "(x*x).sum(), 2^26": (lambda a: (a * a).sum(), lambda: (numbers(1 << 26),)),
    "(x*x).sum(-1), 64x2^20": (squares(-1), lambda: (numbers(64, 1 << 20),)),
    "softmax(x,-1), 65536x1000": (lambda a: torch.softmax(a, -1), lambda: (numbers(65536, 1000),)),
    "softmax(x,-1), 4096x50257": (lambda a: torch.softmax(a, -1), lambda: (numbers(4096, 50257),)),
    "cross_entropy, 8192x50257": (lambda a, t: F.cross_entropy(a, t), lambda: (numbers(8192, 50257), targets())),
    "gelu(x), bfloat16": (lambda a: F.gelu(a), lambda: (half(16384, 4096),)),
    "layer_norm(x,w,b), bfloat16": (norm, lambda: (half(16384, 4096), half(4096), half(4096))),
    "rms_norm(x,w), bfloat16": (lambda a, w: F.rms_norm(a, (4096,), w), lambda: (half(16384, 4096), half(4096))),
    "silu(g)*u, bfloat16": (lambda g, u: F.silu(g) * u, lambda: (half(16384, 4096), half(16384, 4096))),
    "relu(a@b+c), 4096^3 bfloat16": (
        lambda a, b, c: torch.relu(a @ b + c),
        lambda: (half(4096, 4096), half(4096, 4096), half(4096)),
    ),
    "gelu(a@b), 8192x1024x4096": (lambda a, b: F.gelu(a @ b), lambda: (half(8192, 1024), half(1024, 4096))),
    "gelu(a@b,tanh), 8192x1024x4096": (
        lambda a, b: F.gelu(a @ b, approximate="tanh"),
        lambda: (half(8192, 1024), half(1024, 4096)),
    ),
    "a@b, 64x65536x64 bfloat16": (lambda a, b: a @ b, lambda: (half(64, 65536), half(65536, 64))),
    "a@b, 4096^3 TF32": (lambda a, b: a @ b, lambda: (numbers(4096, 4096), numbers(4096, 4096))),
}
# Measured where PART asks for them.
BESIDE = {
    "cumsum(x,0), 2^24": (running(0), lambda: (numbers(1 << 24),)),
    "cumsum(x,-1), 64x2^20": (running(-1), lambda: (numbers(64, 1 << 20),)),
    "cumsum(x,-1), 8192x8192": (running(-1), lambda: (numbers(8192, 8192),)),
    "cumsum(x,0), 8192x8192": (running(0), lambda: (numbers(8192, 8192),)),
    "sort(x,-1), 16384x1000": (lambda a: torch.sort(a, -1), lambda: (numbers(16384, 1000),)),
    "topk(x,50), 64x50257": (lambda a: torch.topk(a, 50), lambda: (numbers(64, 50257),)),
}
WAYS = {"eager": None, "compiled": {}, "max-autotune": {"mode": "max-autotune-no-cudagraphs"}}


def peer_round(ways):
    """Milliseconds of each row, by way."""
    result = {}
    for name, (function, inputs) in ROWS.items():
        made = inputs()
        result[name] = {}
        torch.set_float32_matmul_precision("high" if "TF32" in name else "highest")
        for way in WAYS:
            run = ways[name, way]
            result[name][way] = do_bench(lambda: run(*made), warmup=20, rep=60, return_mode="median")
        del made
        torch.cuda.empty_cache()
    return result


def stax_round(program, part):
    lines = subprocess.run([program, "--json", part], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    return {row["row"]: row for row in map(json.loads, lines)}


def copy_of(f):
    """The same function with code of its own, which is what PyTorch keeps compiled shapes and options by."""
    return types.FunctionType(f.__code__.replace(), f.__globals__, f.__name__, f.__defaults__, f.__closure__)


def prepared():
    """Functions by row and way, each compiled by itself and for its sizes."""
    ways = {}
    for name, (function, _) in ROWS.items():
        for way, options in WAYS.items():
            ways[name, way] = function if options is None else torch.compile(copy_of(function), dynamic=False, **options)
    return ways


def main(program, part=""):
    if part:
        ROWS.update(BESIDE)
    for name in [name for name in ROWS if part not in name]:
        del ROWS[name]
    ways, peers, ours = prepared(), [], []
    for _ in range(ROUNDS):
        peers.append(peer_round(ways))
        ours.append(stax_round(program, part))
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}; ms, medians of {ROUNDS} rounds")
    print("| | Stax | TB/s, TFLOP/s | " + " | ".join(WAYS) + " | ratio |")
    print("| --- |" + " ---: |" * (len(WAYS) + 3))
    ratios = []
    for name in ours[0]:
        if name in BESIDE and name not in ROWS:
            continue
        ms = statistics.median(o[name]["ms"] for o in ours)
        row = ours[0][name]
        rate = f"{row['operations'] / ms * 1e-9:.0f}" if row["operations"] else f"{row['bytes'] / ms * 1e-9:.2f}"
        cells = [f"{ms:.4f}", rate]
        if name in ROWS:
            times = [statistics.median(p[name][way] for p in peers) for way in WAYS]
            ratios.append(min(times) / ms)
            cells += [f"{t:.4f}" for t in times] + [f"{ratios[-1]:.3f}"]
        print(f"| {name} | " + " | ".join(cells + [""] * (len(WAYS) + 3 - len(cells))) + " |")
    geometric = math.exp(statistics.mean(map(math.log, ratios)))
    print(f"lowest ratio {min(ratios):.3f}, geometric mean {geometric:.3f}")
    missing = set(ROWS) - set(ours[0])
    if missing:
        sys.exit(f"gpu_peers: bench_gpu has no rows {sorted(missing)}")


main(*sys.argv[1:])
