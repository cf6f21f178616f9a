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


@needs_compiler
@pytest.mark.parametrize("directive", ["incbin", "include"])
def test_a_file_that_the_assembler_reads_is_read_anew(tmp_path, directive):
    images = []
    for value in (3, 4):
        (tmp_path / "data").write_text(f".byte {value}\n")
        text = f'asm(".pushsection .rodata; .{directive} \\"{tmp_path}/data\\"; .popsection");'
        images.append(gg.compile(f"{text}\n{SMALL % 1}", arch=ARCH))
    assert images[0] != images[1]


@pytest.mark.parametrize("name, arch, options", [
    pytest.param("__DATE__", "sm_90", [], marks=needs_nvrtc),
    pytest.param("__TIME__", "sm_90", [], marks=needs_nvrtc),
    pytest.param("NOW", "sm_90", ["-DNOW=__TIME__"], marks=needs_nvrtc),
    pytest.param("__DATE__", ARCH, [], marks=needs_compiler),
    pytest.param("__TIME__", ARCH, [], marks=needs_compiler),
    pytest.param("__TIMESTAMP__", ARCH, [], marks=needs_compiler),
    pytest.param("NOW", ARCH, ["-DNOW=__TIME__"], marks=needs_compiler)])
def test_a_source_that_asks_for_the_time_is_compiled_anew(monkeypatch, name, arch, options):
    text = f'extern "C" __global__ void f(int *x) {{ *x = sizeof({name}); }}'
    gg.compile(text, arch=arch, options=options)
    monkeypatch.setattr(_rtc.Rtc, "compile", None)
    monkeypatch.setattr(_host_compiler, "preprocess", None)
    with pytest.raises(TypeError):  # of the call of what is not there
        gg.compile(text, arch=arch, options=options)
