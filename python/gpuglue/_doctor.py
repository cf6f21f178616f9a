"""gpuglue doctor: why a backend does not work, and the command that corrects it.

Each backend is probed in a child process with a time limit, so that a driver that hangs or crashes is one line of the
report. The exit status is 0 if everything required works, else 1."""

import json
import sys

import gpuglue
from gpuglue import _core, _probe
from gpuglue import _doctor_rules as rules
from gpuglue._doctor_case import ALIASES, Case
from gpuglue._machine import Machine


def add_options(parser):
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--require", metavar="NAME[,NAME…]", default="", help="backends that must all work (default: what GPUGLUE_BACKEND selects)"
    )
    parser.add_argument("--timeout", type=float, default=30.0, help="seconds for all probes together (default: 30)")


def main_of(options):
    return examine(Machine(), options.require, options.timeout, options.json)


def examine(machine, require="", timeout=30.0, as_json=False):
    """Print the report, and return the exit status."""
    say = (lambda line: None) if as_json else (lambda line: print(line, flush=True))
    for line in machine_lines(machine):
        say(line)
    warnings = machine_warnings(machine)
    for cause, command in warnings:
        say(f"warning: {cause}\n    {command}")
    findings = []
    for finding in diagnose(machine, timeout):
        findings.append(finding)
        say("\n".join(["", *finding_lines(finding)]))
    ok, verdict = judge(findings, require, machine.environ)
    say(f"\n{verdict}")
    if as_json:
        print(json.dumps(as_dict(machine, warnings, findings, ok, verdict), indent=2))
    return 0 if ok else 1


# ---- the machine ----


def machine_lines(machine):
    numpy = machine.packages.get("numpy")
    yield f"gpuglue {gpuglue.__version__}, Python {sys.version.split()[0]}, {f'NumPy {numpy}' if numpy else 'no NumPy'}"
    facts = machine.as_dict()
    yield f"kernel: {facts['kernel']}, {facts['libc']}, user id {facts['user']}"
    yield f"surroundings: {', '.join(surroundings(machine)) or 'no container, no WSL, no batch job'}"
    yield "GPUs on the PCI bus: " + pci_line(machine.gpus)
    yield "kernel modules: " + (", ".join(f"{name} {version}".strip() for name, version in machine.modules.items()) or "none")
    yield "device nodes: " + (", ".join(map(node_line, machine.nodes)) or "none")
    yield "limits: " + (", ".join(f"{name} {value}" for name, value in limits(machine)) or "none")
    yield "packages: " + (", ".join(f"{name} {version}" for name, version in machine.packages.items() if name != "numpy") or "none")
    yield "variables:" + (" none" if not machine.variables else "")
    yield from (f"    {name}={value}" for name, value in machine.variables.items())


def surroundings(machine):
    yield from filter(None, (machine.container and f"container ({machine.container})", "WSL" if machine.wsl else "", machine.scheduler))
    if machine.mps:
        yield f"MPS in {machine.mps['directory']}, " + ("running" if machine.mps["running"] else "not running")
    if machine.mig:
        yield "MIG instances"


def pci_line(gpus):
    if gpus is None:
        return "not readable"
    return ", ".join(f"{gpu['vendor']} {gpu['address']} ({gpu['driver'] or 'no driver'})" for gpu in gpus) or "none"


def node_line(node):
    right = "" if node["usable"] else ", not usable by this user"
    return f"{node['path']} ({node['error'] or node['mode'] + ' ' + node['group']}{right})"


def limits(machine):
    yield from ((name, with_unit(name, value)) for name, value in machine.limits.items())
    yield from ((f"{name} of the control group", with_unit(name, value)) for name, value in machine.cgroup.items())


def with_unit(name, value):
    return value if name in ("open files", "processes") else f"{value} bytes"


def machine_warnings(machine):
    """(cause, command) of what is wrong whatever the backend."""
    found = [unknown_variable(name, near) for name, near in machine.misspelt]
    return found + rules.all_of(rules.MACHINE, Case(machine))


def unknown_variable(name, near):
    hint = f": did you mean {near}?" if near else ""
    return f"{name} is not a variable of gpuglue{hint}", f"unset {name}" if not near else f"export {near}=…; unset {name}"


# ---- the backends ----


def diagnose(machine, timeout):
    """A finding per backend, as soon as it is known."""
    try:
        known = []
        for info in _probe.records(False, timeout):
            if not info.status.startswith("plugin-"):
                known.append(info.name)
            yield finding(machine, info, known)
    except (_core.Error, OSError) as error:  # no process can be started, say
        yield finding(machine, _probe.blank("gpuglue", 0, "crashed", str(error)), [])


def finding(machine, info, known):
    if info.status == "available":
        return {"info": info, "cause": "", "command": ""}
    cause, command = rules.first(rules.BACKEND, Case(machine, info, known))
    return {"info": info, "cause": cause, "command": command}


def finding_lines(found):
    info = found["info"]
    count = {None: "", 1: ", 1 device"}.get(info.devices, f", {info.devices} devices")
    if info.status == "available":
        version = f" {info.version}" if info.version else ""
        yield f"{info.name}: works{count}{f' ({info.library}{version})' if info.library else ''}"
    else:
        yield f"{info.name}: {found['cause']}"
        yield f"    {found['command']}"
        if info.status != "disabled":  # the cause is all there is to say
            yield f"    {info.status}: {info.reason}"
    yield from (f"    note: {note}" for note in info.notes)


# ---- the verdict ----


def names_of(text):
    """Backends in a list of names, with aliases resolved."""
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    return [ALIASES.get(name, name) for name in names]


def judge(findings, require, environ):
    """(whether all that is required works, a sentence)."""
    working = {found["info"].name: found["info"].devices for found in findings if found["info"].status == "available"}
    if require:
        missing = [name for name in names_of(require) if name not in working]
        return not missing, f"required and not working: {', '.join(missing)}" if missing else f"all required backends work: {require}"
    if any(found["info"].name == "GPUGLUE_BACKEND" for found in findings):
        return False, f"GPUGLUE_BACKEND={environ.get('GPUGLUE_BACKEND')} cannot be parsed"
    return judge_selection(working, environ.get("GPUGLUE_BACKEND", ""), environ.get("GPUGLUE_DEVICE", ""))


def judge_selection(working, selection, device):
    """Without --require: a backend of GPUGLUE_BACKEND works, and has the device of GPUGLUE_DEVICE."""
    if not working:
        return False, f"no backend works{f' with GPUGLUE_BACKEND={selection}' if selection else ''}"
    default = next(iter(working)) if selection in ("", "auto") or selection.startswith("^") else chosen(working, selection)
    if device and not device.lower().startswith(("pci:", "uuid:")):  # these are found when the device is opened
        name, _, ordinal = device.rpartition(":") if ":" in device or device.isdigit() else (device, "", "0")
        name = (names_of(name) or [default])[0]
        if name not in working or (ordinal.isdigit() and int(ordinal) >= (working[name] or 0)):
            return False, f"GPUGLUE_DEVICE={device} does not exist; devices of {name}: {working.get(name, 0)}"
    return True, f"the default backend is {default}"


def chosen(working, selection):
    """The first name of the selection that works."""
    return next((name for name in names_of(selection) if name in working), next(iter(working)))


def as_dict(machine, warnings, findings, ok, verdict):
    pairs = [{"cause": cause, "command": command} for cause, command in warnings]
    backends = [{**_probe.as_dict(each["info"]), "cause": each["cause"], "command": each["command"]} for each in findings]
    return {
        "version": gpuglue.__version__,
        "python": sys.version.split()[0],
        "machine": machine.as_dict(),
        "warnings": pairs,
        "backends": backends,
        "ok": ok,
        "verdict": verdict,
    }
