#!/bin/bash
# Make this machine ready:  setup.sh build|test
# Installs missing system packages (apt, as root only) and fills .venv from requirements-$1.txt.
set -euo pipefail
cd "$(dirname "$0")/.."
purpose=$1
PATH=${PATH//$PWD\/.venv\/bin:/} # .venv is made by a Python from outside it
say() { echo "setup: $*"; }

compiles() { # LANGUAGE HEADER: is there a compiler, and does it find the header?
    echo "#include <$2>" | "${3:-cc}" -x "$1" -fsyntax-only - 2>/dev/null
}

suitable() { # a Python of 3.11 or newer that can make environments and has its headers
    "$1" -c 'import sys, os, venv, ensurepip, sysconfig
assert sys.version_info >= (3, 11)
assert os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))' 2>/dev/null
}

find_python() { # 3.11 first: the wheel's tag comes from the Python that builds it
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
    printf '#include <stdarg.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <setjmp.h>\n#include <cmocka.h>\n' |
        cc -x c -fsyntax-only - 2>/dev/null || missing+=(libcmocka-dev)
    compiles c stdlib.h clang || missing+=(clang)
    # Not every system has these; without them Level Zero's tests are skipped.
    # ldconfig lies where a Debian user's PATH does not lead.
    compiles c level_zero/ze_ddi.h && PATH=$PATH:/sbin:/usr/sbin ldconfig -p | grep -q libze_loader.so.1 || welcome+=(libze-dev libze1)
fi

if [ ${#missing[@]} -gt 0 ]; then
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        say "these packages are missing; install them, then run make again:"
        say "    sudo apt-get install ${missing[*]}"
        exit 1
    fi
    say "installing ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    # The second form is for images whose clock or mirror is behind the archive's Release file.
    apt-get update -qq || apt-get update -qq -o Acquire::Check-Valid-Until=false ||
        say "apt-get update failed; trying with the lists that are here"
    apt-get install -y -qq --no-install-recommends "${missing[@]}"
fi

if [ ${#welcome[@]} -gt 0 ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "installing ${welcome[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get install -y -qq --no-install-recommends "${welcome[@]}" ||
        { apt-get update -qq -o Acquire::Check-Valid-Until=false
          apt-get install -y -qq --no-install-recommends "${welcome[@]}"; } || true # said below
fi
if [ ${#welcome[@]} -gt 0 ] && ! compiles c level_zero/ze_ddi.h; then
    say "Level Zero's tests are skipped: there is no libze-dev and libze1 (apt-get install libze-dev libze1)"
fi

if ! .venv/bin/python -c 'import pip' 2>/dev/null; then
    python=$(find_python)
    say "making .venv with $("$python" -V) ($python)"
    "$python" -m venv --clear .venv
fi
say "installing scripts/requirements-$purpose.txt into .venv"
.venv/bin/python -m pip install --quiet --disable-pip-version-check -r "scripts/requirements-$purpose.txt"

# AMD's headers of HIP 5, out of Debian's package, unpacked and not installed. Without them the simulated
# HIP and its tests are left out; .venv/no-hip says why, and so does the summary of `make test`.
fetch_hip() (
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || fail_hip "this is no Debian"
    cd .venv/hip || exit 1
    refresh=(apt-get update -qq -o Acquire::Check-Valid-Until=false)
    apt-get download -qq libamdhip64-dev 2>/dev/null || { "${refresh[@]}" && apt-get download -qq libamdhip64-dev; } ||
        fail_hip "the archive does not give libamdhip64-dev"
    dpkg-deb -x libamdhip64-dev_*.deb . || fail_hip "libamdhip64-dev cannot be unpacked"
    grep -q 'HIP_VERSION_MAJOR 5' usr/include/hip/hip_version.h || fail_hip "libamdhip64-dev here is not of HIP 5"
)

fail_hip() {
    echo "$1" >&2
    exit 1
}

if [ "$purpose" = test ] && [ ! -s .venv/hip-include ]; then
    rm -rf .venv/hip .venv/no-hip
    mkdir -p .venv/hip
    if why=$(fetch_hip 2>&1); then
        echo "$PWD/.venv/hip/usr/include" >.venv/hip-include
    else
        echo "no headers of HIP 5: ${why##*$'\n'}" | tee .venv/no-hip
    fi
fi
