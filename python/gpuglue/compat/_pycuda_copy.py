"""A copy of PyCUDA's own Python files, which `gpuglue pycuda add` makes, and how programs import it.

What PyCUDA has in C++, and what calls nvcc, stays gpuglue's: see OURS. The copy is $XDG_DATA_HOME/gpuglue/pycuda; like the
cache of images, it is used only if others cannot write to it."""

import importlib.machinery
import importlib.util
import os
import re
import sys

from gpuglue import _cache

_HEADERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pycuda", "include")
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
    """That of the copy, if the program uses it, and that of gpuglue's own headers."""
    return [*(one.include_directory() for one in sys.meta_path if isinstance(one, Finder)), _HEADERS]


def with_headers(source):
    """(source, directories to search): the headers are put in place of their #include lines, so that the cache of images, which
    knows a source by its text, has the image. The directories are given where an #include of one of their headers is left."""
    directories = include_directories()
    text = _inlined(source, "kernel.cu", directories, ())
    return text, directories if any(_path_of(found[1], directories) for found in _INCLUDE.finditer(text)) else []


# In PyCUDA's header, and in a branch that nothing enables; but for the cache each #include may add a file.
_DEAD = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<stl/[^\n]*", re.M)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([\w.-]+)[>"][^\n]*', re.M)


_TOKEN = re.compile(r"""
    ^[ \t]*\#[ \t]*(?:include[ \t]*[<"](?P<header>[\w.-]+)[>"]|(?P<once>pragma[ \t]+once\b))
    |/\*.*?(?:\*/|\Z) |//(?:[^\\\n]|\\.)*                                   # comments
    |(?<![A-Za-z0-9_])(?:u8|[uUL])?R"(?P<end>[^()\\\s]{0,16})\(.*?(?:\)(?P=end)"|\Z)
    |"(?:[^"\\\n]|\\.)*"? |'(?:[^'\\\n]|\\.)*'?
    |\b\d(?:'?\w)*                                                          # numbers may contain quotes
    """, re.M | re.S | re.X)


def _path_of(header, directories):
    paths = [os.path.join(directory, header) for directory in directories]
    return next((path for path in paths if os.path.isfile(path)), None)


def _inlined(source, name, directories, above):
    """`above` are the headers that include this source."""
    pieces, end, line, at, once = [], 0, 1, 0, False
    for found in _TOKEN.finditer(source):
        line, at = line + source.count("\n", at, found.start()), found.start()
        path = found["header"] and _path_of(found["header"], directories)
        if found["once"] and above:
            once, text = True, ""
        elif path and path not in above:
            text = f'#line 1 "{found["header"]}"\n{_header(path, directories, above)}\n#line {line} "{name}"\n'
        else:
            continue
        pieces += [source[end:found.start()], text]
        end = found.end()
    text = "".join(pieces) + source[end:]
    # The compiler would take a #pragma once for that of the whole source.
    guard = "GPUGLUE_ONCE_" + re.sub(r"\W", "_", name)
    return f'#ifndef {guard}\n#define {guard}\n#line 1 "{name}"\n{text}\n#endif' if once else text


def _header(path, directories, above):
    with open(path, encoding="utf-8") as file:
        return _inlined(_DEAD.sub("", file.read()), os.path.basename(path), directories, (*above, path))
