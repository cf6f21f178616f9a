"""The cache on disk: what is taken from it, and what is not laid there."""

import os

import pytest
from compilers import ARCH, SMALL, entries, needs_compiler, needs_nvrtc, only_once, own_cache  # noqa: F401

import gpuglue as gg
from gpuglue import _cache, _host_compiler, _rtc


def test_an_entry_that_cannot_be_touched_is_as_good(own_cache, monkeypatch):
    _cache.store("name", {"log": "words"}, b"body")

    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(os, "utime", refuse)
    assert _cache.load("name") == ({"log": "words"}, b"body")


@pytest.mark.parametrize("fact", ["words", "_Z1fv"])
def test_an_entry_whose_log_or_names_are_damaged_is_absent(own_cache, fact):
    _cache.store("name", {"log": "words", "names": {"f": "_Z1fv"}}, b"body")
    assert _cache.load("name")
    [entry] = entries(own_cache)
    entry.write_bytes(entry.read_bytes().replace(fact.encode(), fact.encode().swapcase()))
    assert _cache.load("name") is None


@pytest.mark.parametrize("head", [b"[]", b"1", b'"text"', b"{}", b"null"])
def test_an_entry_that_begins_with_other_json_is_absent(own_cache, head):
    _cache.store("name", {}, b"body")
    [entry] = entries(own_cache)
    entry.write_bytes(head + b"\nbody")
    assert _cache.load("name") is None
