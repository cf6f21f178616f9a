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


def isolated(overruled, timeout=10.0):
    """What backends() gives, found by one child per backend within `timeout` seconds. Where the variable was
    `overruled` by use_backend(), it excludes nobody."""
    if not sys.executable:
        raise _core.UnsupportedError("an isolated probe needs sys.executable, which is not set")
    check_timeout(timeout)
    selection = "auto" if overruled else os.environ.get("GPUGLUE_BACKEND", "auto")
    listed = run(["--names"], {"GPUGLUE_BACKEND": selection}, time.monotonic() + LISTING, LISTING)
    if not isinstance(listed, list):
        raise _core.Error(f"the backends could not be listed: {listed[1]}")
    names = [each["name"] for each in listed if each["status"] in ("not-probed", "disabled")]
    known = named(selection, listed)
    deadline = time.monotonic() + timeout
    children = {
        each["name"]: start([each["name"]], alone(each["name"], names, known))
        for each in listed
        if each["status"] == "not-probed"
    }
    answers = {name: finish(child, deadline, timeout) for name, child in children.items()}
    return tuple(record(each["name"], answers.get(each["name"], each), each["priority"]) for each in listed)


def check_timeout(timeout):
    if not hasattr(type(timeout), "__float__"):
        raise TypeError(f"timeout must be a number of seconds, not {timeout!r}")
    if not 0 < timeout <= LONGEST:
        raise _core.InvalidArgumentError(f"timeout is {timeout!r}, expected seconds, more than 0 and at most {LONGEST}")


def named(selection, listed):
    """The names in a selection that says which backends to use, not which to leave out."""
    chosen = [name.strip() for name in selection.lower().split(",")]
    wrong = any(each["name"] == "GPUGLUE_BACKEND" for each in listed)
    return [] if wrong or selection.strip().startswith("^") else chosen


def alone(name, names, known):
    """Nobody but `name` is probed; and it is named only where the user named it, which may matter to it."""
    others = [other for other in names if other != name]
    return {"GPUGLUE_BACKEND": name if name in known or not others else "^" + ",".join(others)}


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
    try:
        if child.returncode == 0:
            return json.loads(output.splitlines()[-1])  # others may have written before
    except (IndexError, ValueError):
        return "crashed", f"the child process ended without an answer{tail(errors)}"
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
    """In the child: print one JSON value."""
    if argument == "--names":
        return [as_dict(info) for info in _core._listed()]
    for info in _core.backends("active"):
        if info.name == argument:
            return as_dict(info)
    raise SystemExit(f"no backend is called {argument!r}")


def main():
    answer = os.dup(1)
    os.dup2(2, 1)  # what drivers and plugins print is no answer
    with os.fdopen(answer, "w") as file:
        file.write("\n" + json.dumps(child(sys.argv[1])))


if __name__ == "__main__":
    main()
    os._exit(0)  # a driver's destructors may hang or crash as well
