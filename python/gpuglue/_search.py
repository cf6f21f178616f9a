"""What this Python environment adds to the search for backends: plugins of other packages, and folders
of the vendors' wheels. Nothing of theirs is imported but the plugins' own entry points."""

import _thread
import os
import warnings

from . import _core

GROUP = "gpuglue.backends"

_lock = _thread.RLock()  # a plugin's entry point may itself call gpuglue
_begun = False


def prepare():
    """Tell the core, once, before it first looks for backends."""
    global _begun
    with _lock:
        if _begun:
            return
        _begun = True
        for directory in library_directories():
            _core._add_library_directory(directory)
        for path in plugins():
            _core._register_plugin(path)


def plugins():
    """Paths that entry points name: the value is a callable that returns the plugin's absolute path."""
    from importlib.metadata import entry_points

    for entry in entry_points(group=GROUP):
        try:
            yield os.fspath(entry.load()())
        except Exception as error:  # another package's failure must not take the others away
            warnings.warn(f"gpuglue: entry point {entry.name!r} of {GROUP} failed: {error!r}", stacklevel=2)


def library_directories():
    """Folders of torch's, AMD's and NVIDIA's wheels that exist."""
    for package in ("torch", "_rocm_sdk_core"):
        for folder in package_folders(package):
            yield from existing(os.path.join(folder, "lib"))
    for folder in package_folders("nvidia"):
        for name in sorted(os.listdir(folder)):
            yield from existing(os.path.join(folder, name, "lib"))


def package_folders(name):
    """Where a package lies, without importing it. Never in the current directory, where anybody's may."""
    from importlib.util import find_spec

    try:
        spec = find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return []
    locations = spec.submodule_search_locations if spec else None
    folders = [os.path.abspath(folder) for folder in locations or []]
    return [folder for folder in folders if os.path.isdir(folder) and os.path.dirname(folder) != os.getcwd()]


def existing(folder):
    return [folder] if os.path.isdir(folder) else []
