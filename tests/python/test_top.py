"""gpuglue top: what it prints of the devices, and how it ends."""

import json
import os
import pty
import re
import signal
import subprocess
import sys

import pytest
from conftest import HANG

import gpuglue as gg


def command(*options):
    return [sys.executable, "-P", "-m", "gpuglue", "top", *options]


def top(*options, **environment):
    done = subprocess.run(command(*options), capture_output=True, text=True, timeout=HANG, env={**os.environ, **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_each_device_of_each_backend_is_a_line(backend):
    lines = top("--once").splitlines()
    assert lines[0].split()[:3] == ["device", "name", "load"]
    named = [line.split()[0] for line in lines[1:] if not re.match(r"\w+:\d+: ", line)]  # those are reasons
    assert [name for name in named if name.startswith(f"{backend}:")] == [f"{backend}:{device.ordinal}" for device in gg.devices(backend)]


def test_the_json_has_each_device_with_its_values_or_the_error(backend):
    found = json.loads(top("--once", "--json"))
    assert found["version"] == gg.__version__ and found["time"] > 0
    rows = {row["device"]: row for row in found["devices"]}
    assert f"{backend}:0" in rows
    for row in rows.values():
        assert "device_stats" in row["error"] if row["error"] else row["source"]
        assert row["memory_total"] is None or row["memory_total"] > row["memory_used"] > 0


def test_values_from_counters_are_known_at_once(backend):
    rows = json.loads(top("--once", "--json"))["devices"]
    assert all(row["compute_utilization"] is not None for row in rows if row["source"])


def test_json_without_once_is_an_object_on_each_line(backend):
    readings = [json.loads(line) for line in top("--json", "--interval", "0.01", "--count", "3").splitlines()]
    assert len(readings) == 3 and readings[0]["time"] <= readings[2]["time"]


def test_the_text_for_prometheus_is_in_its_format(backend):
    text = top("--once", "--prometheus")
    sample = re.compile(r'gpuglue_device_(\w+)\{device="[^"]+"(,\w+="(\\.|[^"\\])*")*\} -?[0-9.e+]+')
    seen, current = set(), None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            current = line.split()[2]
            assert current not in seen  # the samples of a metric stand together
            seen.add(current)
        elif line.startswith("# TYPE "):
            assert line == f"# TYPE {current} gauge"
        else:
            assert sample.fullmatch(line) and line.startswith(current + "{")
    assert text.endswith("\n") and "gpuglue_device_up" in seen


def test_prometheus_gets_base_units_and_escaped_labels():
    from gpuglue import _top

    row = dict.fromkeys(_top.VALUES) | {"device": "x:0", "name": 'a "b"\\', "uuid": None, "pci_bus_id": None, "error": None}
    row |= {"compute_utilization": 40.0, "compute_clock": 1500.0, "processes": [{"pid": 7, "memory": None}]}
    text = _top.prometheus({"devices": [row]})
    assert 'gpuglue_device_compute_utilization_ratio{device="x:0",name="a \\"b\\"\\\\"} 0.4' in text
    assert "gpuglue_device_compute_clock_hertz" in text and "} 1500000000" in text
    assert "power" not in text and "process_memory" not in text


def test_an_interrupt_ends_it_with_status_0(backend):
    process = subprocess.Popen(command("--interval", "0.01"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline().startswith("device")
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=HANG)
    assert (process.returncode, errors) == (0, "")


@pytest.mark.parametrize("interval", ["0", "-1", "nan", "x"])
def test_an_interval_that_is_not_a_time_is_refused(interval):
    done = subprocess.run(command("--interval", interval), capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 2 and "--interval" in done.stderr


def on_a_terminal(*options, **environment):
    """The output on a pseudo-terminal."""
    try:
        ours, theirs = pty.openpty()
    except OSError as error:
        pytest.skip(f"there are no pseudo-terminals: {error}")
    process = subprocess.Popen(
        command(*options), stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "160", **environment},
    )  # fmt: skip
    os.close(theirs)
    parts = []
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        parts.append(part)
    os.close(ours)
    _, errors = process.communicate(timeout=HANG)
    assert process.returncode == 0, errors
    return b"".join(parts).decode()


def test_a_terminal_gets_a_table_in_place_if_rich_is_installed(backend):
    pytest.importorskip("rich")
    text = on_a_terminal("--interval", "0.01", "--count", "2")
    assert f"{backend}:0" in text and "\x1b[" in text and "throttled" in text


def test_a_terminal_gets_lines_without_rich(backend, tmp_path):
    (tmp_path / "rich").mkdir()
    (tmp_path / "rich" / "__init__.py").write_text("raise ImportError('not here')")
    paths = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    text = on_a_terminal("--interval", "0.01", "--count", "2", PYTHONPATH=paths)
    assert len(re.findall(f"^{backend}:0  ", text, re.M)) == 2 and "\x1b[" not in text


def test_the_text_of_an_error_is_not_read_as_markup_of_a_terminal():
    pytest.importorskip("rich")
    import rich.table
    import rich.text

    from gpuglue import _top

    row = dict.fromkeys(_top.VALUES) | {"device": "cuda:0", "name": None, "error": "there is no [/dev/nvidia0]"}
    assert str(_top.rich_table(rich, {"devices": [row]}).caption) == "cuda:0: there is no [/dev/nvidia0]"
