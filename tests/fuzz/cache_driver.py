"""For fuzz_cache.c: the bytes of a cache entry through load() of _cache.py, without a file."""

import contextlib
import importlib.util
import json
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "python/gpuglue/_cache.py"
spec = importlib.util.spec_from_file_location("gpuglue_cache", SOURCE)
cache = importlib.util.module_from_spec(spec)
spec.loader.exec_module(cache)
cache.directory = lambda: "/"
cache._opened = lambda where: NO_DIRECTORY
cache._read = lambda opened, name: given
NO_DIRECTORY = contextlib.nullcontext(0)
given = b""


def load(data):
    global given
    given = data
    return cache.load("entry")


def sealed(data):
    """The entry of these bytes as store() would write it; None if they are not one."""
    head, _, body = data.partition(b"\n")
    try:
        facts = json.loads(head)
    except (ValueError, RecursionError):
        return None
    if not isinstance(facts, dict):
        return None
    facts.pop("sha256", None)
    return facts, body, json.dumps({**facts, "sha256": cache._digest(facts, body)}).encode() + b"\n" + body


def check_sealed(data):
    entry = sealed(data)
    if entry is not None:
        facts, body, whole = entry
        assert repr(load(whole)) == repr((facts, body)), (whole, load(whole))  # not ==: NaN differs from itself
        assert load(whole + b"x") is None


def check(data):
    """With an odd first byte the entry gets a correct digest, and must be returned; otherwise it must not be, unless
    its digest is correct."""
    if data[:1] and data[0] % 2:
        return check_sealed(data[1:])
    found = load(data[1:])
    if found is not None:
        assert cache._digest(*found) == json.loads(data[1:].partition(b"\n")[0])["sha256"]
