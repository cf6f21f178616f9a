"""What this Python environment adds to the search for backends: plugins of other packages, and folders
of the vendors' wheels. Nothing of theirs is imported, but a plugin's package where its entry point names a
function."""

import _thread
import os

from . import _core

GROUP = "gpuglue.backends"

_lock = _thread.RLock()  # a plugin's entry point may itself call gpuglue
_begun = _done = False


def prepare():
    """Tell the core, once, before it first looks for backends. What is interrupted is begun again."""
    global _begun, _done
    with _lock:
        if _begun or _done:  # begun: by this thread, further out
            return
        _begun = True
        try:
            for directory in library_directories():
                _core._add_library_directory(directory)
            for name, value, find in announced():
                announce(name, value, find)
            _done = True
        finally:
            _begun = False


def announced():
    """(name, value, function that gives the plugin's path) of each entry point. Another package's broken
    metadata must not take the backends away."""
    from importlib.metadata import entry_points

    try:
        entries = list(entry_points(group=GROUP))
    except Exception as error:
        return [("entry_points", GROUP, lambda error=error: raises(error))]
    return [(entry.name, entry.value, lambda entry=entry: plugin_of(entry)) for entry in entries]


def raises(error):
    raise error


def announce(name, value, find):
    """Register the plugin, or have the core report why it cannot be had: listing never fails for it."""
    try:
        _core._register_plugin(find())
    except (Exception, SystemExit) as error:
        reason = f"entry point {name!r} = {value!r} of {GROUP} failed: {type(error).__name__}: {error}"
        _core._refuse_plugin(*(text.replace("\0", "?") for text in (name, reason)))


def plugin_of(entry):
    """`package` means gpuglue_<name>.so in the package's folder, which is not imported. `package:function` is
    a function that returns the plugin's absolute path."""
    if entry.attr:
        return os.fsdecode(entry.load()())
    folders = package_folders(entry.module)
    paths = [os.path.join(folder, f"gpuglue_{entry.name}.so") for folder in folders]
    found = [path for path in paths if os.path.exists(path)]
    if found:
        return found[0]
    looked = f"there is no {' nor '.join(paths)}" if paths else f"there is no package {entry.module!r}"
    raise FileNotFoundError(f"{looked}; reinstall the package that announces it")


def library_directories():
    """Folders of torch's, AMD's and NVIDIA's wheels that exist."""
    for package in ("torch", "_rocm_sdk_core"):
        for folder in package_folders(package):
            yield from existing(os.path.join(folder, "lib"))
    for folder in package_folders("nvidia"):
        for name in names_in(folder):
            yield from existing(os.path.join(folder, name, "lib"))


def package_folders(name):
    """Where a package lies, without importing it. Never in the current directory, where anybody's may."""
    from importlib.util import find_spec

    try:
        spec = find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return []
    locations = (spec.submodule_search_locations if spec else None) or []
    try:
        here = os.getcwd()
    except OSError:  # it was removed, and nothing lies in it
        here, locations = None, [folder for folder in locations if os.path.isabs(folder)]
    folders = [os.path.abspath(folder) for folder in locations]
    return [folder for folder in folders if os.path.isdir(folder) and os.path.dirname(folder) != here]


def names_in(folder):
    try:
        return sorted(os.listdir(folder))
    except OSError:  # others may not let us look
        return []


def existing(folder):
    return [folder] if os.path.isdir(folder) else []
