#!/bin/bash
# Run one step of `make test` and note how it went:  step.sh NAME COMMAND...
# A line per step goes to build/summary.txt, which `make test` prints at its end.
name=$1
shift
mkdir -p build
printf '\n== %s\n   %s\n' "$name" "$*"
start=$SECONDS
"$@"
status=$?
verdict=$([ $status = 0 ] && echo ok || echo FAILED)
printf '%-7s %5d s  %s\n' "$verdict" $((SECONDS - start)) "$name" | tee -a build/summary.txt
exit $status
