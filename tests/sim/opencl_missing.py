"""opencl_missing.py DRIVER: prints why the simulated Level Zero driver cannot run compiled kernels, or nothing if it can."""

import ctypes
import sys
from pathlib import Path

if not Path(sys.argv[1]).exists():
    sys.exit()  # not built yet: make also expands this where it only prints its recipes
library = ctypes.CDLL(sys.argv[1])
library.sim_opencl_missing.restype = ctypes.c_char_p
print(library.sim_opencl_missing().decode(), end="")
