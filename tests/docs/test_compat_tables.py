"""The tables of other packages' names are complete, and each name exists and is in the file that is said to test it."""

import collections
import importlib
import os
import re

import gpuglue.compat
import numpy as np
import pycuda_names
import pytest
from blocks import ROOT

PAGES = {name: ROOT / "docs/reference" / name for name in ("compat-names.md", "pycuda-names.md")}
BACKENDS = ("cuda", "hip", "host", "ze")
DTYPES = "int16 int32 int64 uint16 uint32 uint64 float32 float64 complex64 complex128".split()
# What PybindGPU/__init__.py, gpuarray.py and the functions generate_* of its sources define, and what its README names.
PYGPU = {
    "": """cudaSetDevice cudaGetDevice cudaGetDeviceCount cudaDeviceSynchronize cudaDeviceReset cudaEventRecord
        cudaEventSynchronize cudaEventElapsedTime cudaGetLastError cudaGetErrorName cudaGetErrorString nvmlInit nvmlShutdown
        to_gpu SUPPORTED_DTYPES dtype UnsupportedDataType cuda_enabled use_hip major_version minor_version release_version
        gpuarray backend""",
    "GPUArray": """get set to_host to_device to_gpu set_val size nbytes shape strides dtype flag_c_contiguous ptr device_data
        host_data allocate last_status __cuda_array_interface__""",
    "Allocator": "ptr host_ptr data host_data", "HostAllocator": "get ptr", "PagelockedAllocator": "get ptr",
    "DeviceArray_<dtype>": """allocate allocated to_device to_host set set_val size nbytes shape strides device_data host_data
        last_status""",
    "HostAllocator_<dtype>": "allocate ptr", "PagelockedAllocator_<dtype>": "allocate ptr",
    "DeviceAllocator_<dtype>": "allocate ptr", "ptr_wrapper_<dtype>": "create destroy is_safe print_address",
    "pointer_wrapper_<dtype>": "get", "cudaStream_t": "get last_status", "cudaEvent_t": "get last_status",
    "cudaError_t": "as_int", "nvmlReturn_t": "as_int",
    "cudaDeviceProp": "get name uuid pciBusID pciDeviceID pciDomainID last_status",
    "nvmlDevice": "get utilization_rates memory_info last_status",
}
# These raise when they are called: tests/python/test_compat_driver.py.
CALLS_RAISE = """GPUArray.bind_to_texref GPUArray.bind_to_texref_ext Module.get_texref Module.get_surfref
    Function.param_set_texref""".split()


def expected_of_pygpu():
    for owner, members in PYGPU.items():
        if owner:
            yield owner
        yield from (f"{owner}.{member}" if owner else member for member in members.split())


def rows(page):
    """(name, what it is on gpuglue, file that tests it) of each row; PyCUDA's names begin with their module and a slash."""
    module = ""
    for line in PAGES[page].read_text().splitlines():
        module = f"{line[3:]}/" if line.startswith("## pycuda") else module
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 7 and cells[0].startswith("`"):
            yield from ((module + name, cells[1], cells[2].strip("`")) for name in re.findall(r"`([^`]+)`", cells[0]))


@pytest.mark.parametrize("page, expected", [("compat-names.md", expected_of_pygpu), ("pycuda-names.md", pycuda_names.of_list)])
def test_the_table_has_each_name_once(page, expected):
    assert sorted(name for name, *_ in rows(page)) == sorted(expected())


@pytest.fixture
def documented():
    """All names of PyCUDA's documentation."""
    if not os.environ.get("PYCUDA_SDIST"):
        pytest.skip("PYCUDA_SDIST does not name PyCUDA's source archive")
    return pycuda_names.of_sdist(os.environ["PYCUDA_SDIST"])


def test_the_table_has_each_name_of_pycudas_documentation(documented):
    assert {name for name, *_ in rows("pycuda-names.md")} == {name for name in documented if not pycuda_names.left_out(name)}


def test_the_page_counts_the_names_that_it_leaves_out(documented):
    gpuglue.compat.install("pycuda", force=True)
    counts, there = collections.Counter(map(pycuda_names.left_out, documented)), 0
    for name in documented:
        if pycuda_names.left_out(name) == "enumerations":
            module, _, path = name.partition("/")
            owner, _, member = path.partition(".")
            there += hasattr(getattr(importlib.import_module(module), owner, None), member)
    page = " ".join(PAGES["pycuda-names.md"].read_text().split())
    assert f"{counts['enumerations']} members of enumerations, of which gpuglue has {there}," in page
    assert f"{counts['textures']} members of texture and surface references, and {counts['gl']} names of `pycuda.gl`" in page


def test_the_page_states_the_share_of_names_that_work_with_and_without_those_left_out():
    page = " ".join(PAGES["pycuda-names.md"].read_text().split())
    left_out, there, total = (int(re.search(pattern, page)[1]) for pattern in
                              (r"Left out are (\d+)", r"of which gpuglue has (\d+)", r"document\w*, (\d+) in number"))
    for backend, names in columns("pycuda-names.md").items():
        assert f"{backend} {100 * len(names) / total:.1f} % ({100 * (len(names) + there) / (total + left_out):.1f} %)" in page
    assert total == len(list(rows("pycuda-names.md"))) and f"all {total + left_out}" in page


def test_a_page_of_names_is_read_with_its_classes_and_further_lines():
    page = """.. module :: pycuda.x

.. class :: One(x)

    .. method :: first(a)
                 second(b, \\
                     c)

        Text.

    .. attribute :: third

.. function :: free()
""".splitlines()
    assert [f"{owner}.{name}" for _, owner, name in pycuda_names.of_page(page)] == \
        [".One", "One.first", "One.second", "One.third", ".free"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_each_name_of_pygpu_exists(dtype):
    package, missing = importlib.import_module("gpuglue.compat.PyGPU.gpuarray").backend.PyGPU, []
    for name, *_ in rows("compat-names.md"):
        owner, _, member = name.replace("<dtype>", dtype).partition(".")
        found = getattr(package, owner, None)
        instance = member in ("data", "host_data") and owner == "Allocator"  # attributes of objects
        if found is None or member and not instance and not hasattr(found, member):
            missing.append(name)
    assert not missing


@pytest.fixture
def objects():
    """Objects whose attributes their classes do not have."""
    from gpuglue.compat.pycuda import driver, gpuarray, tools

    driver.init()
    context = tools.make_default_context()
    data = tools.DeviceData()
    yield {"CompileError": driver.CompileError(""), "DeviceData": data, "OccupancyRecord": tools.OccupancyRecord(data, 32),
           "DeviceMemoryPool": tools.DeviceMemoryPool(), "PageLockedMemoryPool": tools.PageLockedMemoryPool(),
           "Memcpy2D": driver.Memcpy2D(), "Memcpy3D": driver.Memcpy3D(), "GPUArray": gpuarray.zeros(3, np.float32),
           "ArrayDescriptor": driver.ArrayDescriptor(), "ArrayDescriptor3D": driver.ArrayDescriptor3D(),
           "RegisteredHostMemory": driver.register_host_memory(np.zeros(1000)).base}
    context.pop()


def test_each_name_of_pycuda_exists_or_its_error_names_the_way_out(objects):
    gpuglue.compat.install("pycuda", force=True)
    wrong = []
    for name, ours, _ in rows("pycuda-names.md"):
        module, _, path = name.partition("/")
        owner, _, member = path.partition(".")
        text = ours.partition("not available: ")[2]
        try:
            found = getattr(importlib.import_module(module), owner)
            if member and not hasattr(found, member):
                getattr(objects.get(owner, found), member)
        except (AttributeError, ModuleNotFoundError) as error:
            if not text or not str(error).endswith(f" on gpuglue: {text}"):
                wrong.append((name, str(error)))
        else:
            if bool(text) != (path in CALLS_RAISE):
                wrong.append((name, ours))
    assert not wrong


@pytest.mark.parametrize("page", PAGES)
def test_each_name_is_in_the_file_that_tests_it(page):
    missing = []
    for name, ours, path in rows(page):
        word = re.split(r"[./]", name.replace("_<dtype>", "").removesuffix(".__call__"))[-1]
        tested = ours.startswith("not available") or re.search(rf"(?<![a-zA-Z]){word}", (ROOT / "tests/python" / path).read_text())
        if not tested:
            missing.append((name, path))
    assert not missing


def columns(page):
    """{backend: names that work there} by the last four columns."""
    working = {backend: set() for backend in BACKENDS}
    for line in PAGES[page].read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 7 and cells[0].startswith("`"):
            names = set(re.findall(r"`([^`]+)`", cells[0]))
            for backend, cell in zip(BACKENDS, cells[3:]):
                assert cell in ("yes", "no") or cell.startswith("not: "), line
                assert cell == "no" or not cells[1].startswith("not available"), line
                lacking = set(re.findall(r"`([^`]+)`", cell))
                assert lacking <= names, line
                working[backend] |= {(line, name) for name in names - lacking if cell != "no"}
    return working


@pytest.mark.parametrize("page", PAGES)
def test_the_page_counts_the_names_that_work(page):
    total, counts = len(list(rows(page))), [str(len(names)) for names in columns(page).values()]
    assert f"| names that work, of {total} | {' | '.join(counts)} |" in PAGES[page].read_text()


def test_nine_of_ten_names_of_pycuda_work_on_each_backend_with_a_compiler_for_cuda():
    total, working = len(list(rows("pycuda-names.md"))), columns("pycuda-names.md")
    assert {backend: len(working[backend]) for backend in ("cuda", "hip", "host") if len(working[backend]) < 0.9 * total} == {}


def test_every_name_of_pygpu_works_on_each_backend_but_for_cudas_interface():
    names, only_cudas = {name for name, *_ in rows("compat-names.md")}, {"GPUArray.__cuda_array_interface__"}
    missing = {backend: names - {name for _, name in found} for backend, found in columns("compat-names.md").items()}
    assert missing == {"cuda": set(), "hip": set(), "host": only_cudas, "ze": only_cudas}
