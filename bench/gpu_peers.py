#!/usr/bin/env python3
"""The rows of bench_gpu through PyTorch: eagerly, compiled, and compiled with max-autotune. Milliseconds that the
device spends, medians, from a cold L2 cache. Needs a GPU and a Python with PyTorch."""

import sys

try:
    import torch
    import torch.nn.functional as F
    from triton.testing import do_bench
except ImportError as error:
    sys.exit(f"gpu_peers: not run: {error}")
if not torch.cuda.is_available():
    sys.exit("gpu_peers: not run: PyTorch sees no GPU")


def milliseconds(function, inputs):
    return do_bench(lambda: function(*inputs), warmup=20, rep=60, return_mode="median")


def ones(*sizes, dtype=torch.float32):
    return torch.ones(*sizes, device="cuda", dtype=dtype)


def rows():
    """Name, function and inputs of each row, in the order of bench_gpu."""
    x, y = ones(1 << 26), ones(1 << 26)
    square, other = x.view(8192, 8192), y.view(8192, 8192)
    half, half_too = ones(16384, 4096, dtype=torch.bfloat16), ones(16384, 4096, dtype=torch.bfloat16)
    weight = ones(4096, dtype=torch.bfloat16)
    targets = torch.zeros(8192, device="cuda", dtype=torch.int64)
    yield "relu(x+y)*2, 2^26", lambda a, b: torch.relu(a + b) * 2, (x, y)
    yield "(x*x).sum(-1), 8192x8192", lambda a: (a * a).sum(-1), (square,)
    yield "(x*x).sum(0), 8192x8192", lambda a: (a * a).sum(0), (square,)
    yield "(x*x).sum(), 2^26", lambda a: (a * a).sum(), (x,)
    yield "x.t()+y, 8192x8192", lambda a, b: a.t() + b, (square, other)
    yield "softmax(x,-1), 65536x1000", lambda a: torch.softmax(a, -1), (x[: 65536 * 1000].view(65536, 1000),)
    yield "softmax(x,-1), 4096x50257", lambda a: torch.softmax(a, -1), (ones(4096, 50257),)
    yield "(x*x).sum(-1), 64x2^20", lambda a: (a * a).sum(-1), (x.view(64, 1 << 20),)
    yield "gelu(x), bfloat16", lambda a: F.gelu(a), (half,)
    yield "layer_norm(x,w,b), bfloat16", lambda a, w, b: F.layer_norm(a, (4096,), w, b), (half, weight, weight)
    yield "silu(g)*u, bfloat16", lambda g, u: F.silu(g) * u, (half, half_too)
    yield "cross_entropy, 8192x50257", lambda a, t: F.cross_entropy(a, t), (ones(8192, 50257), targets)


print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}")
for name, function, inputs in rows():
    figures = [milliseconds(function, inputs)]
    for options in ({}, {"mode": "max-autotune-no-cudagraphs"}):
        torch._dynamo.reset()
        figures.append(milliseconds(torch.compile(function, **options), inputs))
    print("{:<28} eager {:.4f} ms, compiled {:.4f} ms, max-autotune {:.4f} ms".format(name, *figures), flush=True)
