#!/bin/bash
# Put the files that a machine without network needs into dist/carry: the wheel, pytest and hypothesis as
# pure Python wheels, the C tests with their libraries, the example library, and PyCUDA's source archive, whose programs
# tests/programs runs. See carried.sh and gpu.py.
set -euo pipefail
cd "$(dirname "$0")/.."
out=dist/carry
rm -rf $out
mkdir -p $out/wheelhouse $out/tests/lib

cp dist/*.whl $out
grep -v '^numpy' scripts/requirements-run.txt >build/pure.txt
python -m pip download --quiet --disable-pip-version-check --only-binary=:all: --python-version 3.11 \
    --implementation py --abi none --platform any --dest $out/wheelhouse -r build/pure.txt

python -m pip download --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-binary :all: --dest $out pycuda

# Keep the layout of the build tree: the tests find libgpuglue by a relative path.
built=build/plain
(cd $built && find libgpuglue.so gpuglue_*.so tests -type f ! -path '*.p/*' \( -executable -o -name '*.so*' \) -exec cp --parents {} "$OLDPWD/$out/tests" \;)
cp -r $built/tests/images $out/tests/tests && rm -rf $out/tests/tests/images/*.p
cp -L "$(gcc -print-file-name=libcmocka.so.0)" $out/tests/lib
# The example library, for host and, with nvcc, for CUDA.
python examples/existing_library/build.py --carry $out/existing_library
du -sh $out
