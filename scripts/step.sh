#!/bin/bash
# Run one step of `make test` and note how it went:  step.sh NAME COMMAND...
# or that it cannot be run:                           step.sh --skip NAME REASON
# A line per step goes to build/summary.txt, which `make test` prints at its end.
if [ "$1" = --skip ]; then
    mkdir -p build
    printf '%-7s         %s: %s\n' skipped "$2" "$3" | tee -a build/summary.txt
    exit 0
fi
name=$1
shift
mkdir -p build
printf '\n== %s\n   %s\n' "$name" "$*"
start=$SECONDS
# A step shares its make's job slots with nobody: ninja would look for descriptors that it is not given.
unset MAKEFLAGS MFLAGS
"$@"
status=$?
verdict=$([ $status = 0 ] && echo ok || echo FAILED)
printf '%-7s %5d s  %s\n' "$verdict" $((SECONDS - start)) "$name" | tee -a build/summary.txt
exit $status
