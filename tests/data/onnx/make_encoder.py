"""Writes encoder.onnx, a small transformer encoder as exporters write one: what its shapes are, its nodes compute. Next to it,
encoder_results.npz holds what ONNX Runtime gives for it at several sizes."""

import os
from pathlib import Path

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # before the import, which would leave files in the home folder

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

HERE = Path(__file__).parent
HIDDEN, HEADS, WORDS, LONGEST = 8, 2, 12, 32
PAIRS = [(2, 3), (3, 7), (5, 2), (4, 4), (2, 31), (9, 16), (1, 6), (6, 1)]
rng = np.random.default_rng(7)
nodes, constants, count = [], [], 0


def constant(data, kind):
    constants.append(numpy_helper.from_array(np.asarray(data, kind), f"c{len(constants)}"))
    return constants[-1].name


def weight(*shape):
    return constant(rng.normal(0, 0.5, shape), "float32")


def ints(*values):
    return constant(list(values), "int64")


def node(op, *inputs, output=None, **attributes):
    global count
    count += 1
    output = output or f"v{count}"
    nodes.append(helper.make_node(op, list(inputs), [output], name=f"{op}_{count}", **attributes))
    return output


def size(x, axis):
    return node("Gather", node("Shape", x), constant(axis, "int64"), axis=0)


def shape(*parts):
    return node("Concat", *(node("Unsqueeze", p, ints(0)) if isinstance(p, str) else ints(p) for p in parts), axis=0)


def linear(x, columns_in, columns_out):
    return node("Add", node("MatMul", x, weight(columns_in, columns_out)), weight(columns_out))


def layer_norm(x):
    centred = node("Sub", x, node("ReduceMean", x, axes=[-1]))
    variance = node("ReduceMean", node("Pow", centred, constant(2, "float32")), axes=[-1])
    spread = node("Sqrt", node("Add", variance, constant(1e-5, "float32")))
    return node("Add", node("Mul", node("Div", centred, spread), weight(HIDDEN)), weight(HIDDEN))


def gelu(x):
    erf = node("Erf", node("Div", x, constant(2**0.5, "float32")))
    return node("Mul", node("Mul", x, node("Add", erf, constant(1, "float32"))), constant(0.5, "float32"))


def expand(x, target):
    """As exporters write it: a -1 of the target would keep a length."""
    ones = node("ConstantOfShape", node("Shape", target), value=numpy_helper.from_array(np.array([1], "int64")))
    asked = node("Equal", target, node("Mul", ones, constant(-1, "int64")))
    return node("Expand", x, node("Where", asked, ones, target))


def heads(x, batch, length):
    apart = node("Reshape", x, shape(batch, length, HEADS, node("Div", size(x, 2), constant(HEADS, "int64"))))
    return node("Transpose", apart, perm=[0, 2, 1, 3])


def embed():
    batch, length = size("input_ids", 0), size("input_ids", 1)
    words = node("Gather", weight(WORDS, HIDDEN), "input_ids")
    places = node("Slice", ints(*range(LONGEST)), ints(0), node("Unsqueeze", length, ints(0)), ints(0))
    first = node("Gather", weight(LONGEST, HIDDEN), places)
    counted = node("Range", constant(0, "int64"), length, constant(1, "int64"))
    second = node("Gather", weight(LONGEST, HIDDEN), expand(node("Unsqueeze", counted, ints(0)), shape(batch, length)))
    return layer_norm(node("Add", node("Add", words, first), second)), batch, length


def attention(x, batch, length):
    mask = node("Unsqueeze", node("Unsqueeze", "attention_mask", ints(1)), ints(2))
    mask = node("Cast", expand(mask, shape(batch, 1, length, length)), to=TensorProto.FLOAT)
    bias = node("Mul", node("Sub", constant(1, "float32"), mask), constant(-10000, "float32"))
    q, k, v = (heads(linear(x, HIDDEN, HIDDEN), batch, length) for _ in range(3))
    depth = node("Sqrt", node("Cast", size(q, -1), to=TensorProto.FLOAT))
    scores = node("Div", node("MatMul", q, node("Transpose", k, perm=[0, 1, 3, 2])), depth)
    mixed = node("MatMul", node("Softmax", node("Add", scores, bias), axis=-1), v)
    together = node("Reshape", node("Transpose", mixed, perm=[0, 2, 1, 3]), shape(batch, length, -1))
    return linear(together, HIDDEN, HIDDEN)


def last_quarter(x, length):
    """x[:, length - ceil(length / 4):], as a model that scales sizes by floats computes it."""
    share = node("Mul", node("Cast", length, to=TensorProto.FLOAT), constant(0.25, "float32"))
    kept = node("Cast", node("Ceil", share), to=TensorProto.INT64)
    return node("Slice", x, node("Unsqueeze", node("Sub", length, kept), ints(0)), ints(2**63 - 1), ints(1))


x, batch, length = embed()
x = layer_norm(node("Add", x, attention(x, batch, length)))
x = layer_norm(node("Add", x, linear(gelu(linear(x, HIDDEN, 4 * HIDDEN)), 4 * HIDDEN, HIDDEN)))
first = node("Tanh", linear(node("Gather", x, constant(0, "int64"), axis=1), HIDDEN, 4))
mean = node("Div", node("ReduceSum", last_quarter(x, length), ints(1), keepdims=0), node("Cast", length, to=TensorProto.FLOAT))
node("Concat", first, mean, axis=1, output="pooled")
node("Size", "input_ids", output="words")

declare = helper.make_tensor_value_info
graph = helper.make_graph(
    nodes, "encoder",
    [declare(name, TensorProto.INT64, ["batch_size", "sequence"]) for name in ("input_ids", "attention_mask")],
    [declare("pooled", TensorProto.FLOAT, ["batch_size", 4 + HIDDEN]), declare("words", TensorProto.INT64, [])], constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.checker.check_model(model)
(HERE / "encoder.onnx").write_bytes(model.SerializeToString())

session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
results = {}
for rows, columns in PAIRS:
    ids = np.add.outer(3 * np.arange(rows), 5 * np.arange(columns)) % WORDS
    mask = np.arange(columns) < np.maximum(1, columns - np.arange(rows) % 3)[:, None]
    results[f"{rows}x{columns}"] = session.run(["pooled"], {"input_ids": ids, "attention_mask": mask.astype("int64")})[0]
np.savez(HERE / "encoder_results.npz", **results)
