"""The cache on disk: which entries are used, and which are not stored."""

import os
import warnings
from pathlib import Path

import pytest
from compilers import ARCH, SMALL, entries, needs_compiler, needs_nvrtc, only_once, own_cache  # noqa: F401

import gpuglue as gg
from gpuglue import _cache, _host_compiler, _rtc


def test_an_entry_whose_time_cannot_be_updated_is_used(own_cache, monkeypatch):
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


def test_an_entry_of_json_that_is_nested_too_deeply_is_absent(own_cache):
    _cache.store("name", {}, b"body")
    [entry] = entries(own_cache)
    entry.write_bytes(b"[" * 100000 + b"\nbody")
    assert _cache.load("name") is None


@pytest.mark.parametrize("mode", [0o770, 0o703, 0o777])
def test_a_directory_that_others_can_write_to_is_not_used(own_cache, mode):
    _cache.store("name", {}, b"body")
    own_cache.chmod(mode)
    with pytest.warns(RuntimeWarning, match=rf"cache of compiled images is not used: {own_cache}: .*\(mode {mode:04o}\)"):
        assert _cache.load("name") is None
    with pytest.warns(RuntimeWarning, match="GPUGLUE_CACHE_DIR"):
        _cache.store("other", {}, b"body")
    own_cache.chmod(0o755)
    assert _cache.load("name") == ({}, b"body") and len(entries(own_cache)) == 1


@pytest.mark.parametrize("act", ["store", "trim", "discard"])
def test_a_directory_that_takes_the_place_of_the_examined_one_is_not_written(own_cache, monkeypatch, act):
    _cache.store("name", {}, b"body")
    examine = _cache._distrusted

    def replace(state):
        monkeypatch.setattr(_cache, "_distrusted", examine)
        own_cache.rename(own_cache.with_name("examined"))
        own_cache.mkdir()
        (own_cache / "name.image").write_bytes(b"another's")
        return examine(state)

    monkeypatch.setattr(_cache, "_distrusted", replace)
    if act == "trim":
        monkeypatch.setenv("GPUGLUE_CACHE_SIZE", "0")
    if act == "discard":
        _cache.discard("name")
    else:
        _cache.store("other", {}, b"body")
    assert [path.read_bytes() for path in own_cache.iterdir()] == [b"another's"]
    there = sorted(path.name for path in own_cache.with_name("examined").iterdir())
    assert there == {"store": ["name.image", "other.image"], "trim": [], "discard": []}[act]


@pytest.mark.parametrize("value", ["abc", "-1", "1e9"])
def test_a_size_that_is_not_a_number_of_bytes_is_ignored_with_a_warning(own_cache, monkeypatch, value):
    monkeypatch.setenv("GPUGLUE_CACHE_SIZE", value)
    with pytest.warns(RuntimeWarning, match=f"GPUGLUE_CACHE_SIZE={value} is ignored: expected a number of bytes"):
        _cache.store("name", {}, b"body")
    assert _cache.load("name") == ({}, b"body")


@pytest.mark.parametrize("value", ["nope", "false", "00"])
def test_a_switch_that_is_not_known_leaves_the_cache_on_with_one_warning(own_cache, monkeypatch, value):
    monkeypatch.setenv("GPUGLUE_CACHE", value)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        _cache.store("name", {}, b"body")
        assert _cache.load("name") == ({}, b"body")
    assert [str(one.message) for one in caught] == [f"GPUGLUE_CACHE={value} is ignored: expected 0, off or no, or 1, on or yes"]


@pytest.mark.parametrize("value, on", [("0", False), ("OFF", False), ("no", False), ("", True), ("1", True), ("On", True), ("yes", True)])
def test_the_cache_is_switched_off_and_on_without_a_warning(own_cache, monkeypatch, value, on):
    monkeypatch.setenv("GPUGLUE_CACHE", value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _cache.directory() == (str(own_cache) if on else None)


def test_a_relative_directory_is_ignored_with_a_warning(own_cache, monkeypatch, tmp_path):
    """Else each directory in which the program starts would get a cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GPUGLUE_CACHE_DIR", "relative")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    with pytest.warns(RuntimeWarning, match="GPUGLUE_CACHE_DIR=relative is ignored: expected an absolute path"):
        _cache.store("name", {}, b"body")
    assert not Path("relative").exists() and Path(tmp_path, "home/gpuglue/name.image").exists()


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_an_entry_that_others_can_write_to_is_absent_and_written_again(own_cache, mode):
    _cache.store("name", {}, b"body")
    [entry] = entries(own_cache)
    entry.chmod(mode)
    assert _cache.load("name") is None
    _cache.store("name", {}, b"body")
    assert _cache.load("name") == ({}, b"body")


@pytest.mark.parametrize("what", ["directory", "entry"])
def test_what_belongs_to_another_user_is_not_used(own_cache, what):
    if os.geteuid():
        pytest.skip("only root can give a file to another user")
    _cache.store("name", {}, b"body")
    [entry] = entries(own_cache)
    os.chown(own_cache if what == "directory" else entry, 12345, -1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert _cache.load("name") is None
    assert bool(caught) == (what == "directory") and all("belongs to user 12345" in str(one.message) for one in caught)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("/etc/passwd", path), os.mkdir], ids=["a fifo", "a link", "a directory"])
def test_an_entry_that_is_not_a_file_is_absent(own_cache, make):
    own_cache.mkdir(mode=0o700)
    make(own_cache / "name.image")
    assert _cache.load("name") is None


@needs_compiler
@pytest.mark.parametrize("directive", ["incbin", "include"])
def test_a_file_that_the_assembler_reads_is_read_again(tmp_path, directive):
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
def test_a_source_that_uses_the_time_is_compiled_again(monkeypatch, name, arch, options):
    text = f'extern "C" __global__ void f(int *x) {{ *x = sizeof({name}); }}'
    gg.compile(text, arch=arch, options=options)
    monkeypatch.setattr(_rtc.Rtc, "compile", None)
    monkeypatch.setattr(_host_compiler, "preprocess", None)
    with pytest.raises(TypeError):  # the call of None
        gg.compile(text, arch=arch, options=options)
