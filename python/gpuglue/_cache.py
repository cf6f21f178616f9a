"""Compiled images on disk: by the hash of all that went into them, written in one step, capped in size.

GPUGLUE_CACHE_DIR is the directory (else $XDG_CACHE_HOME or ~/.cache, then gpuglue), GPUGLUE_CACHE_SIZE its size
in bytes (256 MiB), GPUGLUE_CACHE=0 switches it off; other values of these are ignored with a warning. A file has no name until it is complete
(O_TMPFILE), so a killed process leaves nothing; two that write the same entry at once both succeed. Where the
file system does not support that, or the directory is not writable, nothing is kept.

Entries are code. So the directory and each entry must belong to this user or to root, and others must not be able to
write to them; a directory that is otherwise is not used, with a warning. All access is relative to the descriptor of the
directory that was examined."""

import contextlib
import hashlib
import json
import os
import stat
import warnings

DEFAULT_SIZE = 256 << 20
SUFFIX = ".image"
OFF, ON = ("0", "off", "no"), ("", "1", "on", "yes")


def directory():
    """The directory of entries; None: the cache is off."""
    switch = os.environ.get("GPUGLUE_CACHE", "")
    if switch.lower() in OFF:
        return None
    if switch.lower() not in ON:
        _ignored("GPUGLUE_CACHE", switch, "0, off or no, or 1, on or yes")
    given = os.environ.get("GPUGLUE_CACHE_DIR")
    if given and os.path.isabs(given):
        return given
    if given:
        _ignored("GPUGLUE_CACHE_DIR", given, "an absolute path")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "gpuglue") if os.path.isabs(base) else None


def _ignored(name, value, expected):
    warnings.warn(f"{name}={value} is ignored: expected {expected}", RuntimeWarning)  # here, so that each text is shown once


def key(*parts):
    """The name of an entry. Each part is preceded by its length, so that parts cannot be confused."""
    digest = hashlib.sha256(b"gpuglue image 2")
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(data) + data)
    return digest.hexdigest()


def _distrusted(state):
    """Why others may have written there; "" if they cannot."""
    if state.st_uid not in (os.geteuid(), 0):
        return f"it belongs to user {state.st_uid}, this process runs as user {os.geteuid()}"
    mode = stat.S_IMODE(state.st_mode)
    return f"others can write to it (mode {mode:04o})" if mode & 0o022 else ""


@contextlib.contextmanager
def _opened(where):
    """A descriptor of the directory, if it can be trusted; else None."""
    handle = os.open(where, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        reason = _distrusted(os.fstat(handle))
        if reason:
            warnings.warn(f"the cache of compiled images is not used: {where}: {reason}. Make it yours alone "
                          f"(chmod go-w), or set GPUGLUE_CACHE_DIR to another directory", RuntimeWarning, stacklevel=2)
        yield None if reason else handle
    finally:
        os.close(handle)


def _read(opened, name):
    """The bytes of a file that can be trusted. What is examined is what is read: a descriptor."""
    handle = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=opened)
    with open(handle, "rb") as file:
        state = os.fstat(handle)
        if _distrusted(state) or not stat.S_ISREG(state.st_mode):
            raise PermissionError(name)
        data = file.read()
        with contextlib.suppress(OSError):  # root's entry, or a read-only file system, will do as well
            os.utime(handle)  # for the order of eviction
        return data


def load(name):
    """(facts, bytes) or None. A damaged entry counts as absent, as does one that others can write to."""
    where = directory()
    if not where:
        return None
    try:
        with _opened(where) as opened:
            return None if opened is None else _entry(_read(opened, name + SUFFIX))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _entry(data):
    head, _, body = data.partition(b"\n")
    facts = json.loads(head)
    return None if facts.pop("sha256") != _digest(facts, body) else (facts, body)


def _digest(facts, body):
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode() + b"\n" + body).hexdigest()


def store(name, facts, body):
    """Keep an entry; failures are ignored."""
    where = directory()
    if not where:
        return
    head = json.dumps({**facts, "sha256": _digest(facts, body)}).encode()
    try:
        os.makedirs(where, mode=0o700, exist_ok=True)
        with _opened(where) as opened:
            if opened is not None:
                _link(opened, name + SUFFIX, head + b"\n" + body)
                _trim(opened)
    except (OSError, AttributeError):
        pass


def discard(name):
    """Remove an entry; failures are ignored."""
    where = directory()
    try:
        if where:
            with _opened(where) as opened:
                if opened is not None:
                    os.unlink(name + SUFFIX, dir_fd=opened)
    except OSError:
        pass


def _link(opened, name, data):
    handle = os.open(".", os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600, dir_fd=opened)
    try:
        with open(handle, "wb", closefd=False) as file:
            file.write(data)
        _give_name(opened, handle, name)
    finally:
        os.close(handle)


def _give_name(opened, handle, name):
    source = f"/proc/self/fd/{handle}"  # only followed by the call that takes directories
    try:
        os.link(source, name, src_dir_fd=opened, dst_dir_fd=opened)
    except FileExistsError:  # another process was first, or the existing entry is damaged
        if load(name.removesuffix(SUFFIX)) is None:
            os.unlink(name, dir_fd=opened)
            os.link(source, name, src_dir_fd=opened, dst_dir_fd=opened)


def _limit():
    value = os.environ.get("GPUGLUE_CACHE_SIZE")
    if not value:
        return DEFAULT_SIZE
    if not (value.isascii() and value.isdigit()):
        _ignored("GPUGLUE_CACHE_SIZE", value, "a number of bytes")
        return DEFAULT_SIZE
    return int(value)


def _trim(opened):
    """Remove the least recently used entries until the rest fits."""
    entries = []
    for entry in os.scandir(opened):
        if entry.name.endswith(SUFFIX):
            try:
                state = entry.stat()
            except FileNotFoundError:
                continue
            entries.append((state.st_mtime_ns, state.st_size, entry.name))
    total, limit = sum(size for _, size, _ in entries), _limit()
    for _, size, name in sorted(entries):
        if total <= limit:
            break
        try:
            os.unlink(name, dir_fd=opened)
        except FileNotFoundError:
            pass
        total -= size
