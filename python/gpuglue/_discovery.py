"""What this Python environment adds to the search for backends: plugins of other packages, and directories
of the wheels of torch, AMD and NVIDIA. None of these is imported, except a plugin's package whose entry point
names a function."""

import _thread
import os

from . import _core

GROUP = "gpuglue.backends"

_lock = _thread.RLock()  # a plugin's entry point may itself call gpuglue
_begun = _done = False


def prepare():
    """Pass them to the core, once, before its first search for backends. After an interrupt the next call repeats it."""
    global _begun, _done
    with _lock:
        if _begun or _done:  # begun: by an outer call of this thread
            return
        _begun = True
        try:
            for directory in library_directories():
                _core._add_library_directory(directory)
            for name, value, find in plugin_entries():
                register(name, value, find)
            _done = True
        finally:
            _begun = False


def plugin_entries():
    """(name, value, function that gives the plugin's path) of each entry point. Another package's broken
    metadata must not disable the backends."""
    from importlib.metadata import entry_points

    try:
        entries = list(entry_points(group=GROUP))
    except Exception as error:
        return [("entry_points", GROUP, lambda error=error: raises(error))]
    return [(entry.name, entry.value, lambda entry=entry: plugin_of(entry)) for entry in entries]


def raises(error):
    raise error


def register(name, value, find):
    """Register the plugin, or have the core report why it cannot be loaded: a broken one never raises here."""
    try:
        _core._register_plugin(find())
    except (Exception, SystemExit) as error:
        reason = f"entry point {name!r} = {value!r} of {GROUP} failed: {type(error).__name__}: {error}"
        _core._report_plugin_error(*(text.replace("\0", "?") for text in (name, reason)))


def plugin_of(entry):
    """`package` means gpuglue_<name>.so in the package's directory, which is not imported. `package:function` is
    a function that returns the plugin's absolute path."""
    if entry.attr:
        return os.fsdecode(entry.load()())
    directories = package_directories(entry.module)
    paths = [os.path.join(directory, f"gpuglue_{entry.name}.so") for directory in directories]
    found = [path for path in paths if os.path.exists(path)]
    if found:
        return found[0]
    looked = f"there is no {' nor '.join(paths)}" if paths else f"there is no package {entry.module!r}"
    raise FileNotFoundError(f"{looked}; reinstall the package that declares this entry point")


def library_directories():
    """The existing library directories of torch's, AMD's and NVIDIA's wheels."""
    for package in ("torch", "_rocm_sdk_core"):
        for directory in package_directories(package):
            yield from existing(os.path.join(directory, "lib"))
    for directory in package_directories("nvidia"):
        for name in names_in(directory):
            yield from existing(os.path.join(directory, name, "lib"))


def package_directories(name):
    """The directories of a package, without importing it. Never the current directory, which may be untrusted."""
    from importlib.util import find_spec

    try:
        spec = find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return []
    locations = (spec.submodule_search_locations if spec else None) or []
    try:
        here = os.getcwd()
    except OSError:  # it was removed, so it contains nothing
        here, locations = None, [directory for directory in locations if os.path.isabs(directory)]
    directories = [os.path.abspath(directory) for directory in locations]
    return [directory for directory in directories if os.path.isdir(directory) and os.path.dirname(directory) != here]


def names_in(directory):
    try:
        return sorted(os.listdir(directory))
    except OSError:  # it may not be readable
        return []


def existing(directory):
    return [directory] if os.path.isdir(directory) else []
