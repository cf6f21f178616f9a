"""The isolated probe: each backend is tried in a child process with a time limit, because a broken driver
may hang or crash. Children are started by exec: a fork alone would inherit an initialised driver."""

import json
import os
import signal
import subprocess
import sys
import time

from . import _core

STDERR_LINES = 5
LONGEST = 86400  # seconds; the system's own waits overflow at some weeks
LISTING = 60.0  # to learn the names, which touches no driver: a slow machine only
GRACE = 1.0  # after the time limit, to read the answers of those that finished within it


def isolated(timeout=10.0):
    """What backends() gives, found by one child per backend within `timeout` seconds."""
    if not sys.executable:
        raise _core.UnsupportedError("an isolated probe needs sys.executable, which is not set")
    if not 0 < timeout <= LONGEST:
        raise _core.InvalidArgumentError(f"timeout is {timeout!r}, expected seconds, more than 0 and at most {LONGEST}")
    names = run(["--names"], {"GPUGLUE_BACKEND": "host"}, time.monotonic() + LISTING, LISTING)
    if not isinstance(names, list):
        raise _core.Error(f"the backends could not be listed: {names[1]}")
    chosen = ",".join(name.strip() for name in os.environ.get("GPUGLUE_BACKEND", "").lower().split(","))
    names += [name for name in named(chosen) if name not in names]
    deadline = time.monotonic() + timeout
    children = {name: start([name], alone(name, names, chosen)) for name in names if selected(name, chosen)}
    records = []
    for name in names:
        if name in children:
            records.append(record(name, finish(children[name], deadline, timeout)))
        else:
            records.append(blank(name, "disabled", f"GPUGLUE_BACKEND={chosen} excludes it"))
    return tuple(sorted(records, key=lambda info: (-info.priority, info.name)))


def named(selection):
    """The names in a selection that says which backends to use, not which to leave out."""
    if selection in ("", "auto") or selection.startswith("^"):
        return []
    return [name.strip() for name in selection.split(",") if name.strip()]


def selected(name, selection):
    if selection.startswith("^"):
        return name not in [name.strip() for name in selection[1:].split(",")]
    return selection in ("", "auto") or name in named(selection)


def alone(name, names, selection):
    """Nobody but `name` is probed; and it is named only where the user named it, which may matter to it."""
    others = [other for other in names if other != name]
    only = name if name in named(selection) or not others else "^" + ",".join(others)
    return {"GPUGLUE_BACKEND": only}


def start(arguments, environment):
    """-P: the child must not find modules in the current directory; our sys.path tells where they are."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    command = [sys.executable, "-P", "-m", "gpuglue._probe", *arguments]
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONFAULTHANDLER": "", **environment}
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )


def finish(child, deadline, timeout):
    """The child's answer, or (status, reason)."""
    try:
        output, errors = child.communicate(timeout=max(GRACE, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        child.kill()
        abandon(child)
        return "timed-out", f"no answer within {timeout:g} s: its driver hangs, or raise timeout="
    if child.returncode == 0:
        return json.loads(output)
    return "crashed", f"the child process {ending(child.returncode)}{tail(errors)}"


def abandon(child):
    """A process that hangs inside the kernel cannot be killed: do not wait for it either."""
    try:
        child.communicate(timeout=1.0)
    except subprocess.TimeoutExpired:
        child.stdout.close()
        child.stderr.close()


def run(arguments, environment, deadline, timeout):
    return finish(start(arguments, environment), deadline, timeout)


def ending(code):
    if code > 0:
        return f"ended with status {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def tail(errors):
    lines = [line for line in errors.decode(errors="replace").splitlines() if line.strip()]
    return "; it last said: " + " | ".join(lines[-STDERR_LINES:]) if lines else ""


def record(name, answer):
    if isinstance(answer, dict):
        answer["tried"] = tuple(tuple(pair) for pair in answer["tried"])
        answer["notes"] = tuple(answer["notes"])
        return _core.BackendInfo([answer[field] for field in fields()])
    return blank(name, *answer)


def fields():
    return _core.BackendInfo.__match_args__


def blank(name, status, reason):
    known = {"name": name, "status": status, "reason": reason, "devices": None, "priority": 0, "tried": (), "notes": ()}
    return _core.BackendInfo([known.get(field, "") for field in fields()])


def as_dict(info):
    return dict(zip(fields(), info, strict=True))


def child(argument):
    """In the child: print one JSON value."""
    if argument == "--names":
        return [info.name for info in _core.backends("passive")]
    for info in _core.backends("active"):
        if info.name == argument:
            return as_dict(info)
    raise SystemExit(f"no backend is called {argument!r}")


if __name__ == "__main__":
    print(json.dumps(child(sys.argv[1])), flush=True)
    os._exit(0)  # a driver's destructors may hang or crash as well
