#!/bin/bash
# Check what compilers do not:  lint.sh BUILD     (a build directory whose objects are there)
# Runs all checks, also after a failure.
cd "$(dirname "$0")/.." || exit 1
status=0
check() {
    echo "+ $*"
    "$@" || status=1
}
check python scripts/check_lengths.py
check python scripts/check_names.py
check python scripts/check_named_tests.py
check python scripts/check_mutants.py
check python scripts/check_variables.py
check scripts/check_makefile.sh
check python scripts/docstrings.py stub --check
check python scripts/slots.py docs --check
check python scripts/check_layers.py --self-test
check python scripts/check_layers.py "$1"
python scripts/sources.py .c .h .cpp .hpp | xargs -0 clang-format --dry-run --Werror || status=1
exit $status
