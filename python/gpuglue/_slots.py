"""The table of `gpuglue info --slots`: each operation of each backend. The build generates _slots.json from the backends."""

import json
from importlib import resources

MARGIN = "    "


def table():
    return json.loads(resources.files("gpuglue").joinpath("_slots.json").read_text(encoding="utf-8"))


def lacks(device):
    """The operations that the backend has, and this device's driver or this device has not."""
    rows = table()["slots"]
    return [row["slot"] for row in rows if row["backends"].get(device.backend, {}).get("since") and not device.supports(row["slot"])]


def lines(found):
    """The table, the reasons by number, and what the devices of this machine lack."""
    rows, notes = found["slots"], []
    names = list(rows[0]["backends"])
    yield f"{'operation':27}" + "".join(f"{name:11}" for name in names).rstrip()
    for row in rows:
        cells = [cell(name, row["backends"][name], notes) for name in names]
        yield f"{row['slot'] + ('' if row['required'] else '?'):27}" + "".join(f"{text:11}" for text in cells).rstrip()
    yield ""
    yield "?: a plugin may lack it.  -: the backend does not have it.  A number: the oldest version of the driver (of Level Zero: the API)."
    yield from (f"[{i}] {text}" for i, text in enumerate(notes, 1))
    yield ""
    for row in found.get("devices", ()):
        missing = row.get("error") or ", ".join(row["lacks"])
        yield f"{row['name']}: " + (f"does not support {missing}" if missing else "supports every operation of its backend")


def cell(name, it, notes):
    text = f"{name}: {it['reason']} ({it['source']})" if not it["since"] else it["needs"] and f"{name}: needs {it['needs']}"
    if text and text not in notes:
        notes.append(text)
    version = {None: "-", "any": "yes"}.get(it["since"], it["since"])
    return f"{version} [{notes.index(text) + 1}]" if text else version
