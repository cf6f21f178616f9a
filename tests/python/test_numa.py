"""NUMA nodes: of devices, of the processors of the process, and of memory. A preloaded library replaces the files of /sys."""

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
            (root / f"node{number}").mkdir(parents=True)
            (root / f"node{number}/cpulist").write_text(cpus + "\n")
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
