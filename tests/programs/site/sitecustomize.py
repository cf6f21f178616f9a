"""Each program begins so: gpuglue's modules stand in for PyCUDA and PybindGPU, and WAY chooses what computes. See run.py."""

import os
import sys

import gpuglue.compat

if os.environ["WAY"] == "kernels":
    sys.modules["cupy"] = None  # as if it were not installed
gpuglue.compat.install("pycuda", "PyGPU", "PybindGPU", force=True)
if os.environ["WAY"] == "cupy":
    from gpuglue.compat.pycuda import _compute

    _compute.KERNELS_FIRST = False
