"""Writes the fixtures of this folder with NumPy and the safetensors package, which the file tests are checked against."""

import io
import zipfile
from pathlib import Path

import numpy as np
from numpy.lib import format as npy
from safetensors.numpy import save_file

HERE = Path(__file__).parent
DTYPES = ["b1", "u1", "i1", "i2", "i4", "i8", "f2", "f4", "f8"]


def sample(code, shape=(2, 3)):
    values = np.array([0, 1, 2, 3, 100, 127]) - (0 if code in ("b1", "u1") else 50)
    return values.astype(code).reshape(shape)


for code in DTYPES:
    np.save(HERE / f"{code}.npy", sample(code))
    if code[1] != "1":
        np.save(HERE / f"{code}_big.npy", sample(">" + code))
np.save(HERE / "fortran.npy", np.asfortranarray(np.arange(24, dtype="i4").reshape(2, 3, 4)))
np.save(HERE / "scalar.npy", np.array(2.5))
np.save(HERE / "empty.npy", np.zeros((3, 0, 2), "f4"))
np.save(HERE / "vector.npy", np.arange(5, dtype="i8"))
np.save(HERE / "bfloat16.npy", np.array([0x3F80, 0xC040], "u2").view("V2"))  # 1, -3
np.save(HERE / "complex.npy", np.array([1j], "c8"))
np.save(HERE / "object.npy", np.array([None]), allow_pickle=True)
np.save(HERE / "structured.npy", np.zeros(2, [("a", "f4"), ("b", "i4")]))
for major in (2, 3):
    with open(HERE / f"version{major}.npy", "wb") as file:
        npy.write_array(file, np.arange(6, dtype="f4").reshape(3, 2), version=(major, 0))

arrays = {"x": np.arange(300, dtype="f4").reshape(20, 15), "folder/y": np.array([True, False]), "z": np.array(7)}
np.savez(HERE / "stored.npz", **arrays)
np.savez_compressed(HERE / "deflated.npz", **arrays)
save_file({"a": np.arange(6, dtype="f4").reshape(2, 3), "b": np.array([-1, 2], "i2"), "c": np.array([True, False, True]),
           "d": np.zeros((0, 4), "f8"), "e": np.array(5, "i8"), "f": np.array([1, 2], "u4")},
          HERE / "numpy.safetensors", metadata={"who": "numpy", "é": "ü"})


class Unseekable(io.RawIOBase):
    """Makes zipfile write data descriptors after the members, with sizes of 0 before them."""

    def __init__(self, path):
        self.file = open(path, "wb")

    def writable(self):
        return True

    def write(self, data):
        return self.file.write(data)

    def close(self):
        self.file.close()
        super().close()


stream = Unseekable(HERE / "streamed.npz")
with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
    data = io.BytesIO()
    np.save(data, np.arange(4, dtype="i2"))
    archive.writestr("w.npy", data.getvalue())
stream.close()
