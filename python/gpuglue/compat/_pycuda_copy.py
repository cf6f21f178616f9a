"""A copy of PyCUDA's own Python files, which `gpuglue pycuda add` makes, and how programs import it.

What PyCUDA has in C++, and what calls nvcc, stays gpuglue's: see OURS. The copy is $XDG_DATA_HOME/gpuglue/pycuda; like the
cache of images, it is used only if others cannot write to it."""

import importlib.machinery
import importlib.util
import os
import re
import sys

from gpuglue import _cache

OURS = ("_driver", "autoinit", "autoprimaryctx", "characterize", "compiler", "debug", "driver")


def place():
    """The directory of the copy, whether it is there or not."""
    base = os.environ.get("XDG_DATA_HOME") or ""
    base = base if os.path.isabs(base) else os.path.join(os.path.expanduser("~"), ".local", "share")
    return os.path.join(base, "gpuglue", "pycuda")


def directory():
    """The directory of the copy, or None where there is none. ImportError: others can write to it."""
    where = place()
    if not os.path.lexists(where):
        return None
    for path in [os.path.dirname(where), where, *_below(where)]:
        reason = _cache._distrusted(os.stat(path))
        if reason:
            raise ImportError(f"the copy of PyCUDA in {where} is not used: {path}: {reason}. Make that its owner's alone "
                              "(chmod go-w), or run `gpuglue pycuda remove` and add the copy as the user that runs the program")
    return where


def _below(where):
    return [os.path.join(at, name) for at, directories, files in os.walk(where) for name in directories + files]


class _Reduction(importlib.machinery.SourceFileLoader):
    """PyCUDA's module with our kernel: the results of its own would be wrong on host."""

    def exec_module(self, module):
        from .pycuda._reduction_module import get_reduction_module

        super().exec_module(module)
        module.get_reduction_module = get_reduction_module


class Finder:
    """Finds `pycuda` as the copy, and modules of gpuglue below it by the finder `ours`. Python itself finds the others, in
    the package's directory."""

    def __init__(self, ours, where):
        self.name, self._ours, self._where = ours.name, ours, where

    def find_spec(self, name, path=None, target=None):
        package, _, module = name.partition(".")
        if package != self.name:
            return None
        if not module:
            return importlib.util.spec_from_file_location(name, os.path.join(self._where, "__init__.py"),
                                                          submodule_search_locations=[self._where])
        if module in OURS:
            return self._ours.find_spec(name)
        if module == "reduction":
            path = os.path.join(self._where, "reduction.py")
            return importlib.util.spec_from_file_location(name, path, loader=_Reduction(name, path))
        first = os.path.join(self._where, module.partition(".")[0])
        if not os.path.exists(first) and not os.path.exists(first + ".py"):
            self._ours.missing(name)
        return None

    def include_directory(self):
        """The directory of PyCUDA's headers, which its kernels include."""
        return os.path.join(self._where, "cuda")


def include_directories():
    """Those of the copy, if the program uses it."""
    return [one.include_directory() for one in sys.meta_path if isinstance(one, Finder)]


def with_headers(source):
    """(source, directories to search): the headers are put in place of their #include lines, so that the cache of images, which
    knows a source by its text, has the image. The directories are those of the copy where an #include of them is left."""
    directories = include_directories()
    if not directories:
        return source, []
    text = _inlined(source, "kernel.cu", directories, ())
    return text, directories if any(_path_of(found, directories) for found in _INCLUDE.finditer(text)) else []


# In PyCUDA's header, and in a branch that nothing enables; but for the cache each #include may add a file.
_DEAD = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<stl/[^\n]*", re.M)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([\w.-]+)[>"][^\n]*', re.M)


def _path_of(found, directories):
    paths = [os.path.join(directory, found[1]) for directory in directories]
    return next((path for path in paths if os.path.isfile(path)), None)


def _inlined(source, name, directories, above):
    """`above` are the headers that include this source."""
    def text(found):
        path = _path_of(found, directories)
        commented = source.rfind("/*", 0, found.start()) > source.rfind("*/", 0, found.start())
        if path is None or path in above or commented:
            return found[0]
        with open(path, encoding="utf-8") as file:
            header = _inlined(_DEAD.sub("", file.read()), found[1], directories, (*above, path))
        line = source.count("\n", 0, found.start()) + 2
        return f'#line 1 "{found[1]}"\n{header}\n#line {line} "{name}"'
    return _INCLUDE.sub(text, source)
