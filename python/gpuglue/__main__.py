"""python -m gpuglue: which backends and devices there are, and why others are missing."""

import argparse
import json
import os
import sys
import warnings

import gpuglue
from gpuglue import _probe

LEVELS = ("passive", "active", "isolated")


def main():
    parser = argparse.ArgumentParser(prog="python -m gpuglue", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--probe", choices=LEVELS, default="active", help="how closely to look (default: active)")
    parser.add_argument("--timeout", type=float, default=10.0, help="seconds for --probe isolated")
    options = parser.parse_args()
    found = look(options.probe, options.timeout)
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        print("\n".join(lines(found)))


def look(level, timeout):
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
        found["devices"] = devices(infos)
    return found


def default():
    """The default backend's name or None, and what there is to say about it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            name = gpuglue.default_backend()
        except gpuglue.Error as error:
            return None, str(error)
    return name, "; ".join(str(warning.message) for warning in caught)


def devices(infos):
    """Each device that can be described; one that cannot must not hide the rest."""
    return [describe(device) for info in infos if info.status == "available" for device in gpuglue.devices(info.name)]


def describe(device):
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
    except gpuglue.Error as error:
        row["error"] = str(error)
    return row


def lines(found):
    yield f"gpuglue {found['version']} ({found['library']}), Python {found['python']}, {found['probe']} probe"
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
    rest = [row["arch"], memory, row["pci_bus_id"], row["uuid"]]
    if row["numa_node"] is not None:
        rest.append(f"NUMA node {row['numa_node']}")
    return f"    {row['name']:7} {row['device']}  " + "  ".join(filter(None, rest))


if __name__ == "__main__":
    try:
        main()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
