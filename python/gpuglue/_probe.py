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
LISTING = 60.0  # to list the names, which loads no driver: only a slow machine needs it
GRACE = 1.0  # after the time limit, to read the results of children that finished within it


def isolated(overruled, timeout=10.0):
    """The result of backends(), from one child per backend within `timeout` seconds. If use_backend() has
    `overruled` the variable, it excludes no backend."""
    return tuple(records(overruled, timeout))


def records(overruled, timeout):
    """Each record in the order of backends(), as soon as its child has answered."""
    if not sys.executable:
        raise _core.UnsupportedError("an isolated probe needs sys.executable, which is not set")
    check_timeout(timeout)
    selection = "auto" if overruled else os.environ.get("GPUGLUE_BACKEND", "auto")
    listed = run(["--names"], {"GPUGLUE_BACKEND": selection}, time.monotonic() + LISTING, LISTING)
    if not isinstance(listed, list):
        raise _core.Error(f"the backends could not be listed: {listed[1]}")
    deadline = time.monotonic() + timeout
    children = start_all(listed, selection)
    try:
        for each in listed:
            child = children.pop(each["name"], None)
            answer = finish(child, deadline, timeout) if child else each
            yield record(each["name"], answer, each["priority"])
    finally:
        for child in children.values():  # the caller was interrupted
            child.kill()


def start_all(listed, selection):
    names = [each["name"] for each in listed if each["status"] in ("not-probed", "disabled")]
    known = named(selection, listed)
    probed = [each["name"] for each in listed if each["status"] == "not-probed"]
    return {name: start([name], alone(name, names, known)) for name in probed}


def check_timeout(timeout):
    if not hasattr(type(timeout), "__float__"):
        raise TypeError(f"timeout must be a number of seconds, got {timeout!r}")
    if not 0 < timeout <= LONGEST:
        raise _core.InvalidArgumentError(f"timeout is {timeout!r}, expected seconds, more than 0 and at most {LONGEST}")


def named(selection, listed):
    """The backends that a selection names, also by an alias; none for a selection of backends to exclude."""
    text = selection.strip().lower()
    wrong = any(each["name"] == "GPUGLUE_BACKEND" for each in listed)
    if wrong or text in ("", "auto") or text.startswith("^"):
        return []
    return [each["name"] for each in listed if each["status"] == "not-probed"]


def alone(name, names, known):
    """Only `name` is probed; it counts as requested by name only where the user requested it so."""
    others = [other for other in names if other != name]
    return {"GPUGLUE_BACKEND": name if name in known or not others else "^" + ",".join(others)}


def start(arguments, environment, module="gpuglue._probe", errors=subprocess.PIPE):
    """-P: the child must not import from the current directory; this process's sys.path is passed on."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    command = [sys.executable, "-P", "-m", module, *arguments]
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONFAULTHANDLER": "", **environment}
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=environment
    )


def finish(child, deadline, timeout):
    """The child's answer, or (status, reason)."""
    try:
        output, errors = child.communicate(timeout=max(GRACE, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        child.kill()
        abandon(child)
        return "timed-out", f"no answer within {timeout:g} s: the driver hangs, or needs a larger timeout="
    try:
        if child.returncode == 0:
            return json.loads(output.splitlines()[-1])  # other output may precede it
    except (IndexError, ValueError):
        return "crashed", f"the child process ended without an answer{tail(errors)}"
    return "crashed", f"the child process {ending(child.returncode)}{tail(errors)}"


def abandon(child):
    """A process that hangs inside the kernel cannot be killed: do not wait for it either."""
    try:
        child.communicate(timeout=1.0)
    except subprocess.TimeoutExpired:
        for stream in filter(None, (child.stdout, child.stderr)):
            stream.close()


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
    lines = [line for line in (errors or b"").decode(errors="replace").splitlines() if line.strip()]
    return "; its last output: " + " | ".join(lines[-STDERR_LINES:]) if lines else ""


def record(name, answer, priority):
    if isinstance(answer, dict):
        answer["tried"] = tuple(tuple(pair) for pair in answer["tried"])
        answer["notes"] = tuple(answer["notes"])
        return _core.BackendInfo([answer[field] for field in fields()])
    return blank(name, priority, *answer)


def fields():
    return _core.BackendInfo.__match_args__


def blank(name, priority, status, reason):
    known = {"name": name, "status": status, "reason": reason, "devices": None, "tried": (), "notes": ()}
    known["priority"] = priority
    return _core.BackendInfo([known.get(field, "") for field in fields()])


def as_dict(info):
    return dict(zip(fields(), info, strict=True))


def child(argument):
    """In the child: the JSON value that it prints."""
    if argument == "--names":
        return [as_dict(info) for info in _core._listed()]
    for info in _core.backends("active"):
        if info.name == argument:
            return as_dict(info)
    raise SystemExit(f"no backend is called {argument!r}")


def answer(value):
    """Print the JSON value that value() gives, and end the process."""
    output = os.dup(1)
    os.dup2(2, 1)  # drivers and plugins may print, too
    with os.fdopen(output, "w") as file:
        file.write("\n" + json.dumps(value()))
    os._exit(0)  # a driver's destructors may hang or crash as well


if __name__ == "__main__":
    answer(lambda: child(sys.argv[1]))
