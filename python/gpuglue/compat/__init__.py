"""Programs written for other packages, on gpuglue: `gpuglue.compat.PyGPU`, `gpuglue.compat.pycuda`."""

import importlib
import importlib.machinery
import importlib.util
import os
import sys

from . import _pycuda_copy

_PROVIDED = {"PyGPU": "PyGPU", "PybindGPU": "PyGPU", "pycuda": "pycuda"}


class _Alias:
    """Finds `pycuda.driver` as `gpuglue.compat.pycuda.driver`, the same module object."""

    def __init__(self, name, target):
        self.name, self.target = name, target

    def find_spec(self, name, path=None, target=None):
        if name != self.name and not name.startswith(self.name + "."):
            return None
        ours = self.target + name[len(self.name):]
        if importlib.util.find_spec(ours) is None:
            return self.missing(name)
        return importlib.machinery.ModuleSpec(name, self, is_package=name == self.name)

    def missing(self, name):
        """Raise the error that names an alternative, if there is one."""
        if self.name == "pycuda":
            from .pycuda._missing import MODULES, OPTIONAL

            if name in MODULES:
                error = ImportError if name in OPTIONAL else ModuleNotFoundError
                raise error(f"there is no {name} on gpuglue: {MODULES[name]}", name=name)

    def create_module(self, spec):
        module = importlib.import_module(self.target + spec.name[len(self.name):])
        self._identity = (module.__spec__, module.__loader__, module.__name__)
        return module

    def get_code(self, name):
        """For ``runpy.run_module("pycuda.debug")``."""
        ours = self.target + name[len(self.name):]
        return importlib.util.find_spec(ours).loader.get_code(ours)

    def exec_module(self, module):
        module.__spec__, module.__loader__, module.__name__ = self._identity


def get_include():
    """Return the directory of ptr_wrapper.h, for extensions that are built with pybind11.

    Returns
    -------
    str
        The directory.

    Examples
    --------
    >>> gg.compat.get_include()
    '...gpuglue/compat'
    """
    return os.path.dirname(os.path.abspath(__file__))


def install(*names, force=False):
    """Make ``import NAME`` import gpuglue's module in place of the package of that name.

    Parameters
    ----------
    *names : {'pycuda', 'PyGPU', 'PybindGPU'}
        The packages; without names, all of them.
    force : bool, default False
        Whether to hide a package that is installed or imported.

    Raises
    ------
    ImportError
        If the real package is imported or installed, unless ``force=True``.
    ValueError
        If there is no module for a name.

    Notes
    -----
    Modules that have imported the real package keep it. After ``gpuglue pycuda add FILE`` on the command line, the arrays and
    kernels of ``pycuda`` are PyCUDA's own, from the copy of its Python files that this command makes.

    Examples
    --------
    >>> gg.compat.install("pycuda")
    >>> import pycuda.driver
    >>> pycuda.driver.__name__
    'gpuglue.compat.pycuda.driver'
    """
    for name in names:
        if name not in _PROVIDED:
            raise ValueError(f"gpuglue.compat has no {name!r}: expected one of {', '.join(_PROVIDED)}")
    for name in names or _PROVIDED:
        _install(name, force)


def _is_ours(module):
    return getattr(module, "__name__", "").startswith(__name__ + ".")


def _install(name, force):
    if any(isinstance(finder, (_Alias, _pycuda_copy.Finder)) and finder.name == name for finder in sys.meta_path):
        return
    known = sys.modules.get(name)
    if known is not None and not _is_ours(known) and not force:
        raise ImportError(f"the real {name} is already imported; install({name!r}, force=True) hides it")
    if known is None and not force and importlib.util.find_spec(name) is not None:
        raise ImportError(f"the real {name} is installed; install({name!r}, force=True) hides it")
    copy = _pycuda_copy.directory() if name == "pycuda" else None
    for loaded in [one for one in sys.modules if one == name or one.startswith(name + ".")]:
        del sys.modules[loaded]
    finder = _Alias(name, f"{__name__}.{_PROVIDED[name]}")
    sys.meta_path.insert(0, _pycuda_copy.Finder(finder, copy) if copy else finder)
