"""opencl_missing.py DRIVER: prints why the simulated Level Zero driver cannot run compiled kernels, or nothing if it can."""

import ctypes
import sys

library = ctypes.CDLL(sys.argv[1])
library.sim_opencl_missing.restype = ctypes.c_char_p
print(library.sim_opencl_missing().decode(), end="")
