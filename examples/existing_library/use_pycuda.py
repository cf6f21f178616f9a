"""Call the same library from a PyCUDA program: two lines are added at the top.

    python build.py && python use_pycuda.py [DIRECTORY]
"""

import gpuglue.compat

gpuglue.compat.install("pycuda")

import sys  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402
import pycuda.autoinit  # noqa: E402, F401
import pycuda.gpuarray as gpuarray  # noqa: E402

sys.path.insert(0, sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).parent / "build"))
import example  # noqa: E402  built by build.py

array = gpuarray.arange(53735, dtype=np.float64)
print(example.sum(array), "expected", 1443698245)
print(example.sum(gpuarray.to_gpu(np.full(1000, 0.5, np.float32))), "expected", 500)
assert example.sum(array) == 1443698245
