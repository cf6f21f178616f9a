"""gpuglue info: the available backends and devices, and why others are missing."""

import json
import sys
import time
import warnings

import gpuglue
from gpuglue import _probe, _slots

LEVELS = ("passive", "active", "isolated")


def add_options(parser):
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--slots", action="store_true", help="print the operations of each backend, and from which driver version on")
    parser.add_argument("--probe", choices=LEVELS, help="how thoroughly to probe (default: active, in a child process)")
    parser.add_argument("--timeout", type=float, help="seconds for a child process (default: 60; isolated: 10)")


def main_of(options):
    if options.probe or not sys.executable:
        found = report(options.probe or "active", 10.0 if options.timeout is None else options.timeout, options.slots)
    else:
        found = report_of_child(60.0 if options.timeout is None else options.timeout, options.slots)
    text = _slots.lines if options.slots else lines
    print(json.dumps(found, indent=2) if options.json else "\n".join(text(found)))
    return 0


def report_of_child(timeout, slots):
    """An active probe in a child process: where a driver hangs or crashes there, each backend is probed alone."""
    _probe.check_timeout(timeout)
    child = _probe.start(["--slots"] if slots else [], {}, "gpuglue._info", errors=None)
    found = _probe.finish(child, time.monotonic() + timeout, timeout)
    if isinstance(found, dict):
        return found
    alone = report("isolated", timeout, slots)
    alone["problem"] = f"the active probe: {found[0]}: {found[1]}; `gpuglue doctor` names the cause"
    return alone


def report(level, timeout, slots=False):
    infos = gpuglue.backends(level, timeout=timeout)
    found = {
        "version": gpuglue.__version__,
        "library": gpuglue._core._library()[0],
        "python": sys.version.split()[0],
        "probe": level,
        "backends": [_probe.as_dict(info) for info in infos],
    }
    if level == "active":  # the others must not initialise a driver in this process
        found["default"], found["note"] = default()
        found["devices"] = devices(infos, slots)
    if slots:
        found |= _slots.table()
    return found


def default():
    """The default backend's name or None, and a remark about it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            name = gpuglue.default_backend()
        except gpuglue.Error as error:
            return None, str(error)
    return name, "; ".join(str(warning.message) for warning in caught)


def devices(infos, slots):
    """Each device that can be described; one that cannot must not hide the rest."""
    found = (device for info in infos if info.status == "available" for device in gpuglue.devices(info.name))
    return [describe(device, slots) for device in found]


def describe(device, slots):
    row = {"name": f"{device.backend}:{device.ordinal}"}
    try:
        row |= {
            "device": device.name,
            "arch": device.arch,
            "total_memory": device.total_memory,
            "pci_bus_id": device.pci_bus_id,
            "uuid": device.uuid,
            "numa_node": device.numa_node,
        }
        if slots:  # this opens the device
            row["lacks"] = _slots.lacks(device)
    except gpuglue.Error as error:
        row["error"] = str(error)
    return row


def lines(found):
    yield f"gpuglue {found['version']} ({found['library']}), Python {found['python']}, {found['probe']} probe"
    if "problem" in found:
        yield found["problem"]
    yield ""
    for info in found["backends"]:
        yield from backend_lines(info)
    if "devices" in found:
        yield ""
        yield f"default backend: {found['default'] or 'none'}"
        if found["note"]:
            yield f"    {found['note']}"
        yield "devices:" if found["devices"] else "devices: none"
        yield from (device_line(row) for row in found["devices"])


def backend_lines(info):
    count = {None: "", 1: ", 1 device"}.get(info["devices"], f", {info['devices']} devices")
    yield f"{info['name']:6} {info['status']}{count}"
    if info["reason"]:
        yield f"    reason: {info['reason']}"
    if info["library"]:
        version = f" (version {info['version']})" if info["version"] else ""
        how = f", found by: {info['found_by']}" if info["found_by"] else ""
        yield f"    library: {info['library']}{version}{how}"
    if info["plugin"]:
        yield f"    plugin: {info['plugin']} ({info['plugin_version']})"
    yield from (f"    note: {note}" for note in info["notes"])
    if info["status"] not in ("available", "disabled"):
        yield from (f"    tried {path}: {outcome}" for path, outcome in info["tried"])


def device_line(row):
    if "error" in row:
        return f"    {row['name']}: {row['error']}"
    memory = f"{row['total_memory'] / 2**30:.1f} GiB"
    rest = [row["device"], row["arch"], memory, row["pci_bus_id"], row["uuid"]]
    if row["numa_node"] is not None:
        rest.append(f"NUMA node {row['numa_node']}")
    return f"    {row['name']:7} " + "  ".join(filter(None, rest))


if __name__ == "__main__":
    _probe.answer(lambda: report("active", 10.0, "--slots" in sys.argv))
