#!/bin/bash
# Prepare this machine:  setup.sh build|test|full|fuzz|docs|site|openmpi|ray
# Installs missing system packages (apt, as root only) and fills .venv from requirements-$1.txt; for `docs` (builds the
# site) and `site` (opens it in a browser) .venv-docs; for `openmpi` and `ray` .venv-openmpi and .venv-ray.
set -euo pipefail
cd "$(dirname "$0")/.."
purpose=$1
case $purpose in docs | site) venv=.venv-docs ;; openmpi | ray) venv=.venv-$purpose ;; *) venv=.venv ;; esac
PATH=${PATH//$PWD\/.venv\/bin:/} # create .venv with a Python from outside it
say() { echo "setup: $*"; }

compiles() { # LANGUAGE HEADER [COMPILER]: does the compiler exist and find the header?
    echo "#include <$2>" | "${3:-cc}" -x "$1" -fsyntax-only - 2>/dev/null
}

suitable() { # Python 3.11 or newer, with venv and its headers
    "$1" -c 'import sys, os, venv, ensurepip, sysconfig
assert sys.version_info >= (3, 11)
assert os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))' 2>/dev/null
}

find_python() { # 3.11 first: the wheel's tag is that of the Python that builds it
    local name
    for name in ${PYTHON:-} python3.11 python3 python3.{12..19}; do
        if suitable "$name"; then
            command -v "$name"
            return 0
        fi
    done
    return 1
}

missing=() welcome=()
compiles c stdlib.h || missing+=(gcc libc6-dev)
compiles c++ cstdlib c++ || missing+=(g++)
command -v pkg-config >/dev/null || missing+=(pkg-config)
find_python >/dev/null || missing+=(python3 python3-dev python3-venv)
if [ "$purpose" = test ]; then
    command -v ccache >/dev/null || welcome+=(ccache) # builds of the same sources again take seconds
    printf '#include <stdarg.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <setjmp.h>\n#include <cmocka.h>\n' |
        cc -x c -fsyntax-only - 2>/dev/null || missing+=(libcmocka-dev)
    compiles c stdlib.h clang || missing+=(clang)
    # Not every system has these packages; without them the Level Zero tests are skipped.
    # On Debian ldconfig is not in the PATH of a normal user.
    compiles c level_zero/ze_ddi.h && PATH=$PATH:/sbin:/usr/sbin ldconfig -p | grep -q libze_loader.so.1 || welcome+=(libze-dev libze1)
fi

if [ "$purpose" = full ]; then # not every system has it; without it the comparison of the ABI is skipped
    command -v abidiff >/dev/null || welcome+=(abigail-tools)
fi
if [ "$purpose" = fuzz ]; then # libFuzzer comes with the sanitizers of clang's version
    echo 'int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n) { return d && n > 9; }' |
        clang -x c -fsanitize=fuzzer,address,undefined -o /dev/null - 2>/dev/null ||
        missing+=("libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev")
fi
if [ "$purpose" = docs ]; then
    command -v doxygen >/dev/null || missing+=(doxygen)
fi
if [ "$purpose" = site ]; then
    command -v chromium >/dev/null && command -v chromedriver >/dev/null || missing+=(chromium chromium-driver)
    [ -n "$(find /usr/share/fonts -name '*.ttf' -print -quit 2>/dev/null)" ] || missing+=(fonts-dejavu-core)
fi

if [ ${#missing[@]} -gt 0 ]; then
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        say "these packages are missing; install them, then run make again:"
        say "    sudo apt-get install ${missing[*]}"
        exit 1
    fi
    say "installing ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    # The second command is for images whose clock or mirror is behind the archive's Release file.
    apt-get update -qq || apt-get update -qq -o Acquire::Check-Valid-Until=false ||
        say "apt-get update failed; trying with the existing lists"
    apt-get install -y -qq --no-install-recommends "${missing[@]}"
fi

if [ ${#welcome[@]} -gt 0 ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "installing ${welcome[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get install -y -qq --no-install-recommends "${welcome[@]}" ||
        { apt-get update -qq -o Acquire::Check-Valid-Until=false
          apt-get install -y -qq --no-install-recommends "${welcome[@]}"; } || true # reported below
fi
if [ "$purpose" = test ] && ! compiles c level_zero/ze_ddi.h; then
    say "the Level Zero tests are skipped: libze-dev and libze1 are missing (apt-get install libze-dev libze1)"
fi

# PoCL, which runs compiled kernels for the simulated Level Zero drivers, and a compiler of OpenCL C to SPIR-V. Without
# them these tests are skipped, with the reason.
fetch_opencl() {
    local version
    command -v apt-get >/dev/null && [ "$(id -u)" = 0 ] || return 1
    for version in 15 18 19 21; do
        if apt-cache show "llvm-spirv-$version" "clang-$version" >/dev/null 2>&1; then
            DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
                pocl-opencl-icd ocl-icd-libopencl1 "clang-$version" "llvm-spirv-$version" && return
        fi
    done
    return 1
}

if [ "$purpose" = full ] && [ ! -e /etc/OpenCL/vendors/pocl.icd ]; then
    say "installing PoCL"
    fetch_opencl || say "the tests of compiled kernels on Level Zero are skipped: PoCL is missing (apt-get install pocl-opencl-icd)"
fi

if ! $venv/bin/python -c 'import pip' 2>/dev/null; then
    python=$(find_python)
    say "creating $venv with $("$python" -V) ($python)"
    "$python" -m venv --clear $venv
fi
[ "$purpose" != fuzz ] || exit 0 # the packages are those of the tests
say "installing scripts/requirements-$purpose.txt into $venv"
$venv/bin/python -m pip install --quiet --disable-pip-version-check -r "scripts/requirements-$purpose.txt"
if [ "$purpose" = test ]; then
    $venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r scripts/requirements-alone.txt
fi

# AMD's headers of HIP 5, from Debian's package, unpacked and not installed. Without them the HIP simulator
# and its tests are skipped; .venv/no-hip and the summary of `make test` have the reason.
fetch_hip() (
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || fail_hip "this system is not Debian"
    cd .venv/hip || exit 1
    refresh=(apt-get update -qq -o Acquire::Check-Valid-Until=false)
    apt-get download -qq libamdhip64-dev 2>/dev/null || { "${refresh[@]}" && apt-get download -qq libamdhip64-dev; } ||
        fail_hip "libamdhip64-dev cannot be downloaded"
    dpkg-deb -x libamdhip64-dev_*.deb . || fail_hip "libamdhip64-dev cannot be unpacked"
    grep -q 'HIP_VERSION_MAJOR 5' usr/include/hip/hip_version.h || fail_hip "libamdhip64-dev of this system is not of HIP 5"
)

fail_hip() {
    echo "$1" >&2
    exit 1
}

if [ "$purpose" = test ] && [ ! -s .venv/hip-include ]; then
    rm -rf .venv/hip .venv/no-hip
    mkdir -p .venv/hip
    if reason=$(fetch_hip 2>&1); then
        echo "$(realpath .venv)/hip/usr/include" >.venv/hip-include
    else
        echo "no headers of HIP 5: ${reason##*$'\n'}" | tee .venv/no-hip
    fi
fi

# Those of later versions, from Debian's later releases, so that each simulator is compiled with the headers of its version. The
# files are pinned; a release drops them when it has newer ones. Then HIP 6 and 7 are compiled with the headers of HIP 5, and
# .venv/no-later-hip and the summary of `make test` name them.
later_hip() {
    echo 5.7 471242c9d89ce6aca57b2dc75eabbeb872d787f70d3b92144c58bb444e6256a1 libamdhip64-dev_5.7.1-6+deb13u1_amd64.deb
    echo 6.4 f2a3a542d41883f87a45e2d0554c1c84ccf350c836b9e8b35473dadbc34ced5e libamdhip64-dev_6.4.3-5_amd64.deb
    echo 7.2 28ae316c5be2d33b53fae8f2151e76a758f84aa3493abafeaef935e49cc5ba07 libamdhip64-dev_7.2.4-1~exp2_amd64.deb
}

fetch_later_hip() ( # DIRECTORY SHA256 FILE
    rm -rf "$1" && mkdir -p "$1" && cd "$1" &&
        /usr/lib/apt/apt-helper -qq -o Acquire::Retries=1 -o Acquire::http::Timeout=30 download-file \
            "${GPUGLUE_MIRROR:-http://deb.debian.org/debian}/pool/main/r/rocm-hipamd/$3" "$3" "SHA256:$2" &&
        dpkg-deb -x "$3" .
)

if [ "$purpose" = test ] && [ -s .venv/hip-include ]; then
    directories=$(realpath .venv)/hip/usr/include
    missing=
    rm -f .venv/no-later-hip
    while read -r version hash file; do
        [ -e ".venv/hip-$version/usr/include/hip/hip_version.h" ] || fetch_later_hip ".venv/hip-$version" "$hash" "$file" >/dev/null 2>&1 ||
            { rm -rf ".venv/hip-$version" && missing+=" $version"; }
        [ ! -d ".venv/hip-$version" ] || directories+=:$(realpath .venv)/hip-$version/usr/include
    done < <(later_hip)
    echo "$directories" >.venv/hip-include
    [ -z "$missing" ] || echo "the headers of HIP$missing cannot be downloaded" | tee .venv/no-later-hip
fi

# Headers of RCCL 2.13 and 2.27, from Debian, for the simulated library and the checks. Without them RCCL is not tested.
fetch_rccl() ( # DIRECTORY SHA256 FILE
    rm -rf "$1" && mkdir -p "$1" && cd "$1" &&
        /usr/lib/apt/apt-helper -qq -o Acquire::Retries=1 -o Acquire::http::Timeout=30 download-file \
            "${GPUGLUE_MIRROR:-http://deb.debian.org/debian}/pool/main/r/rccl/$3" "$3" "SHA256:$2" &&
        dpkg-deb -x "$3" .
)

rccl_versions() {
    echo 2.27 c224353521f931fc9e9eb0800e401d5dde27d428a144f86d3766e52b9f40fdd5 librccl-dev_7.2.4-1~exp3_amd64.deb
    echo 2.13 87e977a72579fcc891c37be5169f051699b9ab3822bef1331f6d33a0e66fd571 librccl-dev_5.4.3-3+b1_amd64.deb
}

if [ "$purpose" = test ] && [ -s .venv/hip-include ]; then
    directories=
    while read -r version hash file; do
        [ -e ".venv/rccl-$version/usr/include/rccl/rccl.h" ] || fetch_rccl ".venv/rccl-$version" "$hash" "$file" >/dev/null 2>&1 ||
            { rm -rf ".venv/rccl-$version" && say "the header of RCCL $version cannot be downloaded"; }
        [ ! -d ".venv/rccl-$version" ] || directories+=${directories:+:}$(realpath .venv)/rccl-$version/usr/include
    done < <(rccl_versions)
    echo "$directories" >.venv/rccl-include
fi

# NCCL's header: of a toolkit, else of NVIDIA's wheel, which is large and not kept.
fetch_nccl() (
    rm -rf .venv/nccl && mkdir -p .venv/nccl && cd .venv/nccl &&
        python -m pip download -q --no-deps --only-binary=:all: --python-version 3.12 --platform manylinux_2_18_x86_64 nvidia-nccl-cu13 &&
        python -c "import glob, zipfile; zipfile.ZipFile(glob.glob('*.whl')[0]).extract('nvidia/nccl/include/nccl.h')" && rm -- *.whl
)

find_nccl() {
    local directory
    for directory in /usr/local/cuda*/include /usr/include "$(realpath .venv)"/{lib/python3*/site-packages,nccl}/nvidia/nccl/include; do
        [ ! -e "$directory/nccl.h" ] || { echo "$directory"; return; }
    done
}

if [ "$purpose" = test ] && [ ! -s .venv/nccl-include ]; then
    [ -n "$(find_nccl)" ] || fetch_nccl >/dev/null 2>&1 || say "NCCL is not simulated: its header cannot be downloaded"
    find_nccl >.venv/nccl-include
fi

# ROCm SMI's header, in the same way. Without it the statistics of AMD's GPUs are not tested.
fetch_rocm_smi() (
    cd .venv/hip && apt-get download -qq librocm-smi-dev && dpkg-deb -x librocm-smi-dev_*.deb .
)

if [ "$purpose" = test ] && [ -s .venv/hip-include ] && [ ! -e .venv/hip/usr/include/rocm_smi/rocm_smi.h ]; then
    fetch_rocm_smi >/dev/null 2>&1 || say "ROCm SMI is not simulated: librocm-smi-dev cannot be downloaded"
fi

# AMD SMI's header, from a later release. Without it AMD SMI is not simulated, and the tests of HIP 7 use ROCm SMI.
fetch_amd_smi() (
    file=libamd-smi-dev_10.1-1_amd64.deb hash=05c6500e3fd038b9138ca00b8fc309f08e5c0917e6e3de9beb7a20a7f56dd09d
    cd .venv/hip &&
        /usr/lib/apt/apt-helper -qq -o Acquire::Retries=1 -o Acquire::http::Timeout=30 download-file \
            "${GPUGLUE_MIRROR:-http://deb.debian.org/debian}/pool/main/a/amdsmi/$file" "$file" "SHA256:$hash" &&
        dpkg-deb -x "$file" .
)

if [ "$purpose" = test ] && [ -s .venv/hip-include ] && [ ! -e .venv/hip/usr/include/amd_smi/amdsmi.h ]; then
    fetch_amd_smi >/dev/null 2>&1 || say "AMD SMI is not simulated: libamd-smi-dev cannot be downloaded"
fi
