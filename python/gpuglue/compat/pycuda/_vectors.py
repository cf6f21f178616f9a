"""gpuarray.vec: CUDA's short vectors."""

import numpy as np


class _Vectors:
    """gpuarray.vec: NumPy dtypes of CUDA's short vectors, and make_ functions for their values."""

    def __init__(self):
        plain = {"char": np.int8, "uchar": np.uint8, "short": np.int16, "ushort": np.uint16, "int": np.int32,
                 "uint": np.uint32, "long": np.int64, "ulong": np.uint64, "longlong": np.int64, "ulonglong": np.uint64,
                 "float": np.float32, "double": np.float64}
        for name, kind in plain.items():
            for count in (1, 2, 3, 4):
                dtype = np.dtype([(letter, kind) for letter in "xyzw"[:count]])
                setattr(self, f"{name}{count}", dtype)
                setattr(self, f"make_{name}{count}", lambda *values, dtype=dtype: np.array(values, dtype)[()])


vec = _Vectors()
