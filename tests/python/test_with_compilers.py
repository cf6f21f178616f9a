"""Kernels that other packages compile: they take gpuglue's arrays and streams, and gpuglue loads what they compiled. On a real
device. The packages' launches of kernels in CUDA C++ and of numba are in test_with_protocols.py."""

import pytest
from with_cuda import beside, missing


def runner(library):
    @pytest.fixture
    def run(device):
        reason = missing(library, device)
        if reason:
            pytest.skip(reason)
        return beside(library)

    return run


with_cupy, with_numba, with_triton = runner("cupy"), runner("numba"), runner("triton")
with_warp, with_compute, with_tile = runner("warp"), runner("cuda.compute"), runner("cuda.tile")

# ours: a stream of gpuglue; array: 0, 1, 2, …, which a kernel doubles.
ARRAY = """
ours = gg.Stream("cuda:0", nonblocking=True)
array = gg.arange(1000, dtype="f4", device="cuda:0"); gg.synchronize("cuda:0")
def check():
    array.record_use(ours)
    with gg.Stream("cuda:0", nonblocking=True):
        assert (array.get() == 2 * np.arange(1000)).all()
"""


@pytest.mark.parametrize("arch", [None, "the device's"])
def test_gpuglue_launches_what_cupy_compiled(with_cupy, arch):
    with_cupy(ARRAY + f"""
from cupy.cuda.compiler import compile_using_nvrtc
source = 'extern "C" __global__ void twice(float *a, int n) {{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] *= 2; }}'
image, *_ = compile_using_nvrtc(source{", arch=gg.Device('cuda:0').arch.removeprefix('sm_')" if arch else ""})
kernel = gg.Module(image if isinstance(image, bytes) else image.encode(), "cuda:0")["twice"]
kernel(array, np.int32(1000), grid=4, block=256, stream=ours)
check()
""")


def test_a_module_of_cupy_takes_a_gpuarray(with_cupy):
    with_cupy(ARRAY + """
module = cupy.RawModule(code='template <class T> __global__ void twice(T *a, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; '
                             'if (i < n) a[i] *= 2; }', name_expressions=["twice<float>"])
with cupy.cuda.ExternalStream(ours.handle):
    module.get_function("twice<float>")((4,), (256,), (cupy.asarray(array), np.int32(1000)))
check()
""")


def test_gpuglue_launches_what_numba_compiled(with_numba):
    with_numba(ARRAY + """
from numba import cuda as nc, types
def twice(a, n):
    i = nc.grid(1)
    if i < n: a[i] *= 2
code, _ = nc.compile_ptx(twice, types.void(types.CPointer(types.float32), types.int32))
module = gg.Module(code.encode() if isinstance(code, str) else code, "cuda:0")
(name,) = module.kernels
module[name](array, np.int32(1000), grid=4, block=256, stream=ours)
check()
""")


TRITON = """
import importlib.util, pathlib, tempfile
source = '''
import triton
import triton.language as tl
@triton.jit
def twice(a, n, SIZE: tl.constexpr):
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(a + at, tl.load(a + at, at < n) * 2, at < n)
'''
path = pathlib.Path(tempfile.mkdtemp(), "kernels.py"); path.write_text(source)
spec = importlib.util.spec_from_file_location("kernels", path); kernels = importlib.util.module_from_spec(spec); spec.loader.exec_module(kernels)
tensor = torch.from_dlpack(array)
assert tensor.data_ptr() == array.ptr
"""


def test_a_kernel_of_triton_takes_a_gpuarray_and_runs_on_its_stream(with_triton):
    with_triton(ARRAY + TRITON + """
with torch.cuda.stream(torch.cuda.ExternalStream(ours.handle)):
    kernels.twice[(4,)](tensor, 1000, SIZE=256)
check()
""")


def test_gpuglue_loads_what_triton_compiled(with_triton):
    with_triton(ARRAY + TRITON + """
with torch.cuda.stream(torch.cuda.ExternalStream(ours.handle)):
    compiled = kernels.twice[(4,)](tensor, 1000, SIZE=256)
check()
module = gg.Module(compiled.asm["cubin"], "cuda:0")
assert "twice" in module and module["twice"].name == "twice"
""")


def test_a_kernel_of_warp_takes_a_gpuarray_and_runs_on_its_stream(with_warp):
    with_warp(ARRAY + """
import importlib.util, pathlib, tempfile
path = pathlib.Path(tempfile.mkdtemp(), "kernels.py")
path.write_text('''
import warp
@warp.kernel
def twice(a: warp.array(dtype=float)):
    i = warp.tid()
    a[i] = a[i] * 2.0
''')
spec = importlib.util.spec_from_file_location("kernels", path); kernels = importlib.util.module_from_spec(spec); spec.loader.exec_module(kernels)
theirs = warp.Stream("cuda:0", cuda_stream=ours.handle)
view = warp.from_dlpack(array)
assert view.ptr == array.ptr
warp.launch(kernels.twice, dim=1000, inputs=[view], device="cuda:0", stream=theirs)
check()
""")


def test_an_algorithm_of_cuda_compute_takes_gpuarrays_and_a_stream(with_compute):
    with_compute(ARRAY + """
import cuda.compute as cc
total = gg.zeros(1, "f4", device="cuda:0"); gg.synchronize("cuda:0")
cc.reduce_into(d_in=array, d_out=total, num_items=1000, op=cc.OpKind.PLUS, h_init=np.zeros(1, "f4"), stream=ours)
total.record_use(ours); array.record_use(ours)
with gg.Stream("cuda:0", nonblocking=True):
    assert total.get()[0] == 499_500
""")


def test_a_kernel_of_cuda_tile_takes_a_gpuarray_and_runs_on_its_stream(with_tile):
    with_tile(ARRAY + """
import importlib.util, pathlib, tempfile
path = pathlib.Path(tempfile.mkdtemp(), "kernels.py")
path.write_text('''
import cuda.tile as ct
@ct.kernel
def twice(a, SIZE: ct.Constant[int]):
    at = ct.bid(0)
    ct.store(a, index=(at,), tile=ct.load(a, index=(at,), shape=(SIZE,)) * 2)
''')
spec = importlib.util.spec_from_file_location("kernels", path); kernels = importlib.util.module_from_spec(spec); spec.loader.exec_module(kernels)
import cuda.tile as ct
ct.launch(ours.handle, (8,), kernels.twice, (array, 128))
check()
""")
