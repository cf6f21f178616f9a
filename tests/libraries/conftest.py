"""Other libraries with the host backend; no GPU is needed."""

import os

import pytest

os.environ["GPUGLUE_BACKEND"] = "host"
os.environ.setdefault("JAX_PLATFORMS", "cpu")


@pytest.fixture(scope="session")
def device():
    import gpuglue as gg

    return gg.Device("host:0")
