"""Call the library with gpuglue's arrays: no copy and no further glue code.

    python build.py && python use.py [DIRECTORY]
"""

import sys
from pathlib import Path

import numpy as np

import gpuglue as gpuarray

sys.path.insert(0, sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).parent / "build"))
import example  # noqa: E402  built by build.py

array = gpuarray.arange(53735, dtype=np.float64)
with array.device:  # the library runs on the current device
    print(example.sum(array), "expected", 1443698245)
    print(example.sum(gpuarray.to_gpu(np.full(1000, 0.5, np.float32))), "expected", 500)
