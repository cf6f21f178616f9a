#!/bin/bash
# Check that the shell can parse each command of the recipes, as make expands them on this machine, that the test files in its lists exist,
# and that no simulated HIP uses a compiler.
cd "$(dirname "$0")/.." || exit 1
unset MAKEFLAGS MFLAGS
# Even with -n make runs the commands that contain $(MAKE): hence another command in its place, and no summary of steps.
recipes=$(make --no-print-directory -n MAKE=: STEP=: TIER=full all-tests test-vendors test-hip-model wheel-aarch64 test-aarch64 mutants fuzz soak docs docs-links demo bench) || exit 1
commands=0 wrong=0
# One at a time: two quotation marks that are each left open in a command would close each other.
while IFS= read -r command; do  # continued lines were joined
    commands=$((commands + 1))
    bash -n -c "$command" || { printf 'Makefile: the shell cannot parse: %s\n' "$command"; wrong=1; }
done < <(sed -e ':more' -e '/\\$/{N;s/\\\n//;b more' -e '}' <<< "$recipes")
printf 'makefile          %d commands of recipes\n' "$commands"
absent=$(make --no-print-directory absent-files) || exit 1
[ -z "$absent" ] || { printf 'Makefile: no such test file: %s\n' $absent; wrong=1; }
compiled=$(grep '^run-hip-sim' Makefile | grep -v 'NO_HIPRTC')  # else a test would depend on whether AMD's compiler is installed
[ -z "$compiled" ] || { printf 'Makefile: a simulated HIP without NO_HIPRTC: %s\n' "$compiled"; wrong=1; }
exit $wrong
