"""Compiled images on disk: by the hash of all that went into them, written in one step, capped in size.

GPUGLUE_CACHE_DIR says where (else $XDG_CACHE_HOME or ~/.cache, then gpuglue), GPUGLUE_CACHE_SIZE how many
bytes (256 MiB), GPUGLUE_CACHE=0 switches it off. A file is nameless until it is whole (O_TMPFILE), so a
process that is killed leaves nothing; two that write the same at once both succeed. Where the file system
cannot do that, or the folder cannot be written, nothing is kept."""

import contextlib
import hashlib
import json
import os

DEFAULT_SIZE = 256 << 20
SUFFIX = ".image"


def folder():
    """Where entries lie; None: the cache is off."""
    if os.environ.get("GPUGLUE_CACHE", "").lower() in ("0", "off", "no"):
        return None
    given = os.environ.get("GPUGLUE_CACHE_DIR")
    if given:
        return given
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "gpuglue") if os.path.isabs(base) else None


def key(*parts):
    """The name of an entry. Each part is told apart from the next by its length."""
    digest = hashlib.sha256(b"gpuglue image 2")
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(data) + data)
    return digest.hexdigest()


def load(name):
    """(facts, bytes) or None. What is damaged is taken for absent."""
    where = folder()
    if not where:
        return None
    path = os.path.join(where, name + SUFFIX)
    try:
        with open(path, "rb") as file:
            head, _, body = file.read().partition(b"\n")
        facts = json.loads(head)
        if facts.pop("sha256") != _digest(facts, body):
            return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    with contextlib.suppress(OSError):  # another's entry, or on what can only be read, is as good
        os.utime(path)  # for the order in which entries go
    return facts, body


def _digest(facts, body):
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode() + b"\n" + body).hexdigest()


def store(name, facts, body):
    """Keep an entry; a failure to do so is nobody's business."""
    where = folder()
    if not where:
        return
    head = json.dumps({**facts, "sha256": _digest(facts, body)}).encode()
    try:
        os.makedirs(where, mode=0o700, exist_ok=True)
        _link(where, name + SUFFIX, head + b"\n" + body)
        _trim(where)
    except (OSError, AttributeError):
        pass


def _link(where, name, data):
    folder_handle = os.open(where, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        handle = os.open(where, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        try:
            with open(handle, "wb", closefd=False) as file:
                file.write(data)
            _give_name(folder_handle, handle, where, name)
        finally:
            os.close(handle)
    finally:
        os.close(folder_handle)


def _give_name(folder_handle, handle, where, name):
    source = f"/proc/self/fd/{handle}"  # followed only in the call that takes folders
    try:
        os.link(source, name, src_dir_fd=folder_handle, dst_dir_fd=folder_handle)
    except FileExistsError:  # another process was first, or the one that is there is damaged
        if load(name.removesuffix(SUFFIX)) is None:
            os.unlink(name, dir_fd=folder_handle)
            os.link(source, name, src_dir_fd=folder_handle, dst_dir_fd=folder_handle)


def _limit():
    try:
        return int(os.environ.get("GPUGLUE_CACHE_SIZE") or DEFAULT_SIZE)
    except ValueError:
        return DEFAULT_SIZE


def _trim(where):
    """Drop what was not used for longest, until the rest fits."""
    entries = []
    for entry in os.scandir(where):
        if entry.name.endswith(SUFFIX):
            try:
                state = entry.stat()
            except FileNotFoundError:
                continue
            entries.append((state.st_mtime_ns, state.st_size, entry.path))
    total, limit = sum(size for _, size, _ in entries), _limit()
    for _, size, path in sorted(entries):
        if total <= limit:
            break
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        total -= size
