#!/usr/bin/env python3
"""Selects a few small calls an operator out of a folder of recorded calls, for the tests to replay.

    select_calls.py RECORDED OUT [REPORT]

REPORT is what `stax verify --mode reference --verbose RECORDED` printed: calls that failed or are unknown there are
left out. Files whose calls are all left out are not written.
"""
import json
import pathlib
import re
import struct
import sys

CALLS = 4
LARGEST_CALL = 3000  # bytes of tensors


def read(path):
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8:8 + length]), data[8 + length:]


def tensors_of(value):
    if isinstance(value, dict):
        if isinstance(value.get("tensor"), str):
            yield value["tensor"]
        for part in value.values():
            yield from tensors_of(part)
    elif isinstance(value, list):
        for part in value:
            yield from tensors_of(part)


def left_out(report):
    """Operator -> numbers of calls."""
    result, name = {}, None
    for line in report.read_text(errors="replace").splitlines():
        call = re.match(r"    call (\d+) (failed|unknown)", line)
        if call:
            result.setdefault(name, set()).add(int(call.group(1)))
        elif " passed" in line:
            name = line.split()[0]
    return result


def select(calls, size_of, skip):
    """Small calls, of other dtypes and other arguments where there are any."""
    order = [i for i in range(len(calls)) if i not in skip and size_of(i) <= LARGEST_CALL]
    order.sort(key=lambda i: (size_of(i) < 16, size_of(i)))
    chosen, dtypes, forms = [], set(), set()
    for i in order:
        call = calls[i]
        form = (len(call["args"]), tuple(sorted(call["kwargs"])), "error" in call)
        dtype = call.get("dtype")
        if len(chosen) < CALLS and (dtype not in dtypes or form not in forms):
            chosen.append(i)
            dtypes.add(dtype)
            forms.add(form)
    return sorted(chosen)


def write(path, header, data, meta, calls):
    names = list(dict.fromkeys(name for call in calls for name in tensors_of(call)))
    entries, body = {}, b""
    for name in names:
        begin, end = header[name]["data_offsets"]
        entries[name] = dict(header[name], data_offsets=[len(body), len(body) + end - begin])
        body += data[begin:end]
    meta = dict(meta, calls=json.dumps(calls, separators=(",", ":")))
    text = json.dumps({"__metadata__": meta, **entries}, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def main():
    source, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    skip = left_out(pathlib.Path(sys.argv[3])) if len(sys.argv) > 3 else {}
    for path in sorted(source.glob("*.safetensors")):
        header, data = read(path)
        meta = header.pop("__metadata__")
        calls = json.loads(meta["calls"])

        def size_of(i):
            return sum(header[t]["data_offsets"][1] - header[t]["data_offsets"][0] for t in set(tensors_of(calls[i])))

        chosen = select(calls, size_of, skip.get(path.stem, set()))
        if chosen:
            write(out / path.name, header, data, meta, [calls[i] for i in chosen])


if __name__ == "__main__":
    main()
