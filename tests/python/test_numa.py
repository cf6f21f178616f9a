"""NUMA nodes: of devices, of the processors of the process, and of memory; a device of host for each node. A preloaded library replaces the files of /sys."""

import os

import numpy as np
import pytest
from conftest import nodes, run_python, succeeds

import gpuglue as gg


@pytest.fixture
def machine(tmp_path):
    """Runs code on a machine with these nodes: {number: its processors}."""

    def run(processors, code, **environment):
        root = tmp_path / "sys/devices/system/node"
        for number, cpus in processors.items():
            (root / f"node{number}").mkdir(parents=True, exist_ok=True)
            (root / f"node{number}/cpulist").write_text(cpus + "\n")
            (root / f"node{number}/meminfo").write_text(f"Node {number} MemTotal:  {(number + 1) << 20} kB\n")
        every = f"0-{len(processors) - 1}\n" if len(processors) > 1 else "0\n"
        (root / "online").write_text(every)
        (root / "has_memory").write_text(every)
        return succeeds(run_python(code, GPUGLUE_TEST_SYSFS=str(tmp_path), **nodes("/dev/none=absent"), **environment))

    return run


MINE = ",".join(map(str, sorted(os.sched_getaffinity(0))))
NODE = "import gpuglue as gg; print(gg.Device('host').numa_node)"


@pytest.mark.parametrize("processors, node", (({0: MINE}, 0), ({0: "60000-60001", 1: MINE}, 1), ({0: MINE, 1: MINE}, None), ({0: ""}, None)))
def test_the_node_of_host_is_that_of_all_processors_of_the_process(machine, processors, node):
    assert machine(processors, NODE) == str(node)


def test_a_machine_that_reports_no_nodes_is_not_an_error(tmp_path):
    assert succeeds(run_python(NODE, GPUGLUE_TEST_SYSFS=str(tmp_path), **nodes("/dev/none=absent"))) == "None"


PINNED = """
import gpuglue as gg
device = gg.Device({device!r})
gg.alloc_pinned(20 << 20, device)
print(device.numa_node)
"""


@pytest.fixture
def address(device):
    if device.pci_bus_id is None or "Simulated" not in device.name:
        pytest.skip("a simulated device on a bus")
    return device.pci_bus_id


def policies(machine, tmp_path, device, address, processors, **environment):
    place = tmp_path / "sys/bus/pci/devices" / address
    place.mkdir(parents=True)
    (place / "numa_node").write_text("1\n")
    written = tmp_path / "policies"
    code = PINNED.format(device=f"{device.backend}:{device.ordinal}")
    assert machine(processors, code, GPUGLUE_TEST_POLICIES=str(written), **environment) == "1"
    return written.read_text().splitlines() if written.exists() else []


def test_pinned_memory_is_allocated_on_the_node_of_its_device(machine, tmp_path, device, address):
    first, second, *_ = policies(machine, tmp_path, device, address, {0: MINE, 1: "60000"})
    assert first == "1 2"  # MPOL_PREFERRED, node 1
    assert second.startswith("0 ")  # what it was: MPOL_DEFAULT


def test_a_machine_with_one_node_needs_no_policy(machine, tmp_path, device, address):
    assert policies(machine, tmp_path, device, address, {0: MINE}) == []


@pytest.mark.parametrize("mode", ("2", "4", "32769"))  # MPOL_BIND, MPOL_LOCAL, MPOL_PREFERRED with MPOL_F_STATIC_NODES
def test_a_memory_policy_of_the_user_is_kept(machine, tmp_path, device, address, mode):
    assert policies(machine, tmp_path, device, address, {0: MINE, 1: "60000"}, GPUGLUE_TEST_POLICY=mode) == []


# ---- a device of host for each node ------------------------------------------------------------------------------

DEVICES = """
import gpuglue as gg
for device in gg.devices("host"):
    print(device.ordinal, device.numa_node, device.total_memory >> 20, device.attributes["multiprocessors"], device.uuid)
"""


def test_each_node_with_processors_of_the_process_is_a_device(machine):
    nodes_ = {0: MINE, 1: "60000-60001", 2: MINE}
    lines = [line.split() for line in machine(nodes_, DEVICES, GPUGLUE_HOST_DEVICES="numa", GPUGLUE_HOST_THREADS=None).splitlines()]
    (first, second), own = lines, machine({0: MINE}, DEVICES, GPUGLUE_HOST_DEVICES=None).split()[4]
    assert (first[:3], second[:3]) == (["0", "0", "1024"], ["1", "2", "3072"])
    assert len({first[4], second[4], own}) == 3 and first[3] == second[3]


@pytest.mark.parametrize("value", [None, "1"])
def test_without_the_variable_there_is_one_device(machine, value):
    assert len(machine({0: MINE, 1: MINE}, DEVICES, GPUGLUE_HOST_DEVICES=value).splitlines()) == 1


def test_another_value_is_reported_and_there_is_one_device():
    result = run_python(DEVICES, GPUGLUE_HOST_DEVICES="4")
    assert len(result.stdout.splitlines()) == 1
    assert "GPUGLUE_HOST_DEVICES=4 is not understood: expected 1 or numa; using one device" in result.stderr


def test_the_threads_of_a_device_run_on_the_processors_of_its_node(machine):
    processors = sorted(os.sched_getaffinity(0))
    if len(processors) < 2:
        pytest.skip("one processor")
    nodes_ = {0: str(processors[0]), 1: ",".join(map(str, processors[1:]))}
    assert machine(nodes_, THREADS, GPUGLUE_HOST_DEVICES="numa") == str([[processors[0]], processors[1:]])


THREADS = """
import os, gpuglue as gg
found = []
for device in gg.devices("host"):
    before = set(os.listdir("/proc/self/task"))
    stream = gg.Stream(device)
    gg.zeros(1000, device=device).fill(1, stream=stream)
    stream.synchronize()
    new = [int(task) for task in os.listdir("/proc/self/task") if task not in before]
    new = [task for task in new if "gpuglue-host" in open(f"/proc/self/task/{task}/comm").read()]
    found.append(sorted(set().union(*(os.sched_getaffinity(task) for task in new))))
print(found)
"""


def test_the_memory_of_a_device_is_bound_to_its_node(machine, tmp_path):
    code = "import gpuglue as gg; gg.alloc(20 << 20, gg.Device('host:1')); gg.alloc(4 << 20, gg.Device('host:0'))"
    machine({0: MINE, 1: MINE}, code, GPUGLUE_HOST_DEVICES="numa", GPUGLUE_TEST_POLICIES=str(tmp_path / "policies"))
    ranges = [line for line in (tmp_path / "policies").read_text().splitlines() if line.startswith("range")]
    assert ranges == ["range 1 2", "range 1 1"]  # MPOL_PREFERRED, node 1, then node 0


def test_one_device_with_all_nodes_binds_nothing(machine, tmp_path):
    machine({0: MINE, 1: MINE}, "import gpuglue as gg; gg.alloc(20 << 20, gg.Device('host:0'))", GPUGLUE_TEST_POLICIES=str(tmp_path / "policies"))
    assert not (tmp_path / "policies").exists()


BETWEEN = """
import numpy as np, gpuglue as gg
first, second = gg.devices("host")
a = gg.arange(600_000, device=first).reshape(1000, 600)
b = a[:, ::2].to_device(second)
c = gg.zeros((1000, 300), a.dtype, device=first)
gg.copy(c, b)
print(b.device.ordinal, first.can_access(second), (b.get() == a.get()[:, ::2]).all(), (c.get() == b.get()).all())
print(gg.pointer_info(b.ptr).device.ordinal)
"""


def test_devices_of_two_nodes_copy_directly(machine):
    assert machine({0: MINE, 1: MINE}, BETWEEN, GPUGLUE_HOST_DEVICES="numa").splitlines() == ["1 True True True", "1"]


# ---- memory -----------------------------------------------------------------------------------------------------


def test_a_buffer_has_the_node_of_its_memory_or_none(device):
    for buffer in (gg.alloc_pinned(4096, device), gg.alloc(4096, device)):
        assert buffer.numa_node is None or buffer.numa_node >= 0
    with pytest.raises(ValueError, match="closed"):
        buffer.close()
        buffer.numa_node  # noqa: B018


def test_memory_of_host_has_a_node_once_it_is_touched():
    if not os.path.exists("/sys/devices/system/node/node0"):
        pytest.skip("this machine reports no nodes")
    with gg.alloc_pinned(4096, gg.Device("host")) as buffer:
        np.asarray(buffer)[...] = 1
        if buffer.numa_node is None:
            pytest.skip("the system refuses move_pages")
        assert os.path.isdir(f"/sys/devices/system/node/node{buffer.numa_node}")
