"""Creates, fills and enters Debian roots, each with its own glibc, Python and vendors' libraries.

They are kept in GPUGLUE_ROOTS (build/roots). No mount remains: each command has its own mount namespace."""

import json
import os
import pathlib
import shutil
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE.parents[1]
ROOTS = pathlib.Path(os.environ.get("GPUGLUE_ROOTS") or TREE / "build" / "roots")
MIRROR = os.environ.get("GPUGLUE_MIRROR", "http://deb.debian.org/debian")
PLACE = "/srv/gpuglue"  # the wheel and the tests
HEADERS = "/srv/headers"  # vendors' headers, unpacked and not installed
DONE = "srv/made.json"  # the contents of a root; without this file the root is created again

BEGAN = time.monotonic()
BASE = ("python3", "python3-numpy", "python3-pytest", "python3-hypothesis", "ca-certificates")
ENTER = 'mount -t proc proc "$0/proc" && mount --bind /sys "$0/sys" && exec chroot "$0" "$@"'  # PoCL reads the processor's topology


class Unavailable(Exception):
    """A root or package is unavailable; the text is the reason."""


def say(*words):
    print(f"vendors, {time.monotonic() - BEGAN:.0f} s:", *words, flush=True)


def last_line(text):
    return (text.strip().splitlines() or ["no message"])[-1]


def in_root(root, *command, environment=None, **options):
    variables = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8", **(environment or {})}
    options = {"capture_output": True, "text": True, "errors": "replace", **options}
    return subprocess.run(["unshare", "--mount", "sh", "-c", ENTER, root, *command], env=variables, **options)


def apt(root, *words):
    environment = {"DEBIAN_FRONTEND": "noninteractive"}
    options = ("-qq", "-o", "Acquire::Check-Valid-Until=false", "-o", "Acquire::Retries=3", "-o", "Dpkg::Use-Pty=0")
    return in_root(root, "apt-get", *options, *words, environment=environment)


# ---- tools ------------------------------------------------------------------------------------------------


def need_tools():
    """Install debootstrap and check that mounts are permitted; raise Unavailable otherwise."""
    if not shutil.which("debootstrap"):
        say("installing debootstrap")
        install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "debootstrap"]
        update = ["apt-get", "update", "-qq", "-o", "Acquire::Check-Valid-Until=false"]
        for command in (install, update, install):
            if shutil.which("apt-get") and not shutil.which("debootstrap"):
                subprocess.run(command, capture_output=True, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    if not shutil.which("debootstrap"):
        raise Unavailable("debootstrap is not installed and apt cannot install it: `apt-get install debootstrap`")
    probe = subprocess.run(["unshare", "--mount", "true"], capture_output=True, text=True)
    if probe.returncode:
        raise Unavailable(f"mounts are not permitted here ({last_line(probe.stderr)}): needs CAP_SYS_ADMIN")


# ---- bare roots --------------------------------------------------------------------------------------------


def made_of(root):
    try:
        return json.loads((root / DONE).read_text())
    except (OSError, ValueError):
        return None


def note_made(root, packages, missing=()):
    (root / DONE).write_text(json.dumps({"packages": list(packages), "missing": list(missing)}))


def debootstrap(suite, root):
    """Create a bare root with Python and its packages."""
    scripts = pathlib.Path("/usr/share/debootstrap/scripts")
    newest = [] if (scripts / suite).exists() else [str(scripts / "sid")]
    shutil.rmtree(root, ignore_errors=True)
    say(f"debootstrap {suite} into {root}")
    command = ["debootstrap", "--variant=minbase", suite, str(root), MIRROR, *newest]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise Unavailable(f"`{' '.join(command)}` failed: {last_line(result.stdout + result.stderr)}")
    for words in ("update",), ("install", "-y", "--no-install-recommends", *BASE):
        result = apt(root, *words)
        if result.returncode:
            raise Unavailable(f"apt-get {words[0]} in {suite} failed: {last_line(result.stderr)}")
    note_made(root, ())


def make_bare(suite, names):
    """Create a root for each name, all of one suite. The others are copies of the first, if that is still bare."""
    ROOTS.mkdir(parents=True, exist_ok=True)
    first = ROOTS / names[0]
    if made_of(first) is None:
        debootstrap(suite, first)
    for root in (ROOTS / name for name in names[1:]):
        if made_of(root) is None and made_of(first)["packages"]:
            debootstrap(suite, root)
        elif made_of(root) is None:
            shutil.rmtree(root, ignore_errors=True)
            subprocess.run(["cp", "-a", "--reflink=auto", first, root], check=True)


# ---- vendors' packages ---------------------------------------------------------------------------------------


def install(root, packages, release):
    """Install packages; return those that are unavailable."""
    line = ("install", "-y", "--no-install-recommends", *(("-t", release) if release else ()))
    if apt(root, *line, *packages).returncode == 0:
        return []
    return [package for package in packages if apt(root, *line, package).returncode]


def unpack_headers(root, packages, release):
    """Unpack packages, because their installation would add compilers; return those that are unavailable."""
    options = ("-t", release) if release else ()
    missing = []
    for package in packages:
        directory = f"{HEADERS}/{package}"
        script = f"mkdir -p {directory}/deb && cd {directory}/deb && apt-get download -qq {' '.join(options)} {package} && dpkg-deb -x *.deb {directory}"
        if in_root(root, "sh", "-c", script).returncode:
            missing.append(package)
    return missing


def dress(name, packages, headers, release):
    """Install a root's packages; return the root and the unavailable packages."""
    root = ROOTS / name
    wanted = [*packages, *headers]
    if made_of(root) is None:
        raise Unavailable(f"the root {name} could not be created")
    if made_of(root)["packages"] == wanted and not made_of(root)["missing"]:
        return root, []
    if release:
        (root / f"etc/apt/sources.list.d/{release}.list").write_text(f"deb {MIRROR} {release} main\n")
    if apt(root, "update").returncode:
        raise Unavailable("apt-get update failed")
    say(f"{name}: installing {' '.join(packages)}")
    missing = install(root, packages, release) + unpack_headers(root, headers, release)
    apt(root, "clean")
    note_made(root, wanted, missing)
    return root, missing


def fill(root, wheel, tests):
    """Replace the root's wheel, tests and simulated libraries with those of the build."""
    place = root / PLACE.lstrip("/")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    shutil.unpack_archive(wheel, place / "site", "zip")
    for name in ("python", "libraries", "vendors"):
        shutil.copytree(TREE / "tests" / name, place / "tests" / name, ignore=shutil.ignore_patterns("__pycache__"))
    for file in sorted((*tests.glob("*.so*"), *tests.glob("sim/**/*.so*"), *tests.glob("core/plugins/*.so"), *tests.glob("images/*"))):
        if file.is_file():
            to = place / "tests" / file.relative_to(tests)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, to)
    shutil.copy(TREE / "tests/sim/opencl_missing.py", place / "tests/sim")
    driver = place / "tests/sim/ze_new/libze_sim_new.so.1"
    if driver.exists():  # a second driver must be another file
        shutil.copytree(driver.parent, place / "tests/sim/second")


def version_of(root, package):
    """The version of an installed or unpacked package, else ""."""
    text = in_root(root, "dpkg-query", "-W", "-f=${db:Status-Status} ${Version}", package).stdout.split()
    if len(text) == 2 and text[0] == "installed":
        return text[1]
    debs = sorted((root / HEADERS.lstrip("/") / package / "deb").glob("*.deb"))
    return debs[0].name.split("_")[1] if debs else ""
