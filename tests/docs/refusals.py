"""What a program gets that uses a name which the tables of PyCUDA's and PybindGPU's names mark `no` on a backend.

    refusals.py [BACKEND [DIRECTORY]]      the current backend; the tables of docs/reference, or those of that directory

Prints a line for each name: the name, and its error, or `works`. The exit status is 1 if an error has no way out after its colon."""

import importlib
import re
import sys
from pathlib import Path

import gpuglue.compat
import numpy as np

REFERENCE = Path(__file__).resolve().parents[2] / "docs/reference"
COLUMNS = ("cuda", "hip", "host", "ze")
KERNEL = 'extern "C" __global__ void f(float *x) { *x = 1; }'
# Names that raise when they are read or called, as a program does it. Of others, the import of the name raises.
USES = {
    "GPUArray.bind_to_texref": "array().bind_to_texref(None)", "GPUArray.bind_to_texref_ext": "array().bind_to_texref_ext(None)",
    "GPUArray.__cuda_array_interface__": "array().__cuda_array_interface__", "ceil": "cumath.ceil(array())",
    "Module.get_texref": "module().get_texref('t')", "Module.get_surfref": "module().get_surfref('s')",
    "Function.param_set_texref": "function().param_set_texref(None)", "Function.num_regs": "function().num_regs",
    "Function.local_size_bytes": "function().local_size_bytes", "Array.handle": "driver.np_to_array(np.zeros((2, 2), 'f4'), 'C').handle",
    "Event.ipc_handle": "driver.Event().ipc_handle()", "Event.from_ipc_handle": "driver.Event.from_ipc_handle(bytes(64))",
    "DeviceAllocation.as_buffer": "driver.mem_alloc(8).as_buffer(8)", "Context.get_limit": "driver.Context.get_limit(driver.limit.STACK_SIZE)",
    "PointerHolderBase.as_buffer": "holder(driver.mem_alloc(8)).as_buffer(8)", "DeviceData.align": "tools.DeviceData().align(33)",
    "compile": "compiler.compile(KERNEL)", "cudaDeviceProp.get": "PyGPU.cudaDeviceProp(0).get()",
    "CompileError": "compiler.SourceModule('no C++')",
}


WAY = re.compile(r": [^:]*: .*\b(pass|use|copy|send|map|make|see|do without|or choose)\b|: .*: (copy|use|pass) |references: pass ")


def marked(directory, backend):
    """(module, name) of each name that a table marks `no`."""
    module, at = "PyGPU", 3 + COLUMNS.index(backend)
    for page in ("pycuda-names.md", "compat-names.md"):
        for line in (Path(directory) / page).read_text().splitlines():
            module = line[3:] if line.startswith("## pycuda") else "PyGPU" if page == "compat-names.md" else module
            cells = [cell.strip() for cell in line.split("|")[1:-1]]
            if len(cells) == 7 and cells[0].startswith("`") and cells[at].startswith("no"):
                yield from ((module, name) for name in re.findall(r"`([^`]+)`", cells[0 if cells[at] == "no" else at]))


def surroundings():
    """What the expressions of USES name."""
    from gpuglue.compat.pycuda import compiler, cumath, curandom, driver, gpuarray, tools

    def function():
        return compiler.SourceModule(KERNEL, no_extern_c=True).get_function("f")

    def holder(memory):
        class Holder(driver.PointerHolderBase):
            def get_pointer(self):
                return int(memory)
        return Holder()

    driver.init()
    return {"compiler": compiler, "cumath": cumath, "curandom": curandom, "driver": driver, "tools": tools, "np": np, "KERNEL": KERNEL,
            "PyGPU": importlib.import_module("gpuglue.compat.PyGPU"), "array": lambda: gpuarray.zeros(3, np.float32),
            "module": lambda: compiler.SourceModule(KERNEL, no_extern_c=True), "function": function, "holder": holder,
            "context": tools.make_default_context()}


def error_of(module, name, names):
    """The error that a program gets, as it would print it, or None."""
    try:
        use = USES.get(name)
        exec(use or f"from {module} import {name.split('.')[0]} as found\nfound.{name.partition('.')[2] or '__doc__'}", names)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def names_the_way_out(error):
    """Whether the error has one line that says what to do: a verb after the last colon but one."""
    return error is None or "\n" not in error and bool(WAY.search(error))


def errors(backend=None, directory=REFERENCE):
    """{name: its error, or None} of the names that are marked."""
    gpuglue.compat.install("pycuda", "PyGPU", "PybindGPU", force=True)
    names = surroundings()
    backend = backend or gpuglue.current_device().backend
    found = {f"{module}.{name}": error_of(module, name, names) for module, name in marked(directory, backend)}
    names.pop("context").pop()
    return found


def main(*arguments):
    """Print the list; whether an error lacks a way out."""
    found = errors(*arguments)
    for name, error in found.items():
        print(f"{'' if names_the_way_out(error) else 'NO WAY OUT  '}{name}: {error or 'works'}")
    return not all(map(names_the_way_out, found.values()))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
