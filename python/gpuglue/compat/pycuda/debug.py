"""pycuda.debug: run a program whose kernels are compiled for a debugger.

``cuda-gdb --args python -m gpuglue.compat.pycuda.debug SCRIPT ARGUMENT...`` runs it under NVIDIA's debugger. After
``gpuglue.compat.install("pycuda")`` the module can also be imported as ``pycuda.debug``."""

import os
import runpy
import sys

import gpuglue.compat

from . import driver


def main(arguments):
    """Run the script, with the names of PyCUDA; return the status for mistakes in the command."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: python -m gpuglue.compat.pycuda.debug SCRIPT [ARGUMENT...]", file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    script = arguments[0]
    if not os.path.isfile(script):
        print(f"pycuda.debug: there is no file {script!r}: give the path of a Python program", file=sys.stderr)
        return 1
    gpuglue.compat.install("pycuda", force=True)
    driver.set_debugging()
    sys.argv[:] = arguments
    if not sys.flags.safe_path:
        sys.path[0] = os.path.dirname(os.path.abspath(script))  # as Python does for a script
    runpy.run_path(script, run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
