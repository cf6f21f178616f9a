"""Kernels on the host backend: the blocks of a large grid on several threads of the system."""

import os
import platform
import subprocess

import numpy as np
import pytest
from compilers import ARCH, needs_compiler, only_once, own_cache  # noqa: F401
from conftest import nodes, run_python, succeeds

import gpuglue as gg

pytestmark = needs_compiler

# The address of a variable of each thread of the system identifies it. With `meet`, block 0 ends only after a block of another
# thread: its own thread alone would wait forever.
WHERE = """
__device__ int others;
thread_local char here;
__device__ unsigned long long first;
extern "C" __global__ void where(unsigned long long *threads, int meet)
{
    unsigned long long mine = (unsigned long long)&here;
    if (threadIdx.x == 0) threads[blockIdx.x] = mine;
    if (threadIdx.x == 0 && blockIdx.x == 0) {
        atomicExch(&first, mine);
        while (meet && !atomicAdd(&others, 0)) { }
    }
    unsigned long long began = atomicAdd(&first, 0ull);
    if (began && began != mine) atomicAdd(&others, 1);
}
"""
RUN = f"""
import gpuglue as gg, numpy as np
blocks = 4096
threads = gg.zeros(blocks, np.uint64, device="host")
gg.Module(gg.compile({WHERE!r}, arch={ARCH!r}), "host")["where"](threads, MEET, grid=blocks, block=64)
got = threads.get()
print(len(set(got.tolist())), int((got == 0).sum()), gg.Device("host").attributes["multiprocessors"])
"""

COUNT_THREADS = 'import gpuglue as gg; print(gg.Device("host").attributes["multiprocessors"])'


def code(meet):
    return RUN.replace("MEET", str(meet))


def blocks_of(threads, meet):
    """How many threads of the system ran blocks, how many blocks did not run, and the number of threads reported."""
    return succeeds(run_python(code(meet), GPUGLUE_HOST_THREADS=threads)).split()


def test_blocks_of_a_large_grid_run_on_several_threads():
    assert blocks_of("2", meet=1) == ["2", "0", "2"]


def test_one_thread_runs_all_blocks_if_that_is_wanted():
    assert blocks_of("1", meet=0) == ["1", "0", "1"]


def test_a_wrong_number_of_threads_is_reported_and_ignored():
    result = run_python(code(0), GPUGLUE_HOST_THREADS="many")
    assert result.returncode == 0 and "GPUGLUE_HOST_THREADS=many is not understood: expected a number" in result.stderr


def test_the_number_of_threads_respects_the_affinity():
    cpu = min(os.sched_getaffinity(0))
    pinned = f"import os; os.sched_setaffinity(0, {{{cpu}}})\n" + code(0)
    assert succeeds(run_python(pinned, GPUGLUE_HOST_THREADS=None)).split()[2] == "1"


# A thread of the program that is bound to one processor uses the device first.
BOUND = f"""
import os, threading
import gpuglue as gg, numpy as np
def first():
    os.sched_setaffinity(threading.get_native_id(), {{min(os.sched_getaffinity(0))}})
    blocks = gg.zeros(4096, np.uint64, device="host")
    gg.Module(gg.compile({WHERE!r}, arch={ARCH!r}), "host")["where"](blocks, 0, grid=4096, block=64)
    gg.synchronize("host")
thread = threading.Thread(target=first); thread.start(); thread.join()
def name(task):
    try: return open(f"/proc/self/task/{{task}}/comm").read().strip()
    except OSError: return ""  # it has ended
ours = [int(task) for task in os.listdir("/proc/self/task") if name(task) in ("gpuglue-host", "gpuglue-grid")]
everywhere = all(os.sched_getaffinity(task) == os.sched_getaffinity(0) for task in ours)
print(len(ours) > 1, everywhere, gg.Device("host").attributes["multiprocessors"])
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="the process has one processor")
def test_a_bound_thread_that_uses_the_device_first_does_not_bind_its_threads():
    assert succeeds(run_python(BOUND, GPUGLUE_HOST_THREADS="2")) == "True True 2"


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="the process has one processor")
def test_the_number_of_threads_is_that_of_the_process_not_of_the_bound_thread():
    expected = succeeds(run_python(COUNT_THREADS, GPUGLUE_HOST_THREADS=None))
    assert succeeds(run_python(BOUND, GPUGLUE_HOST_THREADS=None)).split()[-1] == expected


SUMS = """
extern "C" __global__ void sums(const int *x, int n, int *each, unsigned long long *all)
{
    __shared__ int part[256];
    extern __shared__ int copy[];
    int i = blockIdx.x * 256 + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0;
    copy[threadIdx.x] = part[threadIdx.x];
    __syncthreads();
    for (int half = 128; half; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    int again = 0;
    for (int j = 0; j < 256; j++) again += copy[j];
    if (threadIdx.x == 0) each[blockIdx.x] = part[0] == again ? again : -1;
    if (threadIdx.x == 0) atomicAdd(all, (unsigned long long)part[0]);
}
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUGLUE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        return gg.Module(gg.compile(SUMS, arch=ARCH), "host")


def launch(module, n, stream=None):
    x = np.arange(n, dtype=np.int32) % 1000
    blocks = -(-n // 256)
    given, each, total = gg.to_gpu(x, device="host"), gg.zeros(blocks, np.int32, device="host"), gg.zeros(1, np.uint64, device="host")
    gg.synchronize("host")
    module["sums"](given, n, each, total, grid=blocks, block=256, smem=1024, stream=stream)
    return np.add.reduceat(x, np.arange(0, n, 256)), each, total


@pytest.mark.parametrize("n", [255, 257, 70_000, 400_001])
def test_shared_memory_barriers_and_atomics_are_of_one_block_or_of_the_grid(module, n):
    expected, each, total = launch(module, n)
    np.testing.assert_array_equal(each.get(), expected)
    assert total.get()[0] == expected.sum()


def test_grids_of_several_streams_share_the_threads(module):
    streams = [gg.Stream("host") for _ in range(4)]
    results = [launch(module, 100_000, stream) for stream in streams]
    for stream in streams:
        stream.synchronize()
    for expected, each, total in results:
        np.testing.assert_array_equal(each.get(), expected)
        assert total.get()[0] == expected.sum()


def test_every_index_of_a_grid_of_three_dimensions_runs_once():
    text = """extern "C" __global__ void count(int *x) {
        atomicAdd(&x[(blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x], 1 + threadIdx.z); }"""
    x = gg.zeros(7 * 31 * 53, np.int32, device="host")
    gg.Module(gg.compile(text, arch=ARCH), "host")["count"](x, grid=(53, 31, 7), block=(2, 2, 2))
    assert (x.get() == 12).all()


# Block 0 waits for a block of another thread, which waits for `go`. Meanwhile the first thread runs all other chunks of blocks.
HELD = """
__device__ unsigned long long first;
thread_local char here;
extern "C" __global__ void held(int *go, int *inside, int *ended)
{
    unsigned long long mine = (unsigned long long)&here;
    if (blockIdx.x == 0) {
        atomicExch(&first, mine);
        while (!atomicAdd(inside, 0)) { }
    } else if (atomicAdd(&first, 0ull) != mine && !atomicExch(inside, 1)) {
        while (!atomicAdd(go, 0)) { }
    }
    atomicAdd(ended, 1);
}
"""
WAITS = f"""
import ctypes, time
import gpuglue as gg, numpy as np
state = gg.zeros(3, np.int32, device="host")
go, inside, ended = (ctypes.c_int32.from_address(state.ptr + 4 * i) for i in range(3))
stream = gg.Stream("host")
kernel = gg.Module(gg.compile({HELD!r}, arch={ARCH!r}), "host")["held"]
gg.synchronize("host")
kernel(state[0:1], state[1:2], state[2:3], grid=65536, block=1, stream=stream)
while ended.value < 65536 - 4096:  # 16 chunks, of which the other thread has one
    time.sleep(0.001)
time.sleep(0.05)
print(stream.done, ended.value)
go.value = 1
stream.synchronize()
print(stream.done, ended.value)
"""


def test_a_grid_is_complete_when_the_blocks_of_all_threads_are():
    assert succeeds(run_python(WAITS, GPUGLUE_HOST_THREADS="2")).split() == ["False", "61440", "True", "65536"]


# There is memory for some of the threads that could help, and for the stacks of all.
COUNT = """
extern "C" __global__ void count(unsigned *blocks)
{
    extern __shared__ int shared[];
    shared[threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(blocks, 1u);
}
"""
COUNTS = f"""
import resource
import gpuglue as gg, numpy as np
kernel = gg.Module(gg.compile({COUNT!r}, arch={ARCH!r}), "host")["count"]
blocks = gg.zeros(1, np.uint32, device="host")
kernel(blocks, grid=1, block=64, smem=SHARED)  # malloc takes up to 128 MiB of the address space when a thread calls it first
gg.synchronize("host")
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
limits = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (used + (ROOM << 20), limits[1]))
for _ in range(5):
    kernel(blocks, grid=4000, block=64, smem=SHARED)
    gg.synchronize("host")
resource.setrlimit(resource.RLIMIT_AS, limits)
print(blocks.get()[0])
"""


@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="the test limits the address space, which a sanitizer needs")
@pytest.mark.parametrize(("room", "shared"), [(400, 1 << 16), (100, 1 << 16), (400, 1 << 10)])
def test_a_grid_completes_when_memory_is_short_for_the_other_threads(room, shared):
    code = COUNTS.replace("ROOM", str(room)).replace("SHARED", str(shared))
    assert succeeds(run_python(code, GPUGLUE_HOST_THREADS="64")) == "20001"


REVERSE = """
extern "C" __global__ void reverse(float *result)
{
    __shared__ float values[1024];
    values[threadIdx.x] = threadIdx.x;
    __syncthreads();
    result[blockIdx.x * 1024 + threadIdx.x] = values[1023 - threadIdx.x];
}
"""
MAPPINGS = f"""
import gpuglue as gg, numpy as np
kernel = gg.Module(gg.compile({REVERSE!r}, arch={ARCH!r}), "host")["reverse"]
results = gg.zeros((1000, 1024), np.float32, device="host")
stream, most = gg.Stream(device="host"), 0
kernel(results, grid=1000, block=1024, stream=stream)
while not stream.done:
    most = max(most, open("/proc/self/maps").read().count("\\n"))
stream.synchronize()
print(most < 30000 or most, (results.get() == np.arange(1023, -1, -1)).all())
"""


def test_many_threads_at_barriers_leave_memory_mappings_for_the_rest_of_the_process():
    # Linux permits a process about 65,000. 24 threads of the system run 24,576 of the kernel at once.
    assert succeeds(run_python(MAPPINGS, GPUGLUE_HOST_THREADS="24")) == "True True"


QUOTAS = {
    "v1": {"proc/self/cgroup": "4:cpu,cpuacct:/job", "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "250000", "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000"},
    "service": {"proc/self/cgroup": "0::/system.slice/job.service", "sys/fs/cgroup/system.slice/job.service/cpu.max": "250000 100000"},
    "container": {"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "250000 100000"},
}


@pytest.mark.parametrize("files", [pytest.param(files, id=name) for name, files in QUOTAS.items()])
def test_the_number_of_threads_respects_the_quota_of_the_control_group(tmp_path, files):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    variables = {"GPUGLUE_TEST_SYSFS": str(tmp_path), "GPUGLUE_TEST_PROCESSORS": "8", "GPUGLUE_HOST_THREADS": None}
    assert succeeds(run_python(COUNT_THREADS, **nodes("/dev/none=absent"), **variables)) == "3"


# A system whose masks of processors have 4096 bits; one that can start no more threads; and one that counts switches of contexts.
SYSTEM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <ucontext.h>
int sched_getaffinity(pid_t process, size_t size, cpu_set_t *mask)
{
    int (*real)(pid_t, size_t, cpu_set_t *) = dlsym(RTLD_NEXT, "sched_getaffinity");
    if (size >= 4096 / 8)
        return real(process, size, mask);
    errno = EINVAL;
    return -1;
}
int switches;
int swapcontext(ucontext_t *from, const ucontext_t *to)
{
    int (*real)(ucontext_t *, const ucontext_t *) = dlsym(RTLD_NEXT, "swapcontext");
    __atomic_fetch_add(&switches, 1, __ATOMIC_RELAXED);
    return real(from, to);
}
int no_threads, attempts;
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");
    if (!no_threads)
        return real(thread, attributes, start, argument);
    attempts++;
    return EAGAIN;
}
"""


@pytest.fixture(scope="module")
def system(tmp_path_factory):
    """A value of LD_PRELOAD that replaces functions of the system."""
    library = tmp_path_factory.mktemp("system") / "libsystem.so"
    command = [*os.environ.get("CC", "cc").split(), "-shared", "-fPIC", "-o", library, "-x", "c", "-", "-ldl"]
    subprocess.run(command, input=SYSTEM, text=True, check=True)
    return ":".join(filter(None, [os.environ.get("LD_PRELOAD"), str(library)]))


def test_the_number_of_threads_is_known_on_a_system_with_thousands_of_processors(system):
    expected = succeeds(run_python(COUNT_THREADS, GPUGLUE_HOST_THREADS=None))
    if expected == "1":
        pytest.skip("this machine has one processor")
    assert succeeds(run_python(COUNT_THREADS, GPUGLUE_HOST_THREADS=None, LD_PRELOAD=system)) == expected


ATTEMPTS = f"""
import ctypes
import gpuglue as gg, numpy as np
kernel = gg.Module(gg.compile({COUNT!r}, arch={ARCH!r}), "host")["count"]
blocks = gg.zeros(1, np.uint32, device="host")
gg.synchronize("host")
no_threads, attempts = (ctypes.c_int.in_dll(ctypes.CDLL(None), name) for name in ("no_threads", "attempts"))
no_threads.value = 1
for _ in range(3):
    kernel(blocks, grid=4000, block=64, smem=256)
    gg.synchronize("host")
no_threads.value = 0
print(attempts.value, blocks.get()[0])
"""


def test_threads_that_cannot_be_started_are_tried_once(system):
    assert succeeds(run_python(ATTEMPTS, GPUGLUE_HOST_THREADS="2", LD_PRELOAD=system)) == "1 12000"


SWITCHES = f"""
import ctypes
import gpuglue as gg, numpy as np
source = '''
extern "C" __global__ void sums(float *out)
{{
    __shared__ float all[64];
    all[threadIdx.x] = threadIdx.x + blockIdx.x;
    __syncthreads();
    float sum = 0.5f * all[63 - threadIdx.x] + 0.25f * __shfl_xor_sync(0xffffffffu, all[threadIdx.x], 1);
    __syncthreads();
    out[64 * blockIdx.x + threadIdx.x] = sum;
}}
'''
kernel = gg.Module(gg.compile(source, arch={ARCH!r}), "host")["sums"]
out = gg.zeros(64 * 1000, np.float32, device="host")
kernel(out, grid=1000, block=64)
thread, block = np.arange(64000) % 64, np.arange(64000) // 64
assert (out.get() == 0.5 * (63 - thread + block) + 0.25 * ((thread ^ 1) + block)).all()
print(ctypes.c_int.in_dll(ctypes.CDLL(None), "switches").value)
"""


@pytest.mark.skipif(platform.machine() != "x86_64" or "LD_PRELOAD" in os.environ, reason="a switch is swapcontext() there")
def test_a_thread_that_waits_at_a_barrier_makes_no_system_call(system):
    assert succeeds(run_python(SWITCHES, LD_PRELOAD=system)) == "0"


ROUNDING = """
#include <cfenv>
extern "C" __global__ void thirds(const double *x, double *out)
{
    double *begin = out + 2 * (blockIdx.x * blockDim.x + threadIdx.x);
    begin[0] = x[0] / x[1];
    if (threadIdx.x % 3 == 0) std::fesetround(FE_UPWARD);
    __syncthreads();
    begin[1] = x[0] / x[1];
    __syncthreads();
    std::fesetround(FE_TONEAREST);
}
"""


def test_each_thread_keeps_its_rounding_at_barriers_and_begins_with_the_default():
    x, out = gg.to_gpu(np.array([1.0, 3.0]), device="host"), gg.zeros((20, 96, 2), np.float64, device="host")
    gg.Module(gg.compile(ROUNDING, arch=ARCH), "host")["thirds"](x, out, grid=20, block=96)
    begin, end = np.moveaxis(out.get(), -1, 0)
    np.testing.assert_array_equal(begin, 1 / 3)  # which is less than a third
    np.testing.assert_array_equal(end[:, ::3], np.nextafter(1 / 3, 1))
    np.testing.assert_array_equal(end[:, 1::3], 1 / 3)
    np.testing.assert_array_equal(end[:, 2::3], 1 / 3)


NO_THREAD = """
import ctypes
import gpuglue as gg, numpy
ctypes.c_int.in_dll(ctypes.CDLL(None), "no_threads").value = 1
try:
    gg.zeros(10, device="host").get()
except gg.OutOfMemoryError as error:
    print(error)
"""


def test_a_stream_whose_thread_cannot_be_started_is_an_error_that_names_the_limits(system):
    message = succeeds(run_python(NO_THREAD, LD_PRELOAD=system))
    assert "thread could not be started: Resource temporarily unavailable" in message
    assert "`ulimit -u`" in message and "pids.max" in message
