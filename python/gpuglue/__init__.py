"""gpuglue: one package to drive NVIDIA, AMD and Intel GPUs, or none.

Importing it loads no vendor library and no NumPy; ``python -m gpuglue`` lists the backends and devices. The examples
of the docstrings assume ``import gpuglue as gg`` and ``import numpy as np``.
"""

import atexit as _atexit
import os as _os


def _own_library(runpath: str) -> "str | None":
    """The path of this package's libgpuglue, which the loader would load without LD_LIBRARY_PATH."""
    origin = _os.path.dirname(_os.path.realpath(_core.__file__))
    for directory in filter(None, runpath.split(":")):
        path = _os.path.join(directory.replace("$ORIGIN", origin), "libgpuglue.so")
        if _os.path.exists(path):
            return _os.path.normpath(path)
    return None  # a system's package: wherever the loader finds it


def _check_library() -> None:
    """Raise if the loader took another package's libgpuglue from LD_LIBRARY_PATH."""
    loaded, version, runpath, wanted = _core._library()
    own = _own_library(runpath)
    if own and loaded and not _os.path.samefile(own, loaded):
        searched = any(_os.path.samefile(path, loaded) for path in _foreign_libraries())
        advice = _advice if searched else "another copy of gpuglue was imported in this process, which can use only one"
        raise ImportError(f"gpuglue needs its own {own}, but the dynamic loader found {loaded}: {advice}")
    if version != wanted:
        raise ImportError(f"gpuglue {wanted} needs a libgpuglue of the same version, but {loaded} has version {version}")


def _foreign_libraries() -> "list[str]":
    directories = filter(None, _os.environ.get("LD_LIBRARY_PATH", "").split(":"))
    paths = (_os.path.join(directory, "libgpuglue.so") for directory in directories)
    return [path for path in paths if _os.path.exists(path)]


_advice = "remove that directory from LD_LIBRARY_PATH"

try:
    from . import _core
except ImportError as _error:
    _foreign = _foreign_libraries()
    if not _os.path.isdir(_os.path.dirname(__file__)):
        raise ImportError(
            f"gpuglue cannot be imported from {_os.path.dirname(__file__)}: its extension module must be a file. "
            "Install gpuglue, or unpack the archive"
        ) from None
    if not _foreign:
        raise
    raise ImportError(
        f"gpuglue's extension module in {_os.path.dirname(__file__)} needs its own libgpuglue, but the "
        f"dynamic loader found {_foreign[0]}: {_advice} ({_error})"
    ) from _error

_check_library()
_atexit.register(_core._shutdown)

from ._core import *  # noqa: E402,F403
from ._core import __version__  # noqa: E402,F401

TYPE_CHECKING = False  # as in typing, whose import would take longer than all else here
if TYPE_CHECKING:
    from ._communicator import Communicator as Communicator
    from ._compile import CompileError as CompileError
    from ._compile import Image as Image
    from ._compile import compile as compile
    from ._concatenate import concatenate as concatenate
    from ._concatenate import stack as stack
    from ._graph import capture as capture
    from ._trace import Trace as Trace
    from ._trace import range as range
    from ._trace import trace as trace


def get_include() -> str:
    """Return the directory of the headers, for a compiler's -I.

    Returns
    -------
    str
        The directory that has gpuglue/gpuglue.h and gpuglue/python.h.

    See Also
    --------
    get_library_dir : The directory of the library.

    Examples
    --------
    >>> gg.get_include()
    '...gpuglue/include'
    """
    return _os.path.join(_os.path.dirname(__file__), "include")


def get_library_dir() -> str:
    """Return the directory of libgpuglue.so, for a linker's -L.

    Extensions of Python link nothing: see gpuglue/python.h.

    Returns
    -------
    str
        The directory.

    See Also
    --------
    get_include : The directory of the headers.

    Examples
    --------
    >>> gg.get_library_dir()
    '...gpuglue/_lib'
    """
    return _os.path.join(_os.path.dirname(__file__), "_lib")


def __dir__() -> "list[str]":
    return sorted({*globals(), "Communicator", "compile", "CompileError", "Image", "concatenate", "stack", "capture", "Trace", "range", "trace"} - {"TYPE_CHECKING"})


if not TYPE_CHECKING:  # a type checker would accept any name because of this function

    def __getattr__(name):
        """Names that need NumPy, and the compilers, are loaded on first use."""
        if name in ("concatenate", "stack"):
            from . import _concatenate

            globals().update(concatenate=_concatenate.concatenate, stack=_concatenate.stack)
            return globals()[name]
        if name == "Communicator":
            from . import _communicator

            return _communicator.Communicator
        if name in ("compile", "CompileError", "Image"):
            from . import _compile

            return getattr(_compile, name)
        if name == "capture":
            from . import _graph

            return _graph.capture
        if name in ("Trace", "range", "trace"):
            from . import _trace

            return getattr(_trace, name)
        from ._foreign_names import OURS

        hint = f": use {OURS[name]}" if name in OURS else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
