#!/bin/bash
# Run the tests on a machine without network, with the files of `make carry`. Builds and installs nothing.
#   carried.sh test|demo|bench     with these variables:
# WHEEL       the wheel
# WHEELHOUSE  directory with further wheels: pytest, hypothesis (NumPy must be installed, or be in it)
# TESTS       directory of the C tests; empty: none
# RUNS        host, cuda, hip; with TESTS also cuda-sim, hip-sim-5, -6, -7, and hip-shim: the hip backend
#             on NVIDIA's driver, through a library with HIP's functions
# PYTHON      an interpreter of 3.11 or newer
set -u
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
tests=${TESTS:+$(realpath "$TESTS")}
site=$PWD/build/carried/site

rm -rf build/carried build/summary.txt
mkdir -p "$site"
for file in "$WHEEL" ${WHEELHOUSE:+"$WHEELHOUSE"/*.whl}; do
    "$python" -m zipfile -e "$file" "$site" || exit 1 # a wheel is a zip archive
done
export PYTHONPATH=$site${PYTHONPATH:+:$PYTHONPATH}

failed=0
step() { # NAME RUN COMMAND...
    local name=$1 run=$2
    shift 2
    in_run "$run" scripts/step.sh "$name" "$@" || failed=1
}

in_run() { # RUN COMMAND...
    local run=$1
    shift
    case $run in
    any) "$@" ;;
    host) env GPUGLUE_BACKEND=host GPUGLUE_REQUIRE=host "$@" ;;
    cuda) env GPUGLUE_BACKEND=cuda GPUGLUE_REQUIRE=cuda "$@" ;;
    cuda-sim) env GPUGLUE_BACKEND=cuda GPUGLUE_REQUIRE=cuda \
        GPUGLUE_CUDA_LIBRARY="$tests/tests/sim/cuda/libcuda.so.1" "$@" ;;
    hip) env GPUGLUE_BACKEND=hip GPUGLUE_REQUIRE=hip "$@" ;;
    hip-shim) env GPUGLUE_BACKEND=hip GPUGLUE_REQUIRE=hip \
        GPUGLUE_HIP_LIBRARY="$tests/tests/shim/libamdhip64.so.6" "$@" ;;
    hip-sim-*) env GPUGLUE_BACKEND=hip GPUGLUE_REQUIRE=hip \
        GPUGLUE_HIP_LIBRARY="$tests/tests/sim/hip${run#hip-sim-}/libamdhip64.so.${run#hip-sim-}" "$@" ;;
    *) echo "unknown run $run; expected host, cuda, cuda-sim, hip, hip-shim, hip-sim-5, -6 and -7" && return 1 ;;
    esac
}

c_tests() { # RUN: one test at a time where it is a real device
    local jobs=()
    case $1 in cuda | hip | hip-shim) jobs=(-j 1) ;; esac
    env LD_LIBRARY_PATH="$tests/lib" "$tests/tests/conformance" "${1%%-*}" --timeout 300 "${jobs[@]}"
}

core_tests() {
    env LD_LIBRARY_PATH="$tests/lib" "$tests/tests/core_units" "$tests/tests/core/plugins" --timeout 300
}

export tests
[ -z "$tests" ] || export GPUGLUE_TEST_LIBRARIES=$tests/tests
export -f c_tests core_tests
case $1 in
test)
    [ -n "$tests" ] && step "core tests" any bash -c core_tests
    for run in ${RUNS:-host}; do
        [ -n "$tests" ] && step "C tests on $run" "$run" bash -c "c_tests $run"
        step "Python on $run" "$run" "$python" -m pytest -q tests/python
        step "examples on $run" "$run" "$python" examples/roundtrip.py
        # Only if its compiler is available.
        case $run in
        host) command -v c++ >/dev/null && step "doublify on $run" "$run" "$python" examples/doublify.py ;;
        cuda | hip-shim) "$python" -c "from gpuglue._rtc import nvrtc; nvrtc.library()" 2>/dev/null &&
            step "doublify on $run" "$run" "$python" examples/doublify.py ;;
        esac
    done
    printf '\n== summary\n'
    cat build/summary.txt
    ;;
demo)
    step "backends" any "$python" -m gpuglue
    step "round trips" any "$python" examples/demo.py
    ;;
bench)
    make -C bench PYTHON="$python" || failed=1
    ;;
esac
exit $failed
