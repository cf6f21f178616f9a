#!/bin/sh
# ocloc.sh compile -file SOURCE -device NAME -spv_only -out_dir DIRECTORY [-options OPTIONS]: ocloc by clang and llvm-spirv of one
# version, for tests on machines that have these only. NAME is not used.
while [ $# -gt 0 ]; do
    case $1 in
        -file) source=$2; shift ;;
        -out_dir) directory=$2; shift ;;
        -options) options=$2; shift ;;
    esac
    shift
done
for version in $(seq 25 -1 14); do
    if command -v "clang-$version" >/dev/null && command -v "llvm-spirv-$version" >/dev/null; then
        # shellcheck disable=SC2086
        "clang-$version" -x cl -cl-std=CL1.2 --target=spir64 -Xclang -disable-llvm-passes $options -c -emit-llvm "$source" -o "$directory/source.bc" &&
            exec "llvm-spirv-$version" --spirv-max-version=1.2 "$directory/source.bc" -o "$directory/source.spv"
        exit 1
    fi
done
echo "no clang-N and llvm-spirv-N of one version: apt-get install clang-15 llvm-spirv-15" >&2
exit 1
