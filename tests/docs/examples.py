"""Run the examples of all docstrings on one backend:  examples.py BACKEND

`gg` is gpuglue and `np` is NumPy, as in the documents; compat modules have their own usual names. `# host only:
REASON` in an example means that it runs on the host backend only."""

import doctest
import re
import sys

import gpuglue as gg
import numpy as np
import public

# `...` in an output stands for any text.
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
HOST_ONLY = re.compile(r"^\s*>>> # host only: \S", re.M)


def names_for(name):
    """What the examples of an object may use without an import."""
    names = {"gg": gg, "np": np}
    if "pycuda" in name:
        import gpuglue.compat.pycuda.autoinit
        from gpuglue.compat.pycuda import characterize, compiler, driver, gpuarray, tools

        names |= {"drv": driver, "gpuarray": gpuarray, "compiler": compiler, "tools": tools,
                  "characterize": characterize}
    if "PyGPU" in name:
        from gpuglue.compat import PyGPU

        names |= {"PyGPU": PyGPU}
    return names


def run(item, backend, runner):
    """Whether the object has an example that ran."""
    text = item.value.__doc__ or ""
    if ">>> " not in text or HOST_ONLY.search(text) and backend != "host":
        return False
    test = doctest.DocTestParser().get_doctest(text, names_for(item.name), item.name, item.name, 0)
    runner.run(test)
    return True


def main(backend):
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    ran, seen = 0, set()
    # compat.pycuda needs managed and registered memory, which Level Zero does not have.
    for item in public.main() + (public.compat() if backend != "ze-sim" else []):
        if id(item.value.__doc__) not in seen:
            ran += run(item, backend, runner)
        seen.add(id(item.value.__doc__))
    print(f"{ran} docstrings have examples that ran on {backend}: {runner.tries} lines, {runner.failures} failed")
    return 1 if runner.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
