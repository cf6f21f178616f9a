#!/bin/bash
# Every C conformance suite on a backend that no build of ours knows:  conformance.sh FOLDER BACKEND
# FOLDER holds the suites; GPUGLUE_PLUGIN_PATH leads to the plugin. A suite that skips has failed.
folder=$1 backend=$2 failed=0 count=0
for suite in "$folder"/conformance_*; do
    [ -f "$suite" ] && [ -x "$suite" ] || continue
    count=$((count + 1))
    if output=$(GPUGLUE_REQUIRE=$backend "$suite" "$backend" 2>&1); then
        echo "ok      ${suite##*/}: $(grep -c '\[       OK \]' <<<"$output") tests"
    else
        echo "FAILED  ${suite##*/}"$'\n'"$output"
        failed=1
    fi
done
[ $count -gt 0 ] || { echo "there are no suites in $folder"; exit 1; }
exit $failed
