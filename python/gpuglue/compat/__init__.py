"""Programs written for other packages, on gpuglue: `gpuglue.compat.PyGPU`, `gpuglue.compat.pycuda`."""

import importlib
import importlib.machinery
import importlib.util
import os
import sys

_PROVIDED = {"PyGPU": "PyGPU", "PybindGPU": "PyGPU", "pycuda": "pycuda"}
_PARTS = {"pycuda": ("driver", "autoinit", "autoprimaryctx", "compiler", "gpuarray", "tools"), "PyGPU": ()}


class _Alias:
    """Finds `pycuda.driver` as `gpuglue.compat.pycuda.driver`, the same module object."""

    def __init__(self, name, target):
        self.name, self.target = name, target

    def find_spec(self, name, path=None, target=None):
        if name != self.name and not name.startswith(self.name + "."):
            return None
        ours = self.target + name[len(self.name):]
        if importlib.util.find_spec(ours) is None:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=name == self.name)

    def create_module(self, spec):
        module = importlib.import_module(self.target + spec.name[len(self.name):])
        self._identity = (module.__spec__, module.__loader__, module.__name__)
        return module

    def exec_module(self, module):
        module.__spec__, module.__loader__, module.__name__ = self._identity


def get_include():
    """The folder of ptr_wrapper.h, for extensions that are built with pybind11."""
    return os.path.dirname(os.path.abspath(__file__))


def install(*names, force=False):
    """Let `import NAME` give gpuglue's module: names of "pycuda", "PyGPU", "PybindGPU".

    A real package of that name that is imported, or that could be, is not hidden: ImportError, unless
    force=True."""
    for name in names:
        if name not in _PROVIDED:
            raise ValueError(f"gpuglue.compat has no {name!r}: expected one of {', '.join(_PROVIDED)}")
    for name in names:
        _install(name, force)


def _is_ours(module):
    return getattr(module, "__name__", "").startswith(__name__ + ".")


def _install(name, force):
    if any(isinstance(finder, _Alias) and finder.name == name for finder in sys.meta_path):
        return
    known = sys.modules.get(name)
    if known is not None and not _is_ours(known) and not force:
        raise ImportError(f"the real {name} is imported already; install({name!r}, force=True) hides it")
    if known is None and not force and importlib.util.find_spec(name) is not None:
        raise ImportError(f"the real {name} is installed here; install({name!r}, force=True) hides it")
    for loaded in [one for one in sys.modules if one == name or one.startswith(name + ".")]:
        del sys.modules[loaded]
    sys.meta_path.insert(0, _Alias(name, f"{__name__}.{_PROVIDED[name]}"))
