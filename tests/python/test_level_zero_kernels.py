"""What Level Zero's driver reports of kernels, beyond what every driver does."""

import json

import pytest
from test_level_zero import sim  # noqa: F401

ATTRIBUTES = """
import gpuglue as gg, numpy as np, kernels
device = gg.Device("ze:0"); scale = kernels.load(device)["scale"]
print([scale.attributes.get(name) for name in ("max_threads_per_block", "registers", "spill_size", "local_size")])
print(device.attributes["threads_per_multiprocessor"])
x = gg.zeros(600, "f4")
try: scale(x, 600, 3.0, grid=1, block=600)
except gg.InvalidArgumentError as error: print("512" in str(error))
"""


def test_a_kernel_has_the_registers_spills_and_largest_block_that_the_driver_reports(sim):  # noqa: F811
    assert sim(ATTRIBUTES).splitlines() == ["[512, 256, 32, 96]", "3584", "True"]  # 16 units of 7 threads of 32


def test_an_older_driver_reports_no_registers_and_the_limit_of_the_device(sim):  # noqa: F811
    assert sim(ATTRIBUTES, driver="old").splitlines() == ["[1024, None, 32, 96]", "3584"]


@pytest.mark.parametrize("driver", ["new", "old"])
def test_a_kernel_takes_one_call_for_its_properties(sim, driver, tmp_path):  # noqa: F811
    report = tmp_path / "report"
    sim("import gpuglue as gg, kernels; kernels.load(gg.Device('ze:0'))['scale']", driver=driver, GPUGLUE_SIM_REPORT=str(report))
    calls = json.loads(report.read_text())["calls"]
    assert calls["zeKernelGetProperties"] == calls["zeKernelCreate"] == 1
