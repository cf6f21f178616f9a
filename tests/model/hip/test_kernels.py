"""Kernels that HIPRTC compiles, run by the model and compared with NumPy: each test covers a part of the instruction set."""

import signal
import subprocess
import sys

import gpuglue as gg
import numpy as np
import pytest

COUNT = 1000


@pytest.fixture(scope="module")
def device():
    return gg.Device("hip:0")


def kernel(device, source, name="f"):
    return gg.Module(gg.compile(f'extern "C" {{\n{source}\n}}', backend="hip", arch=device.arch), device)[name]


def mapped(device, expressions, inputs, dtype):
    """For each expression of a, b and c, an array of its values for the elements of the inputs."""
    ctype = {np.dtype(t): c for t, c in CTYPES}
    names = "abc"[: len(inputs)]
    parameters = "".join(f", const {ctype[x.dtype]} *{n}s" for n, x in zip(names, inputs))
    reads = " ".join(f"{ctype[x.dtype]} {n} = {n}s[i];" for n, x in zip(names, inputs))
    writes = " ".join(f"out[{row} * {COUNT} + i] = {expression};" for row, expression in enumerate(expressions))
    source = f"""
__global__ void f({ctype[np.dtype(dtype)]} *out{parameters})
{{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= {COUNT}) return;
    {reads}
    {writes}
}}"""
    result = gg.zeros((len(expressions), COUNT), dtype, device=device)
    arrays = [gg.to_gpu(x, device) for x in inputs]
    kernel(device, source).bind("P" + "P" * len(inputs))(result, *arrays, grid=-(-COUNT // 128), block=128)
    return dict(zip(expressions, result.get()))


CTYPES = (
    (np.int8, "signed char"), (np.uint8, "unsigned char"), (np.int16, "short"), (np.uint16, "unsigned short"), (np.int32, "int"),
    (np.uint32, "unsigned"), (np.int64, "long long"), (np.uint64, "unsigned long long"), (np.float32, "float"), (np.float64, "double"),
)  # fmt: skip


def integers(dtype, seed, least=None, most=None):
    limits = np.iinfo(dtype)
    least, most = limits.min if least is None else least, limits.max if most is None else most
    return np.random.default_rng(seed).integers(least, most, COUNT, dtype, endpoint=True)


def floats(dtype, seed, scale=100.0):
    return (np.random.default_rng(seed).standard_normal(COUNT) * scale).astype(dtype)


INTEGERS = {
    "a + b": lambda a, b: a + b, "a - b": lambda a, b: a - b, "a * b": lambda a, b: a * b, "a & b": lambda a, b: a & b,
    "a | b": lambda a, b: a | b, "a ^ ~b": lambda a, b: a ^ ~b, "a < b ? a : b": np.minimum, "a > b ? a : b": np.maximum,
    "a < b": lambda a, b: a < b, "a == b": lambda a, b: a == b, "a >= b": lambda a, b: a >= b, "-a": lambda a, b: -a,
    "(a << 3) + b": lambda a, b: (a << 3) + b, "a >> 5": lambda a, b: a >> 5, "(a >> 3) & 0x1f": lambda a, b: (a >> 3) & 0x1F,
    "a * 2 + b * 3": lambda a, b: a * 2 + b * 3, "a * 7 - b": lambda a, b: a * 7 - b,
}  # fmt: skip


def check(got, expected, **tolerance):
    """Check each expression's values; report all wrong ones at once."""
    wrong = []
    for expression, values in got.items():
        try:
            np.testing.assert_allclose(values, expected(expression), err_msg=expression, **{"rtol": 0, **tolerance})
        except AssertionError as error:
            wrong.append(str(error))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("dtype", [t for t, _ in CTYPES if np.dtype(t).kind in "iu"])
def test_integer_arithmetic(device, dtype):
    a, b = integers(dtype, 1), integers(dtype, 2)
    with np.errstate(over="ignore"):
        check(mapped(device, INTEGERS, (a, b), dtype), lambda expression: INTEGERS[expression](a, b).astype(dtype))


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64])
def test_division_of_integers(device, dtype):
    a, b = integers(dtype, 1), integers(dtype, 2, 1, 5000)
    x, y = a.astype(object), b.astype(object)
    quotient = abs(x) // y * np.sign(x)
    check(mapped(device, ("a / b", "a % b"), (a, b), dtype), {"a / b": quotient.astype(dtype), "a % b": (x - quotient * y).astype(dtype)}.get)


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_bits(device, dtype):
    bits = 8 * np.dtype(dtype).itemsize
    wide = "ll" if bits == 64 else ""
    a = integers(dtype, 3)
    text = [f"{int(x):0{bits}b}" for x in a]
    expected = {
        f"__popc{wide}(a)": [t.count("1") for t in text],
        f"__clz{wide}(a >> 4)": [len(("0000" + t[:-4]).split("1")[0]) for t in text],
        f"__ffs{wide}(a << 2)": [len((t[2:] + "00").split("1")[-1]) + 1 for t in text],
        f"__brev{wide}(a)": np.array([int(t[::-1], 2) for t in text], dtype),
    }
    check(mapped(device, expected, (a,), dtype), expected.get)


def test_high_products_and_byte_permutations(device):
    a, b = integers(np.uint32, 4), integers(np.uint32, 5)
    x, y = a.view(np.int32).astype(np.int64), b.view(np.int32)
    expected = {
        "__umulhi(a, b)": a.astype(np.uint64) * b >> 32,
        "__mulhi((int)a, (int)b)": (x * y >> 32).astype(np.uint32),
        "__byte_perm(a, b, 0x0123)": a.byteswap(),
        "__umul24(a, b)": (a & 0xFFFFFF) * (b & 0xFFFFFF),
        "__funnelshift_l(a, b, 5)": b << 5 | a >> 27,
    }
    check(mapped(device, expected, (a, b), np.uint32), expected.get)
    c, d = integers(np.uint64, 6), integers(np.uint64, 7)
    high = np.array([int(p) * int(q) >> 64 for p, q in zip(c, d)], np.uint64)
    check(mapped(device, ("__umul64hi(a, b)",), (c, d), np.uint64), lambda _: high)


FLOATS = {
    "a + b": lambda a, b: a + b, "a - b": lambda a, b: a - b, "a * b": lambda a, b: a * b, "a / b": lambda a, b: a / b,
    "a < b ? a : b": np.minimum, "a != b": lambda a, b: a != b, "-a": lambda a, b: -a, "!(a < b)": lambda a, b: ~(a < b),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floating_point_arithmetic_is_exact(device, dtype):
    a, b = floats(dtype, 8), floats(dtype, 9)
    check(mapped(device, FLOATS, (a, b), dtype), lambda expression: FLOATS[expression](a, b).astype(dtype))


def suffix(dtype):
    return "f" if dtype == np.float32 else ""


FUNCTIONS = (
    "sqrt", "exp", "exp2", "log", "log2", "log10", "log1p", "expm1", "sin", "cos", "tan", "atan", "sinh", "cosh", "tanh", "cbrt",
    "floor", "ceil", "trunc", "rint", "fabs",
)  # fmt: skip
OF = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "pow": "power"}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("names, most", [(FUNCTIONS, None), (("asin", "acos"), 1)])
def test_functions_of_floating_point(device, names, most, dtype):
    a = np.abs(floats(dtype, 10, 3)) + dtype(0.01)
    a = a % dtype(most) if most else a
    got = mapped(device, [f"{name}{suffix(dtype)}(a)" for name in names], (a,), dtype)
    exact = {f"{name}{suffix(dtype)}(a)": getattr(np, OF.get(name, name)) for name in names}
    check(got, lambda expression: exact[expression](a.astype(np.float64)), rtol=16 * np.finfo(dtype).eps, atol=np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_of_two(device, dtype):
    a, b = np.abs(floats(dtype, 11, 3)) + dtype(0.1), floats(dtype, 12, 3)
    x, y = a.astype(np.float64), b.astype(np.float64)
    exact = {f"{name}{suffix(dtype)}(a, b)": getattr(np, OF.get(name, name))
             for name in ("pow", "fmod", "atan2", "hypot", "fmax", "fmin", "copysign")}  # fmt: skip
    exact[f"ldexp{suffix(dtype)}(a, (int)b)"] = lambda a, b: np.ldexp(a, b.astype(np.int32))
    check(mapped(device, exact, (a, b), dtype), lambda expression: exact[expression](x, y), rtol=32 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_angles_far_from_zero(device, dtype):
    a = (10.0 ** np.linspace(3, 18, COUNT)).astype(dtype)
    got = mapped(device, (f"sin{suffix(dtype)}(a)",), (a,), dtype)
    check(got, lambda _: np.sin(a.astype(np.float64)), rtol=64 * np.finfo(dtype).eps, atol=np.finfo(dtype).eps)


@pytest.mark.parametrize("start", [t for t, _ in CTYPES])
def test_conversions(device, start):
    a = np.abs(floats(start, 13, 30) if np.dtype(start).kind == "f" else integers(start, 13, 0, 120))
    to = {f"(double)({ctype})a": dtype for dtype, ctype in CTYPES}
    check(mapped(device, to, (a,), np.float64), lambda expression: a.astype(to[expression]))


def test_half_precision(device):
    a, b = floats(np.float32, 14, 4), floats(np.float32, 15, 4)
    x, y = a.astype(np.float16), b.astype(np.float16)
    expected = {
        "(float)((_Float16)a + (_Float16)b)": x + y,
        "(float)((_Float16)a * (_Float16)b)": x * y,
        "(_Float16)a < (_Float16)b": x < y,
    }
    check(mapped(device, expected, (a, b), np.float32), lambda expression: expected[expression].astype(np.float32))


@pytest.mark.parametrize("ctype, dtype", [("unsigned", np.uint32), ("unsigned long long", np.uint64), ("float", np.float32), ("int", np.int32), ("double", np.float64)])
def test_atomics_of_memory_and_of_shared_memory(device, ctype, dtype):
    source = f"""__global__ void f({ctype} *total, {ctype} *most, const {ctype} *x)
{{
    __shared__ {ctype} part;
    if (!threadIdx.x) part = 0;
    __syncthreads();
    atomicAdd(&part, x[blockIdx.x * blockDim.x + threadIdx.x]);
    atomicMax(most, x[blockIdx.x * blockDim.x + threadIdx.x]);
    __syncthreads();
    if (!threadIdx.x) atomicAdd(total, part);
}}"""
    x = np.random.default_rng(16).integers(1, 1000, 1024).astype(dtype)
    total, most = gg.zeros(1, dtype, device=device), gg.zeros(1, dtype, device=device)
    kernel(device, source).bind("PPP")(total, most, gg.to_gpu(x, device), grid=8, block=128)
    assert (total.get()[0], most.get()[0]) == (x.sum(), x.max())


def test_atomics_return_the_old_value(device):
    source = """__global__ void f(unsigned *next, unsigned *places, unsigned *other)
{
    places[atomicAdd(next, 1u)] = 1;
    atomicCAS(&other[0], 0u, threadIdx.x + 1);
    atomicExch(&other[1], 5u);
    atomicOr(&other[2], 1u << (threadIdx.x & 31));
    atomicXor(&other[3], 1u << (threadIdx.x & 31));
    atomicSub(&other[4], 2u);
    atomicInc(&other[5], 9u);
    atomicMin(&other[6], threadIdx.x);
    atomicAnd(&other[7], ~(1u << (threadIdx.x & 31)));
}"""
    next_, places = gg.zeros(1, np.uint32, device=device), gg.zeros(96, np.uint32, device=device)
    other = gg.to_gpu(np.array([0, 0, 0, 0, 1000, 0, 77, 0xFFFFFFFF], np.uint32), device)
    kernel(device, source).bind("PPP")(next_, places, other, grid=1, block=96)
    assert places.get().all() and next_.get()[0] == 96
    assert other.get()[0] in range(1, 97)
    assert other.get()[1:].tolist() == [5, 0xFFFFFFFF, 0xFFFFFFFF, 1000 - 192, 96 % 10, 0, 0]


def test_lanes_exchange_values(device):
    source = """__global__ void f(unsigned *out)
{
    unsigned x = threadIdx.x * 3 + 1, i = threadIdx.x, n = 64;
    out[i] = __shfl(x, (i * 5) & (warpSize - 1));
    out[n + i] = __shfl_xor(x, 9);
    out[2 * n + i] = __shfl_down(x, 2);
    out[3 * n + i] = __shfl_up(x, 1);
    out[4 * n + i] = (unsigned)__popcll(__ballot(i % 3 == 0));
    out[5 * n + i] = __any(i == 7) + 2 * __all(i < 64) + 4 * __all(i < 5);
    out[6 * n + i] = warpSize;
}"""
    out = gg.zeros((7, 64), np.uint32, device=device)
    kernel(device, source).bind("P")(out, grid=1, block=64)
    i, got = np.arange(64), out.get()
    x, lanes = i * 3 + 1, {"gfx942": 64, "gfx1100": 32}[device.arch.split(":")[0]]
    lane, first = i % lanes, i - i % lanes
    np.testing.assert_array_equal(got[0], x[first + (i * 5) % lanes])
    np.testing.assert_array_equal(got[1], x[i ^ 9])
    np.testing.assert_array_equal(got[2], x[np.where(lane + 2 < lanes, i + 2, i)])
    np.testing.assert_array_equal(got[3], x[np.where(lane > 0, i - 1, i)])
    np.testing.assert_array_equal(got[4], [(i[f : f + lanes] % 3 == 0).sum() for f in first])
    np.testing.assert_array_equal(got[5], np.where(first == 0, 3, 2))
    assert (got[6] == lanes).all()


LANES = '__builtin_amdgcn_update_dpp(7777, x, {}, 15, 15, {})'
# How a lane reads another one of its row: the source, and the place of the lane that it reads, or -1. 7777 is the old value.
MOVES = {
    LANES.format(0b00_01_11_10, "false"): lambda i: (i & ~3) | np.array([2, 3, 1, 0])[i & 3],
    LANES.format(0x102, "true"): lambda i: np.where((i & 15) + 2 < 16, i + 2, -1),
    LANES.format(0x113, "false"): lambda i: np.where((i & 15) >= 3, i - 3, -1),
    LANES.format(0x125, "false"): lambda i: (i & ~15) | (i - 5) & 15,
    LANES.format(0x140, "false"): lambda i: i ^ 15,
    LANES.format(0x141, "false"): lambda i: i ^ 7,
    "__builtin_amdgcn_ds_swizzle(x, 0x0c1e)": lambda i: (i & 30) ^ 3 | i & 32,
}
MOVES_OF_GFX11 = {
    LANES.format(0x153, "false"): lambda i: (i & ~15) | 3,
    LANES.format(0x165, "false"): lambda i: i ^ 5,
    "__builtin_amdgcn_mov_dpp8(x, 0x53977)": lambda i: (i & ~7) | np.array([7, 6, 5, 4, 3, 2, 1, 0])[i & 7],
    "__builtin_amdgcn_permlane16(7777, x, 0x76543210, 0x01234567, false, false)": lambda i: (i & ~15) | np.where(i & 8, 15 - (i & 15), i & 7),
    "__builtin_amdgcn_permlanex16(7777, x, 0x76543210, 0xfedcba98, false, false)": lambda i: i ^ 16,
}


def test_lanes_read_others_of_their_row(device):
    moves = {**MOVES, **(MOVES_OF_GFX11 if device.arch.startswith("gfx11") else {})}
    writes = " ".join(f"out[{row} * 64 + threadIdx.x] = {source};" for row, source in enumerate(moves))
    out = gg.zeros((len(moves), 64), np.int32, device=device)
    kernel(device, f"__global__ void f(int *out) {{ int x = threadIdx.x * 3 + 1; {writes} }}").bind("P")(out, grid=1, block=64)
    i = np.arange(64)
    for (source, place), got in zip(moves.items(), out.get()):
        outside = 0 if "true" in source else 7777
        np.testing.assert_array_equal(got, np.where(place(i) < 0, outside, place(i) * 3 + 1), source)


def test_clocks_advance(device):
    source = """__global__ void f(long long *out)
{
    long long a = wall_clock64(), c = clock64();
    out[0] = wall_clock64() >= a && a > 0;
    out[1] = clock64() != 0 || c != 0;
}"""
    out = gg.zeros(2, np.int64, device=device)
    kernel(device, source).bind("P")(out, grid=1, block=1)
    assert out.get().tolist() == [1, 1]


def test_pairs_of_half_precision(device):
    expressions = {
        "p + q": lambda p, q: p + q, "p * q": lambda p, q: p * q, "p - q": lambda p, q: p - q, "p.yx + q": lambda p, q: p[:, ::-1] + q,
        "__builtin_elementwise_max(p, q)": np.maximum, "__builtin_elementwise_min(p, -q)": lambda p, q: np.minimum(p, -q),
    }  # fmt: skip
    writes = " ".join(f"out[{row} * 64 + threadIdx.x] = {expression};" for row, expression in enumerate(expressions))
    source = f"""typedef _Float16 pair __attribute__((ext_vector_type(2)));
__global__ void f(pair *out, const pair *ps, const pair *qs)
{{
    pair p = ps[threadIdx.x], q = qs[threadIdx.x];
    {writes}
}}"""
    p, q = (floats(np.float32, seed, 4)[:128].astype(np.float16).reshape(64, 2) for seed in (19, 20))
    out = gg.zeros((len(expressions), 64, 2), np.float16, device=device)
    kernel(device, source).bind("PPP")(out, gg.to_gpu(p, device), gg.to_gpu(q, device), grid=1, block=64)
    for (expression, expected), got in zip(expressions.items(), out.get()):
        np.testing.assert_array_equal(got, expected(p, q), expression)


def test_an_instruction_reads_all_sources_before_it_writes(device):
    swap = "v_dual_mov_b32 v4, v5 :: v_dual_mov_b32 v5, v4" if device.arch.startswith("gfx11") else "v_swap_b32 v4, v5"
    source = f"""__global__ void f(int *out)
{{
    int a, b;
    asm volatile("v_mov_b32 v4, %2\\n v_mov_b32 v5, %3\\n {swap}\\n v_mov_b32 %0, v4\\n v_mov_b32 %1, v5"
                 : "=&v"(a), "=&v"(b) : "v"(threadIdx.x), "v"(threadIdx.x + 100) : "v4", "v5");
    out[threadIdx.x] = a * 1000 + b;
}}"""
    out = gg.zeros(64, np.int32, device=device)
    kernel(device, source).bind("P")(out, grid=1, block=64)
    i = np.arange(64)
    np.testing.assert_array_equal(out.get(), (i + 100) * 1000 + i)


def test_private_memory_calls_and_recursion(device):
    source = """
__device__ __noinline__ unsigned fib(unsigned n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__device__ __noinline__ void mix(unsigned *at, unsigned by) { *at = *at * 31 + by; }
__global__ void f(unsigned *out, const unsigned *order)
{
    unsigned held[40];
    for (int k = 0; k < 40; k++)
        held[k] = k * threadIdx.x;
    unsigned sum = 0;
    for (int k = 0; k < 40; k++) {
        sum += held[order[k]] * (k + 1);
        mix(&held[order[(k + threadIdx.x) % 40]], sum);
    }
    out[threadIdx.x] = sum + fib(threadIdx.x % 10);
}"""
    order = np.random.default_rng(17).permutation(40).astype(np.uint32)
    out = gg.zeros(70, np.uint32, device=device)
    kernel(device, source).bind("PP")(out, gg.to_gpu(order, device), grid=1, block=70)
    assert out.get().tolist() == [private_sum(t, order.tolist()) for t in range(70)]


def private_sum(thread, order):
    held, total, fib = [k * thread for k in range(40)], 0, [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]
    for k in range(40):
        total = (total + held[order[k]] * (k + 1)) % 2**32
        at = order[(k + thread) % 40]
        held[at] = (held[at] * 31 + total) % 2**32
    return (total + fib[thread % 10]) % 2**32


@pytest.mark.parametrize("grid, block", [((2, 3, 2), (5, 2, 3)), (7, 32), ((1, 4), (8, 8)), ((3, 1, 5), (1, 1, 1)), (3, 1000)])
def test_each_thread_has_its_own_place(device, grid, block):
    source = """__global__ void f(unsigned *out)
{
    unsigned nx = gridDim.x * blockDim.x, ny = gridDim.y * blockDim.y;
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z * blockDim.z + threadIdx.z;
    out[x + nx * (y + ny * z)] = threadIdx.x + 10000 * (threadIdx.y + 10 * (threadIdx.z + 10 * (blockIdx.x + 10 * (blockIdx.y + 10 * blockIdx.z))));
}"""
    (gx, gy, gz), (bx, by, bz) = [tuple(np.atleast_1d(s)) + (1,) * (3 - np.size(s)) for s in (grid, block)]
    out = gg.zeros((gz * bz, gy * by, gx * bx), np.uint32, device=device)
    kernel(device, source).bind("P")(out, grid=grid, block=block)
    z, y, x = np.indices(out.shape)
    expected = x % bx + 10000 * (y % by + 10 * (z % bz + 10 * (x // bx + 10 * (y // by + 10 * (z // bz)))))
    np.testing.assert_array_equal(out.get(), expected)


def test_dynamic_shared_memory_and_barriers(device):
    source = """__global__ void f(const float *x, float *out)
{
    extern __shared__ float part[];
    part[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
    for (unsigned step = blockDim.x / 2; step; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step)
            part[threadIdx.x] += part[threadIdx.x + step];
    }
    if (!threadIdx.x)
        out[blockIdx.x] = part[0];
}"""
    x = np.random.default_rng(18).integers(0, 100, (5, 512)).astype(np.float32)
    out = gg.zeros(5, np.float32, device=device)
    kernel(device, source).bind("PP")(gg.to_gpu(x, device), out, grid=5, block=512, smem=2048)
    np.testing.assert_array_equal(out.get(), x.sum(1))


PRINTS = r"""import gpuglue as gg
device = gg.Device("hip:0")
text = 'extern "C" __global__ void f(int x) { printf("thread %d of %d\\n", (int)threadIdx.x, x); }'
gg.Module(gg.compile(text, backend="hip", arch=device.arch), device)["f"].bind("i")(3, grid=1, block=3)
device.synchronize()
"""


def test_printf_arrives():
    result = subprocess.run([sys.executable, "-c", PRINTS], capture_output=True, text=True, timeout=60)
    assert sorted(result.stdout.splitlines()) == [f"thread {n} of 3" for n in range(3)], result.stderr


RUNS = """import sys, gpuglue as gg
device = gg.Device("hip:0")
source, *options = sys.argv[1:]
gg.Module(gg.compile(source, backend="hip", arch=device.arch, options=options), device)["f"].bind("")(grid=1, block=1)
device.synchronize()
print("ran")
"""


def run(statements, *options):
    """How a process ends that runs a kernel with these statements: the exit status and stdout, or the model's message."""
    source = f'extern "C" __global__ void f() {{ {statements} }}'
    result = subprocess.run([sys.executable, "-c", RUNS, source, *options], capture_output=True, text=True, timeout=300)
    return result.returncode, result.stdout.strip() or result.stderr


NO_INSTRUCTION = "an instruction that the model does not know"
NO_MODE = "a mode that the model does not have"
# In gfx11 there are further instructions for the same modes.
ENDS = {
    "v_lerp_u8 v4, v5, v6, v7": NO_INSTRUCTION,
    "s_sethalt 1": NO_INSTRUCTION,
    "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 1": NO_MODE,
    "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0": NO_MODE,
    "s_setreg_b32 hwreg(HW_REG_MODE, 2, 2), s4": NO_MODE,
    "s_setreg_b32 hwreg(HW_REG_MODE, 8, 1), s4": NO_MODE,
}
ENDS_OF_GFX11 = {"s_round_mode 0x1": NO_MODE, "s_denorm_mode 12": NO_MODE}


@pytest.mark.parametrize("instruction", [*ENDS, *ENDS_OF_GFX11])
def test_an_instruction_that_is_not_modelled_ends_the_process_with_its_name(device, instruction):
    if instruction in ENDS_OF_GFX11 and not device.arch.startswith("gfx11"):
        pytest.skip("an instruction of gfx11")
    status, message = run(f'asm volatile("s_mov_b32 s4, 3\\n {instruction}" ::: "s4", "v4");')
    assert status == -signal.SIGABRT, message
    assert f"gpu model: {({**ENDS, **ENDS_OF_GFX11})[instruction]}: `{instruction}`" in message


def test_the_mode_that_the_model_has_may_be_set(device):
    modes = ["s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 8), 0xf0", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3", "s_setreg_b32 hwreg(HW_REG_MODE, 6, 2), s4"]
    modes += ["s_round_mode 0x0", "s_denorm_mode 0xf"] if device.arch.startswith("gfx11") else []
    assert run(" ".join(f'asm volatile("s_mov_b32 s4, 3\\n {mode}" ::: "s4");' for mode in modes)) == (0, "ran")


def test_a_kernel_that_flushes_denormals_of_32_bits_ends_the_process_if_it_computes_such_values():
    assert run("", "-fgpu-flush-denormals-to-zero") == (0, "ran")
    status, message = run('asm volatile("v_add_f32 v4, v5, v6" ::: "v4");', "-fgpu-flush-denormals-to-zero")
    assert status == -signal.SIGABRT, message
    assert f"gpu model: {NO_MODE}: `v_add_f32" in message
