"""Arrays of the host backend in kernels of warp on the CPU. tests/python/test_with_compilers.py has its kernels on a GPU."""

import gpuglue as gg
import numpy as np
import pytest

warp = pytest.importorskip("warp")


@pytest.fixture(scope="module", autouse=True)
def started():
    warp.config.quiet = True
    warp.init()


def test_a_kernel_of_warp_changes_an_array_in_place(device):
    @warp.kernel
    def twice(a: warp.array(dtype=float)):
        i = warp.tid()
        a[i] = a[i] * 2.0

    array = gg.arange(1000, dtype="f4", device=device)
    view = warp.from_dlpack(array)
    assert view.ptr == array.ptr
    warp.launch(twice, dim=1000, inputs=[view], device="cpu")
    assert (array.get() == 2 * np.arange(1000)).all()


def test_an_array_of_warp_is_imported_without_a_copy(device):
    theirs = warp.array(np.arange(12, dtype=np.float32).reshape(3, 4), device="cpu")
    array = gg.from_dlpack(theirs)
    assert array.ptr == theirs.ptr and (array.get() == theirs.numpy()).all()
    array.fill(7)
    gg.synchronize(device)
    assert (theirs.numpy() == 7).all()
