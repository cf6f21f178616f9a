"""Shared by the tests of compile(): the available compilers, and a cache for each test."""

import os
import platform

import pytest

from gpuglue import _host_compiler, _rtc

ARCH = platform.machine()
SMALL = 'extern "C" __global__ void f(int *x) { *x = %d; }'


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUGLUE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(autouse=True)
def only_once(request):
    """Without a device, compilation does not depend on the backend."""
    if os.environ["GPUGLUE_BACKEND"] != "host" and not {"device", "backend"} & set(request.fixturenames):
        pytest.skip("needs no device, so it runs on host only")


def has_nvrtc():
    try:
        return bool(_rtc.nvrtc.library())
    except LookupError:
        return False


def has_hiprtc():
    try:
        return bool(_rtc.hiprtc.library())
    except LookupError:
        return False


def has_host_compiler():
    try:
        return bool(_host_compiler.find())
    except LookupError:
        return False


needs_nvrtc = pytest.mark.skipif(not has_nvrtc(), reason="NVRTC is not on this machine")
needs_compiler = pytest.mark.skipif(not has_host_compiler(), reason="no C++ compiler is on this machine")


def entries(directory):
    return sorted(directory.iterdir()) if directory.exists() else []
