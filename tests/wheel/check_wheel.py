"""Check that a wheel runs on the platforms of its tag.

    check_wheel.py WHEEL                print its contents and dependencies; exit with 1 if there is a problem
    check_wheel.py --retag DIR WHEEL    then copy it to DIR, under the tags that its symbols allow and compressed by zopfli,
                                        which writes a twentieth less than zlib; the limit of the size is the copy's
"""

import argparse
import io
import os
import re
import shutil
import stat
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from elftools.elf.elffile import ELFFile

SIZE_LIMIT = 1_000_000  # of a release, which this version of gcc compiles; others write up to a tenth more
SIZED_COMPILER = "12"
GLIBC_POLICIES = [(2, 17), (2, 28)]  # manylinux: the last is the newest accepted glibc
LIBC = {"libc.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
# Weak references of the compiler's start files; no library has to define them.
STARTUP = {"__gmon_start__", "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable", "__cxa_finalize"}
EXTENSION = "gpuglue/_core.abi3.so"
CORE = "gpuglue/_lib/libgpuglue.so"
PYTHON = "cp311"  # of the stable ABI that the extension uses, see limited_api in python/meson.build
MACHINES = {"x64": "x86_64", "AArch64": "aarch64"}
PAGES = {"x86_64": 4096, "aarch64": 65536}  # the largest pages that a kernel of the machine may have
ABI = "GPUGLUE_1"  # the version of the core's symbols, see core/gpuglue.map
EXPORTS = {EXTENSION: r"PyInit__core", CORE: rf"gg_\w+|{ABI}"}
PLUGIN_EXPORTS = r"gg_backend_query"
REQUIRED = [
    EXTENSION,
    CORE,
    "gpuglue/_lib/gpuglue_cuda.so",
    "gpuglue/_lib/gpuglue_hip.so",
    "gpuglue/_lib/gpuglue_ze.so",
    "gpuglue/_lib/pkgconfig/gpuglue.pc",
    "gpuglue/include/gpuglue/gpuglue.h",
    "gpuglue/include/gpuglue/backend.h",
    "gpuglue/include/gpuglue/python.h",
    "gpuglue/_lib/cmake/gpuglue/gpuglueConfig.cmake",
    "gpuglue/__init__.py",
    "gpuglue/__main__.py",
    "gpuglue/_cuda_headers/cuda_fp16.h",
    "gpuglue/_cuda_headers/cuComplex.h",
    "gpuglue/_cuda_headers/cooperative_groups.h",
    "gpuglue/include/gpuglue/cuda_warps.h",
    "gpuglue/compat/pycuda/include/pycuda-complex.hpp",
    "gpuglue/_core.pyi",
    "gpuglue/_slots.json",
    "gpuglue/_documents/README.md",
    "gpuglue/_documents/docs/tutorial.md",
    "gpuglue/_documents/examples/roundtrip.py",
    "gpuglue/py.typed",
]


def stable_abi():
    lines = Path(__file__).with_name("stable_abi_3_11.txt").read_text().splitlines()
    return {line for line in lines if not line.startswith("#")}


class Binary:
    """The dynamic section of a shared library."""

    def __init__(self, name, data):
        self.name = name
        elf = ELFFile(io.BytesIO(data))
        self.machine = MACHINES.get(elf.get_machine_arch(), "unknown")
        self.alignment = min(s.header.p_align for s in elf.iter_segments() if s.header.p_type == "PT_LOAD")
        dynamic = elf.get_section_by_name(".dynamic")
        tags = [(tag.entry.d_tag, tag) for tag in dynamic.iter_tags()]
        self.numbers = {key: tag.entry.d_val for key, tag in tags}
        self.needed = [tag.needed for key, tag in tags if key == "DT_NEEDED"]
        self.runpath = [p for key, tag in tags if key == "DT_RUNPATH" for p in tag.runpath.split(":")]
        self.rpath = [tag.rpath for key, tag in tags if key == "DT_RPATH"]
        self.stack = [s.header.p_flags for s in elf.iter_segments() if s.header.p_type == "PT_GNU_STACK"]
        needs = elf.get_section_by_name(".gnu.version_r")
        self.versions = {aux.name for _, auxes in needs.iter_versions() for aux in auxes} if needs else set()
        self.imports, self.exports = self.symbols(elf)
        self.undefined = {s.name for s in elf.get_section_by_name(".dynsym").iter_symbols() if s["st_shndx"] == "SHN_UNDEF"}

    @staticmethod
    def symbols(elf):
        """Undefined names without a version, and exported names."""
        versions = elf.get_section_by_name(".gnu.version")
        imports, exports = set(), set()
        for index, symbol in enumerate(elf.get_section_by_name(".dynsym").iter_symbols()):
            if symbol["st_info"]["bind"] == "STB_LOCAL":  # a section's: the linker for AArch64 keeps some
                continue
            if symbol["st_shndx"] != "SHN_UNDEF":
                exports.add(symbol.name)
            elif symbol.name and not (versions and isinstance(versions.get_symbol(index)["ndx"], int)):
                imports.add(symbol.name)
        return imports - STARTUP, exports


def glibc(versions):
    """The newest glibc among symbol versions."""
    found = [re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", v) for v in versions]
    return max(((int(m[1]), int(m[2])) for m in found if m), default=(2, 0))


def link_problems(binary):
    allowed = LIBC | {"libgpuglue.so"} if binary.name == EXTENSION else LIBC
    for library in binary.needed:
        if library not in allowed:
            yield f"links {library}; a wheel links only libc and opens other libraries at run time"
    own = {ABI} if binary.name == EXTENSION else set()
    for version in sorted(binary.versions - own):
        if not version.startswith("GLIBC_"):
            yield f"needs symbol version {version}, which is not glibc's"
    if glibc(binary.versions) > GLIBC_POLICIES[-1]:
        newest = sorted(v for v in binary.versions if glibc({v}) > GLIBC_POLICIES[-1])
        yield f"needs {', '.join(newest)}; name the functions in core/base/glibc_compat.h or avoid them"
    for path in binary.runpath:
        if not path.startswith("$ORIGIN"):
            yield f"has {path!r} in its RUNPATH, which must begin with $ORIGIN"
    if binary.rpath:
        yield f"has an RPATH {binary.rpath}; RUNPATH is wanted"
    if binary.name == EXTENSION and binary.runpath != ["$ORIGIN/_lib"]:
        yield f"has the RUNPATH {binary.runpath}, not $ORIGIN/_lib: it would not find libgpuglue"


def symbol_problems(binary, stable):
    for name in sorted(binary.imports):
        if binary.name == EXTENSION and name.startswith("gg_"):
            continue
        if binary.name == EXTENSION and name.startswith(("Py", "_Py")):
            if name not in stable:
                yield f"imports {name}, which is not in the stable ABI of Python 3.11"
            continue
        yield f"imports {name}, which no library that it links defines"
    if binary.name == EXTENSION and ABI not in binary.versions:
        yield f"does not need {ABI}, the version of libgpuglue's symbols"
    pattern = EXPORTS.get(binary.name, PLUGIN_EXPORTS)
    for name in sorted(binary.exports):
        if not re.fullmatch(pattern, name):
            yield f"exports {name}; only {pattern} may be exported"


def start_problems(binary):
    # gcc's start file has one entry in each; more entries are code that runs on load or at exit. For AArch64 libgcc has one
    # more, which finds out what atomic instructions the processor has (lse-init.c).
    for kind in ("INIT", "FINI"):
        if binary.numbers.get(f"DT_{kind}_ARRAYSZ", 0) > (16 if (kind, binary.machine) == ("INIT", "aarch64") else 8):
            yield f"has a {'constructor' if kind == 'INIT' else 'destructor'}"
    if "DT_TEXTREL" in binary.numbers:
        yield "has text relocations"
    if any(flags & 1 for flags in binary.stack):
        yield "needs an executable stack"


def machine_problems(binary, path):
    """Of a library for another machine than the wheel's name says, or for smaller pages than the machine's."""
    tag = Path(path).stem.rpartition("-")[2]
    if not tag.endswith(binary.machine):
        yield f"is for {binary.machine}, but the wheel's platform is {tag}"
    pages = PAGES.get(binary.machine, 0)
    if binary.alignment < pages:
        yield f"is aligned to {binary.alignment} bytes: it does not load where pages have {pages}"


def size_problems(path, compiler=SIZED_COMPILER):
    """Of a wheel that this major version of gcc has compiled."""
    size = path.stat().st_size
    if size > SIZE_LIMIT and compiler == SIZED_COMPILER:
        yield f"{size} bytes, the limit is {SIZE_LIMIT}"


def compiler_version():
    """The major version of the C compiler that builds the wheel, "" if it is not gcc."""
    shown = subprocess.run([*os.environ.get("CC", "cc").split(), "--version"], capture_output=True, text=True, check=True).stdout
    found = re.match(r"\S*g?cc\S* \(.*?\) (\d+)\.\d+", shown)
    return found[1] if found else ""


def archive_problems(archive):
    names = set(archive.namelist())
    for name in REQUIRED:
        if name not in names:
            yield f"{name} is missing"
    for info in archive.infolist():
        if stat.S_ISLNK(info.external_attr >> 16):
            yield f"{info.filename} is a symbolic link"
    if not any(re.fullmatch(r"[^/]+\.dist-info/licenses/LICENSE", name) for name in names):
        yield "the licence is missing"
    top = {PurePosixPath(name).parts[0] for name in names}
    if any(not part.startswith("gpuglue") or part.endswith(".libs") for part in top):
        yield f"has more than the package: {sorted(top)}"


def metadata_problems(archive):
    text = {Path(n).name: archive.read(n).decode() for n in archive.namelist() if ".dist-info/" in n}
    for line in ("License-Expression: Apache-2.0", "Requires-Python: >=3.11", "Requires-Dist: numpy>=1.24"):
        if line not in text.get("METADATA", "").splitlines():
            yield f"METADATA has no line {line!r}"
    # meson-python writes the version of the Python that builds; retag() writes the one that is needed
    if not re.search(r"^Tag: cp3(1[1-9]|[2-9]\d)-abi3-", text.get("WHEEL", ""), re.M):
        yield "is not tagged for the stable ABI of Python 3.11 or newer (cp311-abi3)"


def binaries(archive):
    for name in archive.namelist():
        data = archive.read(name)
        if data[:4] == b"\x7fELF":
            yield Binary(name, data)


def check(path):
    """Return (problems, platform tag, binaries)."""
    stable = stable_abi()
    with zipfile.ZipFile(path) as archive:
        found = list(binaries(archive))
        problems = list(archive_problems(archive)) + list(metadata_problems(archive))
    for binary in found:
        for part in (machine_problems(binary, path), link_problems(binary), symbol_problems(binary, stable), start_problems(binary)):
            problems += [f"{binary.name} {problem}" for problem in part]
    return problems, platform_tag(found), found


def platform_tag(found):
    need = max((glibc(b.versions) for b in found), default=(2, 0))
    major, minor = next((policy for policy in GLIBC_POLICIES if policy >= need), need)
    return f"manylinux_{major}_{minor}_{found[0].machine if found else 'unknown'}"


def retag(path, tag, directory):
    """Copy the wheel to the directory with PYTHON's tag, the platform's, and compressed; return the copy's path."""
    directory.mkdir(parents=True, exist_ok=True)
    copy = Path(shutil.copy(path, directory))
    command = [sys.executable, "-m", "wheel", "tags", "--python-tag", PYTHON, "--platform-tag", tag, "--remove", str(copy)]
    copy = directory / subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1]
    compress(copy)
    return copy


def compress(path):
    """Write the archive again with the same members in the same order, each deflated by zopfli."""
    from zopfli.zlib import compress as deflate  # only release builds need it

    with zipfile.ZipFile(path) as archive:
        members = [(info, archive.read(info)) for info in archive.infolist()]
    with zipfile.ZipFile(path, "w") as archive:
        for info, data in members:
            info.compress_type = zipfile.ZIP_DEFLATED if data else zipfile.ZIP_STORED
            packed = deflate(data, numiterations=5)[2:-4] if data else b""  # without zlib's header and checksum
            write_packed(archive, info, data, packed)


def write_packed(archive, info, data, packed):
    """Add a member that is compressed already, which zipfile has no function for."""
    info.header_offset, info.flag_bits = archive.fp.tell(), 0
    info.file_size, info.compress_size, info.CRC = len(data), len(packed), zlib.crc32(data)
    archive.fp.write(info.FileHeader(zip64=False) + packed)
    archive.filelist.append(info)
    archive.NameToInfo[info.filename] = info
    archive.start_dir, archive._didModify = archive.fp.tell(), True  # where the directory of the archive begins


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--retag", type=Path, metavar="DIR")
    parser.add_argument("wheel", type=Path)
    arguments = parser.parse_args()
    problems, tag, found = check(arguments.wheel)
    wheel = retag(arguments.wheel, tag, arguments.retag) if arguments.retag and not problems else arguments.wheel
    problems += size_problems(wheel, compiler_version())
    print(f"{wheel}: {wheel.stat().st_size} bytes, its symbols allow {tag}")
    for binary in found:
        newest = ".".join(map(str, glibc(binary.versions)))
        print(f"  {binary.name}: glibc {newest}, links {' '.join(binary.needed)}, RUNPATH {binary.runpath}")
    for problem in problems:
        print(f"  wrong: {problem}")
    if problems and wheel != arguments.wheel:
        wheel.unlink()
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
