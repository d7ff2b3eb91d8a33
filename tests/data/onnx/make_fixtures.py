"""Writes the models of this folder with the onnx package, which the reader's tests are checked against."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).parent
FLOAT = TensorProto.FLOAT


def save(name, graph, **options):
    model = helper.make_model(graph, **options)
    if name != "everything.onnx":  # its output of unknown rank is legal, but the checker wants a shape
        onnx.checker.check_model(model)
    (HERE / name).write_bytes(model.SerializeToString())


def value(name, shape, kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


# One of everything: raw and typed initialisers of every element type, symbolic and unknown sizes, all attribute kinds.
typed = [("FLOAT", [1.5, -2]), ("DOUBLE", [1.5, -2]), ("INT8", [-128, 127]), ("UINT8", [0, 255]), ("INT16", [-32768, 3]),
         ("INT32", [-5, 6]), ("INT64", [-(2**62), 7]), ("BOOL", [True, False]), ("FLOAT16", [1.5, -2]),
         ("BFLOAT16", [1.5, -2]), ("UINT16", [1, 65535]), ("UINT64", [1, 2])]
initializers = [helper.make_tensor(f"typed_{kind}", getattr(TensorProto, kind), [2], data) for kind, data in typed]
initializers += [numpy_helper.from_array(np.array([[1, 2], [3, 4]], kind), f"raw_{kind}")
                 for kind in ("float32", "float64", "float16", "int8", "uint8", "int16", "int32", "int64", "bool")]
initializers += [helper.make_tensor("scalar", FLOAT, [], [4.0]), helper.make_tensor("none", FLOAT, [0, 3], []),
                 helper.make_tensor("text", TensorProto.STRING, [1], [b"hello"])]
node = helper.make_node("Odd", ["x", "", "scalar"], ["y", "z"], name="odd", domain="my.domain", a_float=0.5, an_int=-3,
                        a_string="s\u00fc", floats=[1.0, 2.5], ints=[1, -2], strings=["a", "b"],
                        tensor=numpy_helper.from_array(np.array([9], "int64"), "inner"))
nodes = [node, helper.make_node("Relu", ["y"], ["out"])]
graph = helper.make_graph(nodes, "everything", [value("x", ["batch", 3, None])], [value("out", ["batch", 3]), value("z", None, TensorProto.INT64)],
                          initializers, value_info=[value("y", [7])])
save("everything.onnx", graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("my.domain", 2)],
     ir_version=8, producer_name="tests")
model = onnx.load(HERE / "everything.onnx")
helper.set_model_props(model, {"author": "n\u00e9mo"})
(HERE / "everything.onnx").write_bytes(model.SerializeToString())

# Control flow whose bodies use a value of the outer graph, and a function.
branch = lambda op: helper.make_graph([helper.make_node(op, ["x"], ["r"])], op, [], [value("r", [2])])
nodes = [helper.make_node("If", ["c"], ["t"], then_branch=branch("Relu"), else_branch=branch("Neg")),
         helper.make_node("Twice", ["t"], ["y"], domain="f")]
graph = helper.make_graph(nodes, "control", [value("c", [], TensorProto.BOOL), value("x", [2])], [value("y", [2])])
twice = helper.make_function("f", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 17)])
save("control.onnx", graph, functions=[twice], opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("f", 1)], ir_version=8)

# External data at an offset.
(HERE / "weights.bin").write_bytes(bytes(8) + np.arange(4, dtype="float32").tobytes())
tensor = TensorProto(name="w", data_type=FLOAT, dims=[2, 2], data_location=TensorProto.EXTERNAL)
for key, text in (("location", "weights.bin"), ("offset", "8"), ("length", "16")):
    tensor.external_data.add(key=key, value=text)
graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "external", [value("x", [2, 2])], [value("y", [2, 2])], [tensor])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
(HERE / "external.onnx").write_bytes(model.SerializeToString())

# relu(x @ w + b), summed over the rows, whose number is free.
constant = lambda name, data: numpy_helper.from_array(np.array(data), name)
nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["h"]), helper.make_node("Relu", ["h"], ["r"]),
         helper.make_node("ReduceSum", ["r", "rows"], ["y"], keepdims=0)]
graph = helper.make_graph(nodes, "mlp", [value("x", ["n", 2])], [value("y", [3])],
                          [constant("w", np.float32([[1, 2, 3], [4, 5, 6]])), constant("b", np.float32([0.5, -100, 1])),
                           constant("rows", np.int64([0]))])
save("mlp.onnx", graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

# Operators that are not mapped, one of them in a domain of its own.
body = helper.make_graph([helper.make_node("Identity", ["go"], ["on"])], "body",
                         [value("i", [], TensorProto.INT64), value("go", [], TensorProto.BOOL)], [value("on", [], TensorProto.BOOL)])
nodes = [helper.make_node("Loop", ["count", "go"], [], body=body),
         helper.make_node("NonMaxSuppression", ["boxes", "scores"], ["kept"]),
         helper.make_node("Odd", ["kept"], ["y"], domain="my.domain")]
graph = helper.make_graph(nodes, "unmapped", [value("count", [], TensorProto.INT64), value("go", [], TensorProto.BOOL),
                          value("boxes", [1, 4, 4]), value("scores", [1, 1, 4])], [value("y", None, TensorProto.INT64)])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("my.domain", 1)], ir_version=8)
(HERE / "unmapped.onnx").write_bytes(model.SerializeToString())
