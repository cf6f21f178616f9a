"""docs/reference/formats.md lists exactly the members of the JSON that gpuglue writes: a renamed member breaks programs."""

import json
import os
import re
import subprocess
import sys

import pytest
from blocks import BUILT, HANG, ROOT

PAGE = (ROOT / "docs/reference/formats.md").read_text()
SIMULATED = {
    "GPUGLUE_BACKEND": "cuda,host",
    "GPUGLUE_CUDA_LIBRARY": str(BUILT / "sim/cuda/libcuda.so.1"),
    "GPUGLUE_SIM_MONITOR": "1",
    "GPUGLUE_NVML_LIBRARY": str(BUILT / "sim/monitor/libnvidia-ml.so.1"),
}
TOP = {"version", "library", "python", "probe", "backends", "default", "note", "devices"}  # of gpuglue info
NAMED = re.compile(r"(modules|cgroup|limits|packages|variables|absent|names)$")  # objects with a value for each name
VARYING = re.compile(r"(calls|rows)(\.\*)?$|slots\[\]\.backends$")  # objects with an object for each name


def listed(title):
    """{object: (members that are always there, all members)} of the tables below a heading."""
    text = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)[1]
    objects = {}
    for name, cell in re.findall(r"^\| (?:`([^`]+)` )?\| (.*) \|$", text, re.M):
        words = re.findall(r"`(\w+\??)`", re.sub(r"\([^)]*\)", "", cell))
        if words:
            objects[name] = {word for word in words if word[-1] != "?"}, {word.rstrip("?") for word in words}
    return objects


def found(value, place=""):
    """(place, members) of each object in a JSON value."""
    if isinstance(value, list):
        for each in value:
            yield from found(each, place + "[]")
    elif isinstance(value, dict) and not NAMED.search(place):
        varying = VARYING.search(place)
        if not varying:
            yield place, set(value)
        for name, each in value.items():
            yield from found(each, f"{place}.{'*' if varying else name}".lstrip("."))


def compare(title, values, more=None):
    """Each object has the members of its row and no others, and each row was seen."""
    objects = listed(title) | (more or {})
    seen: dict[str, list[set[str]]] = {}
    for place, members in (pair for value in values for pair in found(value)):
        seen.setdefault(place, []).append(members)
    assert seen.keys() == objects.keys()
    for place, (always, possible) in objects.items():
        assert all(always <= members <= possible for members in seen[place]), (title, place, seen[place])


def output(code, *arguments, **environment):
    command = [sys.executable, "-P", *(["-m", "gpuglue"] if code is None else ["-c", code]), *arguments]
    done = subprocess.run(command, env=os.environ | SIMULATED | environment, capture_output=True, text=True, timeout=HANG)
    return json.loads(done.stdout)


def exact(names):
    return names, names


def test_the_json_of_info_has_the_members_of_the_page():
    compare("gpuglue info --json", [output(None, "info", "--json", "--slots", "--timeout", str(HANG))],
            {"": exact(TOP | {"sources", "slots"})})
    assert output(None, "info", "--json", "--timeout", str(HANG)).keys() == TOP == listed("gpuglue info --json")[""][0]
    assert output(None, "info", "--json", "--probe", "passive").keys() == TOP - {"default", "note", "devices"}


def test_the_json_of_doctor_has_the_members_of_the_page(tmp_path):
    """On a machine of directories, which has a GPU, a device node, a variable for MPS and something to warn of."""
    for name, text in {"class": "0x030000", "vendor": "0x10de"}.items():
        file = tmp_path / "sys/bus/pci/devices/0000:01:00.0" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvidia0").touch()
    code = f"from gpuglue._doctor import examine, Machine; examine(Machine({str(tmp_path)!r}), timeout={HANG}, as_json=True)"
    one = output(code, CUDA_MPS_PIPE_DIRECTORY="/nowhere", GPUGLUE_CACHE_DIR="relative")
    of_info = listed("gpuglue info --json")["backends[]"][0]
    compare("gpuglue doctor --json", [one], {"backends[]": exact(of_info | {"cause", "command"})})


def test_the_json_of_top_has_the_members_of_the_page():
    compare("gpuglue top --json", [output(None, "top", "--once", "--json")])


def test_the_json_of_bench_has_the_members_of_the_page():
    one = output(None, "bench", "--json", "--seconds", "0.01", "--max-bytes", "65536")
    compare("gpuglue bench --json", [one], {"copies[].rows.*.*": listed("gpuglue bench --json")["calls.*.*"]})


@pytest.mark.parametrize("name", ["config", "docs", "pycuda"])
def test_the_json_of_other_subcommands_has_the_members_of_the_page(name, tmp_path):
    one = output(None, name, "--json", XDG_DATA_HOME=str(tmp_path))
    members = set(one).union(*one.get("pages", []))
    assert members == listed("Other subcommands")[f"gpuglue {name} --json"][1]


def test_a_recording_has_the_members_of_the_page(tmp_path):
    code = ("import gpuglue as gg, json, warnings, sys\nwith gg.trace(sys.argv[1], device_times=True), gg.range('r'):\n"
            "    gg.to_gpu([1.0]).get()\n    try: gg.empty(1 << 50, 'u1')\n    except gg.Error: pass\nprint(open(sys.argv[1]).read())\n")
    one = output(code, str(tmp_path / "run.json"))
    compare("Recordings", [one])
    arguments = set().union(*(event.get("args", {}) for event in one["traceEvents"]))
    assert arguments == listed("Recordings")["traceEvents[].args"][1]
    assert set().union(*one["traceEvents"]) == listed("Recordings")["traceEvents[]"][1]


def test_a_renamed_member_and_an_unlisted_one_are_found():
    member = "dropped_records"
    value = {"displayTimeUnit": "ns", "traceEvents": [{"name": "", "ph": "X", "pid": 1, "tid": 1, "args": {}}],
             "otherData": {"producer": "", "clock": "", "unix_minus_clock_s": 0.0, member: 0}}
    compare("Recordings", [value])
    value["otherData"]["lost_records"] = value["otherData"][member]
    with pytest.raises(AssertionError, match="lost_records"):
        compare("Recordings", [value])
    del value["otherData"][member]
    with pytest.raises(AssertionError, match="lost_records"):
        compare("Recordings", [value])
