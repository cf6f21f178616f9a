"""Each mutant's text occurs exactly once in its file, so that the mutant breaks the intended code.

    check_mutants.py
"""

import sys
from pathlib import Path

sys.path.insert(0, "tests/mutants")
from mutants import MUTANTS  # noqa: E402


def main():
    bad = 0
    for mutant in MUTANTS:
        path = Path(mutant.file)
        count = path.read_text().count(mutant.old) if path.is_file() else 0
        if count != 1:
            print(f"{mutant.file}: {mutant.name}: found {count} times: {mutant.old!r}")
            bad += 1
    print(f"mutants           {len(MUTANTS)} of them, {bad} without their text")
    return bad != 0


sys.exit(main())
