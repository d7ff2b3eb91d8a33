#!/usr/bin/env python3
"""peers.py STAX [--seconds S] [--rounds N] [--json]: the magika model's latency through Stax and through ONNX Runtime.

STAX is the program `stax`. The two run alternately for S seconds each, N times, so that whatever slows the machine down for a
while hits both; compared are the medians of the rounds' medians. ONNX Runtime runs with its default threads and with one a
processor; the faster one counts.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # before the import, which would leave files in the home folder

import magika  # noqa: E402
import numpy as np  # noqa: E402
import onnxruntime as ort  # noqa: E402

BATCHES = (1, 64)


def newest_model():
    """The package's newest model file."""
    return str(max((Path(magika.__file__).parent / "models").glob("*/model.onnx")))


def session(model, threads):
    options = ort.SessionOptions()
    if threads:
        options.intra_op_num_threads = threads
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def stax_median(stax, model, name, file, seconds):
    """Milliseconds a call, the compilation not counted."""
    command = [stax, "bench", model, "--input", f"{name}={file}", "--seconds", str(seconds), "--json"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["median_ms"]


def peer_median(peer, feed, seconds):
    peer.run(None, feed)
    times, end = [], time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        peer.run(None, feed)
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def measure(options, model, batch):
    """One row: medians in milliseconds, and the ratio."""
    peers = {"default threads": session(model, 0), f"{os.cpu_count()} threads": session(model, os.cpu_count())}
    name = next(iter(peers.values())).get_inputs()[0].name
    data = np.random.default_rng(1).integers(0, 257, (batch, 2048)).astype(np.int32)
    ours, theirs = [], {key: [] for key in peers}
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder, "input.npy"))
        np.save(file, data)
        for _ in range(options.rounds):
            ours.append(stax_median(options.stax, model, name, file, options.seconds))
            for key, peer in peers.items():
                theirs[key].append(peer_median(peer, {name: data}, options.seconds))
    medians = {key: statistics.median(times) for key, times in theirs.items()}
    best = min(medians, key=medians.get)
    return {"batch": batch, "stax_ms": statistics.median(ours), "onnxruntime_ms": medians[best], "onnxruntime": best,
            "all_onnxruntime_ms": medians, "ratio": statistics.median(ours) / medians[best]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stax")
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    model = newest_model()
    rows = []
    if not options.json:
        print("| magika model | Stax | ONNX Runtime | ratio | goal | |\n| --- | ---: | ---: | ---: | ---: | --- |")
    for batch in BATCHES:
        row = measure(options, model, batch)
        rows.append(row)
        if not options.json:
            print(f"| batch {batch} | {row['stax_ms']:.3g} ms | {row['onnxruntime_ms']:.3g} ms ({row['onnxruntime']}) | "
                  f"{row['ratio']:.2f} | <= 1 | {'met' if row['ratio'] <= 1 else 'missed'} |", flush=True)
    if options.json:
        print(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
