"""gpuglue pycuda: a copy of PyCUDA's own Python files, which programs use after gpuglue.compat.install("pycuda").

They are taken from an sdist that the user has. Nothing is built, and nothing of it runs here."""

import contextlib
import errno
import json
import os
import re
import shutil

import gpuglue
from gpuglue.compat import _pycuda_copy

_TAKEN = re.compile(r"[^/]+/pycuda/((?:compyte/)?(\w+)\.py|cuda/[\w-]+\.hpp)")
_VERSION = re.compile(rb"^VERSION = \((\d+), *(\d+)", re.M)
_NEEDED = ("pytools", "mako", "typing_extensions")
_SDIST = "expected an sdist of PyCUDA from 2022 on, which `pip download --no-deps --no-binary pycuda pycuda` downloads"


def add_options(parser):
    parser.add_argument("action", nargs="?", choices=("add", "remove"), help="without it the command only shows the copy")
    parser.add_argument("file", nargs="?", help="with add: an sdist, such as pycuda-2026.1.tar.gz; it replaces an older copy")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(refuse=parser.error)


def main_of(options):
    if (options.action == "add") != (options.file is not None):
        options.refuse("expected `gpuglue pycuda add FILE`, `gpuglue pycuda remove`, or `gpuglue pycuda`")
    try:
        if options.action == "add":
            add(options.file, _pycuda_copy.place())
        elif options.action == "remove":
            remove(_pycuda_copy.place())
        show(options)
    except OSError as error:
        raise gpuglue.Error(f"pycuda {options.action or ''}: {error}") from None
    return 0


def show(options):
    from importlib.util import find_spec  # here and below: only what a call needs, as every command imports this file

    where = _pycuda_copy.place()
    known = {"directory": where, "version": version_in(where), "missing": [name for name in _NEEDED if find_spec(name) is None]}
    if options.json:
        print(json.dumps(known, indent=2))
    elif not known["version"]:
        print(f"there is no copy of PyCUDA in {where}")
    else:
        print(f"PyCUDA {known['version']} in {where}")
        if known["missing"]:
            print(f"it needs packages that are not installed: pip install {' '.join(known['missing'])}")


def version_in(where):
    """Such as '2026.1', or None where there is no copy."""
    try:
        with open(os.path.join(where, "__init__.py"), "rb") as file:
            return version_of(file.read())
    except FileNotFoundError:
        return None


def version_of(source):
    found = _VERSION.search(source)
    return ".".join(part.decode() for part in found.groups()) if found else None


def add(path, where):
    """Replace the copy by the files of an sdist."""
    import tempfile

    files = files_of(path)
    version = version_of(files.get("__init__.py", b""))
    if not version or int(version.partition(".")[0]) < 2022:
        raise gpuglue.InvalidArgumentError(f"{path} has {f'PyCUDA {version}' if version else 'no PyCUDA'}: {_SDIST}")
    new = tempfile.mkdtemp(dir=parent_of(where))  # others cannot write to it
    try:
        for name, data in files.items():
            path = os.path.join(new, name)
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(data)
            # Python would make it with the permissions that the umask leaves.
            os.makedirs(os.path.join(os.path.dirname(path), "__pycache__"), mode=0o700, exist_ok=True)
        _put(new, where)
    finally:
        shutil.rmtree(new, ignore_errors=True)  # it is there after an error only


def _put(new, where):
    while True:  # beside another such command, whose copy may be there by now: the last one remains
        remove(where)
        try:
            return os.rename(new, where)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise


def files_of(path):
    """The files that are taken, by their names in the copy. No name of the archive is used for a path."""
    import tarfile

    files = {}
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                found = _TAKEN.fullmatch(member.name)
                if found and member.isreg() and found[2] not in _pycuda_copy.OURS:
                    files[found[1]] = archive.extractfile(member).read()
    except Exception as error:  # for a damaged file each compression has errors of its own
        if isinstance(error, OSError) and error.errno:
            raise
        raise gpuglue.InvalidArgumentError(f"{path} cannot be read as an archive: {_SDIST}") from None
    return files


def remove(where):
    """Remove the copy, if there is one: it is renamed first, so that a program that starts finds all of it or nothing."""
    import tempfile

    with tempfile.TemporaryDirectory(dir=parent_of(where)) as old:
        with contextlib.suppress(FileNotFoundError):  # also where another command has just removed it
            os.rename(where, os.path.join(old, "pycuda"))


def parent_of(where):
    os.makedirs(os.path.dirname(where), mode=0o700, exist_ok=True)
    return os.path.dirname(where)
