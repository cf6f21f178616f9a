"""The public objects of gpuglue and of its compat modules, and what a docstring of each must have."""

import ast
import importlib
import inspect
from dataclasses import dataclass
from typing import Any

import gpuglue as gg
from blocks import ROOT

FOREIGN = "Of other libraries: not an attribute."
COMPAT = {
    "gpuglue.compat": ("get_include", "install"),
    "gpuglue.compat.pycuda.driver": (),
    "gpuglue.compat.pycuda.characterize": ("has_double_support", "has_stack", "platform_bits", "sizeof"),
    "gpuglue.compat.pycuda.compiler": ("DynamicModule", "DynamicSourceModule", "SourceModule", "compile"),
    "gpuglue.compat.pycuda.elementwise": ("ElementwiseKernel",),
    "gpuglue.compat.pycuda.reduction": ("ReductionKernel",),
    "gpuglue.compat.pycuda.scan": ("ExclusiveScanKernel", "InclusiveScanKernel"),
    "gpuglue.compat.pycuda.gpuarray": (),
    "gpuglue.compat.pycuda.cumath": ("acos", "asin", "atan", "ceil", "cos", "cosh", "exp", "fabs", "floor", "fmod", "frexp",
                                     "ldexp", "log", "log10", "modf", "sin", "sinh", "sqrt", "tan", "tanh"),
    "gpuglue.compat.pycuda.curandom": (),
    "gpuglue.compat.pycuda.tools": ("DeviceData", "DeviceMemoryPool", "OccupancyRecord", "PageLockedAllocator",
                                    "PageLockedMemoryPool", "PooledDeviceAllocation", "bitlog2",
                                    "clear_context_caches", "context_dependent_memoize", "dtype_to_ctype",
                                    "get_default_device", "init_cuda_context_fixture", "make_default_context",
                                    "mark_cuda_test"),
    "gpuglue.compat.PyGPU": (),
}


@dataclass(frozen=True)
class Public:
    """A public object with its name, as users write it."""

    name: str
    value: Any

    @property
    def is_callable(self):
        return callable(self.value) and not (isinstance(self.value, type) and self.signature is None)

    @property
    def signature(self):
        """None where an object cannot be called: a property, or a type that has no constructor."""
        value = self.value
        if isinstance(value, type) and (issubclass(value, (tuple, Warning, int)) or
                                        value.__doc__ and not value.__text_signature__ and value.__module__ == "gpuglue"):
            return None
        try:
            return inspect.signature(value) if callable(value) else None
        except (TypeError, ValueError):
            return None

    @property
    def parameters(self):
        """Names of the parameters, without the object itself."""
        names = list(self.signature.parameters) if self.signature else []
        return names[1:] if names[:1] in (["self"], ["cls"]) else names


def _all_members(value):
    """(name, member) of a class and of the bases that it shares with other classes of compat modules."""
    for base in value.__mro__:
        if base is value or base.__module__.startswith("gpuglue.compat"):
            yield from vars(base).items()


def _members(name, value):
    for key, member in _all_members(value):
        described = callable(member) or hasattr(member, "__get__")  # not the value of a plain attribute
        in_slots = key in getattr(value, "__slots__", ()) and isinstance(value.__slots__, dict)  # which has its docstring
        if not key.startswith("_") and described and not in_slots and getattr(member, "__doc__", None) != FOREIGN:
            yield Public(f"{name}.{key}", getattr(value, key))


def _of(module, names):
    for key in names:
        value, name = getattr(module, key), f"{module.__name__}.{key}"
        if inspect.ismodule(value) or not (callable(value) or isinstance(value, type)):
            continue
        yield Public(name, value)
        if isinstance(value, type) and not issubclass(value, int):
            yield from _members(name, value)


def main():
    """The public objects of gpuglue itself."""
    return list(_of(gg, [name for name in dir(gg) if not name.startswith("_")]))


def compat():
    """The public objects of the modules that stand in for other packages."""
    found = []
    for name, keys in COMPAT.items():
        module = importlib.import_module(name)
        keys = keys or getattr(module, "__all__", None) or [
            key for key, value in vars(module).items()
            if not key.startswith("_") and getattr(value, "__module__", "").startswith("gpuglue.compat")
            and key not in ("failed", "take_last")]  # for its own files
        found += _of(module, keys)
    # Aliases, and what several classes inherit, count once.
    return list({id(inspect.unwrap(item.value)): item for item in reversed(found)}.values())[::-1]


def _stub_returns():
    """Names of the callables in C whose result is not None."""
    found = set()
    for node in ast.parse((ROOT / "python/gpuglue/_core.pyi").read_text()).body:
        for member, prefix in [(node, "gpuglue."), *((one, f"gpuglue.{node.name}.") for one in getattr(node, "body", ())
                                                     if isinstance(node, ast.ClassDef))]:
            if isinstance(member, ast.FunctionDef) and ast.unparse(member.returns) != "None":
                found.add(prefix + member.name)
    return found


STUB_RETURNS = _stub_returns()
