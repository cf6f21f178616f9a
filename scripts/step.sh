#!/bin/bash
# Run one step of `make test` and record its result:  step.sh NAME COMMAND...
# or record that it is skipped:                        step.sh --skip NAME REASON
# Each step adds a line to build/summary.txt, which `make test` prints at its end: the result, the seconds, those
# of processors, the tier that the step belongs to (STEP_TIER), the name. Of a step that fails, the end of the output
# goes to build/failures.txt, which is printed after that, since the output of steps that run side by side is mixed.
# With STEP_RERUN=1, as in .ci/run, a step that fails runs once more, now with STEP_AGAIN=1: pytest and scripts/c_tests.py then run
# only the tests that failed. If it succeeds, its line says `flaky` with the reason of the first failure, and the run goes on:
# that line is a defect to be found, but no reason to lose the rest.
if [ "$1" = --skip ]; then
    mkdir -p build
    printf '%-7s                   %-5s  %s: %s\n' skipped "${STEP_TIER:--}" "$2" "$3" | tee -a build/summary.txt
    exit 0
fi
name=$1
shift
mkdir -p build
# Hide make's job server: ninja would try to use file descriptors that it does not inherit.
unset MAKEFLAGS MFLAGS
used=$(mktemp)
output=$(mktemp)
trap 'rm -f "$used" "$output"' EXIT
TIMEFORMAT='%U %S'

run_step() { # COMMAND...
    printf '\n== %s\n   %s\n' "$name" "$*"
    start=$SECONDS
    # tee is a child of this shell, not of the step, which may wait for any child of its own.
    exec 3> >(exec tee "$output")
    local tee=$!
    { time "$@" >&3 2>&1 3>&-; } 2>"$used"
    status=$?
    exec 3>&-
    # Until tee has written all; a process that the step has left may keep it.
    for _ in {1..50}; do
        kill -0 "$tee" 2>/dev/null || break
        sleep 0.1
    done
}

print_result() { # ok, flaky or FAILED
    printf '%-7s %5d s %5.0f cpu  %-5s  %s\n' "$1" $((SECONDS - start)) "$(awk '{ print $1 + $2 }' "$used")" "${STEP_TIER:--}" "$name"
}

# What looks like the reason of a failure, else the last lines: the summary alone is to be enough to understand it.
print_reason() {
    local pattern='(^|[^[:alnum:]_])(FAIL(ED)?|[Ff]ailed:|[[:alpha:]]*(Error|error|ERROR):|SUMMARY:)' reason
    reason=$(grep -av ^SKIPPED "$output" | grep -aE "$pattern" | head -n 14)
    [ -n "$reason" ] || reason=$(tail -n 14 "$output")
    printf '%s\n' "$reason" | cut -c -200 | sed 's/^/        /'
}

keep_end() {
    # In one write, as another step may fail at the same time.
    printf '\n== the end of: %s\n%s\n' "$name" "$(grep -av ^SKIPPED "$output" | tail -n 40 | cut -c -300)" >>build/failures.txt
}

# Where pytest keeps which tests failed: each step has its own, since some run side by side.
cache=$PWD/build/pytest-cache/${name//[^[:alnum:]]/-}
rm -rf "$cache"
export PYTEST_ADDOPTS="$PYTEST_ADDOPTS -o 'cache_dir=$cache'"
run_step "$@"
reason=
if [ $status != 0 ]; then
    reason=$(print_reason)
    keep_end
fi
if [ $status != 0 ] && [ -n "$STEP_RERUN" ]; then
    print_result failed
    export STEP_AGAIN=1 PYTEST_ADDOPTS="$PYTEST_ADDOPTS --last-failed"
    run_step "$@"
    if [ $status != 0 ]; then
        reason=$(print_reason)
        keep_end
    fi
fi
result=$([ $status != 0 ] && echo FAILED || { [ -n "$reason" ] && echo flaky || echo ok; })
print_result "$result" | tee -a build/summary.txt
[ -z "$reason" ] || printf '%s\n' "$reason" >>build/summary.txt
exit $status
