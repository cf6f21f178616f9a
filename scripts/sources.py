"""The source files of this tree with given suffixes, separated by zero bytes: of a checkout, or of an unpacked sdist.

    sources.py .c .h | xargs -0 COMMAND
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIRECTORIES = ["backends", "bench", "core", "docs", "examples", "python", "scripts", "tests", "third_party"]


def sources(*suffixes):
    """Paths relative to the root, without those in build directories."""
    found = (path.relative_to(ROOT) for directory in DIRECTORIES for path in (ROOT / directory).rglob("*") if path.suffix in suffixes)
    return sorted(path for path in found if "build" not in path.parts)


if __name__ == "__main__":
    sys.stdout.write("".join(f"{path}\0" for path in sources(*sys.argv[1:])))
