"""How gpuglue handles faults that the model injects: queues that do not advance, out of memory, a lost queue."""

import os
import subprocess
import sys
import textwrap

import pytest


def run(tmp_path, program):
    """Run a program; `control` is the model's control directory."""
    start = f"import pathlib, gpuglue as gg, numpy as np\ncontrol = pathlib.Path({str(tmp_path)!r})\ndevice = gg.Device('hip:0')\n"
    environment = {**os.environ, "GPUGLUE_TEST_MODEL_CONTROL": str(tmp_path)}
    command = [sys.executable, "-c", start + textwrap.dedent(program)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


def output(tmp_path, program):
    result = run(tmp_path, program)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout.split()


def test_held_queues_advance_when_they_are_released(tmp_path):
    assert output(tmp_path, """
        x = gg.zeros(1 << 20, np.uint8, device=device)
        device.synchronize()
        (control / "hold").touch()
        stream = gg.Stream(device)
        event = gg.Event(device)
        x.fill(7, stream=stream)
        event.record(stream)
        print(event.done)
        (control / "hold").unlink()
        event.synchronize()
        print(event.done, (x.get() == 7).all())
    """) == ["False", "True", "True"]


def test_out_of_memory_is_reported_and_memory_can_be_freed_again(tmp_path):
    (tmp_path / "memory").write_text(str(256 << 20))
    assert output(tmp_path, """
        held = [gg.empty(64 << 20, np.uint8, device=device) for _ in range(3)]
        try:
            more = gg.empty(128 << 20, np.uint8, device=device)
        except gg.OutOfMemoryError:
            print("out")
        (control / "memory").unlink()
        print(gg.empty(128 << 20, np.uint8, device=device).nbytes >> 20)
    """) == ["out", "128"]


@pytest.mark.parametrize("call", ["x.fill(1)\ndevice.synchronize()", "x.fill(1)\nx.get()"])
def test_a_lost_queue_is_reported(tmp_path, call):
    result = run(tmp_path, f"""
        x = gg.zeros(1 << 20, np.uint8, device=device)
        device.synchronize()
        (control / "lost").touch()
        try:
            {call.replace(chr(10), chr(10) + ' ' * 12)}
        except gg.Error as error:
            print(type(error).__name__)
    """)
    assert "Error" in result.stdout, (result.returncode, result.stdout, result.stderr)

