"""gpuglue: one package to drive NVIDIA, AMD and Intel GPUs, or none.

Importing it loads no vendor library and no NumPy; ``python -m gpuglue`` shows what there is.
"""

import atexit as _atexit
import os as _os


def _own_library(runpath: str) -> "str | None":
    """Where this package's libgpuglue is: what the loader would take without LD_LIBRARY_PATH."""
    origin = _os.path.dirname(_os.path.realpath(_core.__file__))
    for folder in filter(None, runpath.split(":")):
        path = _os.path.join(folder.replace("$ORIGIN", origin), "libgpuglue.so")
        if _os.path.exists(path):
            return _os.path.normpath(path)
    return None  # a system's package: wherever the loader finds it


def _check_library() -> None:
    """Another package's libgpuglue on LD_LIBRARY_PATH would be loaded instead of ours."""
    loaded, version, runpath, wanted = _core._library()
    own = _own_library(runpath)
    if own and loaded and not _os.path.samefile(own, loaded):
        raise ImportError(f"gpuglue needs its own {own}, but the loader took {loaded}: {_advice}")
    if version != wanted:
        raise ImportError(f"gpuglue {wanted} was built for another version than {loaded} ({version})")


def _foreign_libraries() -> "list[str]":
    folders = filter(None, _os.environ.get("LD_LIBRARY_PATH", "").split(":"))
    paths = (_os.path.join(folder, "libgpuglue.so") for folder in folders)
    return [path for path in paths if _os.path.exists(path)]


_advice = "take that folder off LD_LIBRARY_PATH"

try:
    from . import _core
except ImportError as _error:
    _foreign = _foreign_libraries()
    if not _foreign:
        raise
    raise ImportError(
        f"gpuglue's compiled half in {_os.path.dirname(__file__)} needs its own libgpuglue, but the "
        f"loader took {_foreign[0]}: {_advice} ({_error})"
    ) from _error

_check_library()
_atexit.register(_core._shutdown)

from ._core import *  # noqa: E402,F403
from ._core import __version__  # noqa: E402,F401

TYPE_CHECKING = False  # what typing calls so; importing it would cost more than all else here
if TYPE_CHECKING:
    from ._compile import CompileError as CompileError
    from ._compile import Image as Image
    from ._compile import compile as compile
    from ._join import concatenate as concatenate
    from ._join import stack as stack


def get_include() -> str:
    """The folder of gpuglue/gpuglue.h and gpuglue/python.h, for a compiler's -I."""
    return _os.path.join(_os.path.dirname(__file__), "include")


def get_library_dir() -> str:
    """The folder of libgpuglue.so, for a linker's -L; extensions of Python need none (gpuglue/python.h)."""
    return _os.path.join(_os.path.dirname(__file__), "_lib")


def __getattr__(name: str) -> object:
    """What needs NumPy to be defined, and the compilers, are loaded when they are first asked for."""
    if name in ("concatenate", "stack"):
        from . import _join

        globals().update(concatenate=_join.concatenate, stack=_join.stack)
        return globals()[name]
    if name in ("compile", "CompileError", "Image"):
        from . import _compile

        return getattr(_compile, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
