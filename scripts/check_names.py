"""Check that only backends name vendors, and that the shared CUDA/HIP code names neither of the two.

    check_names.py

- No .c or .h below backends/cuda_hip/ has a vendor's name, symbol or constant, or an error number: only driver.def
  lists the symbols.
- No file below core/ has one either, except comments in core/include, which explain native handles per backend.
- No source below core/ or backends/ includes a vendor's header.
"""

import re
import sys
from pathlib import Path

NAMES = r"\b(?:cuda|hip|ze|nvidia|amd|intel|rocm|oneapi|level[ _-]?zero)\b"
# Everything that has the form of a vendor's symbol, constant or type, listed or not.
LOOKS = r"\b(?:cu|cuda|hip|ze|zet|zes|zel|hsa|nv)[A-Z]\w*|\b(?:CU|CUDA|HIP|ZE|ZET|ZES|HSA)_\w+|\b(?:CU|CUDA)[a-z]\w+|\bz(?:e|et|es|el)_\w+_t\b"
FILES = r"\blib(?:cuda|cudart|amdhip64|hiprtc|nvrtc|ze_loader)\w*"
VENDOR = re.compile(f"(?i:{NAMES})|{LOOKS}|(?i:{FILES})")
HEADER = re.compile(r'#\s*include\s*(?:<(?:cu|nv|hip|hsa|roc|level_zero|ze)\w*[./][^>]*>|"(?:cuda|cuda_runtime\w*|nvrtc|hip_\w*api|z\w+_(?:api|ddi))\.h")')

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"|' + COMMENT.pattern, re.S)
NUMBER = re.compile(r"(?<![\w.])(0[xX][0-9a-fA-F]+|\d+)[uUlL]*(?![\w.])")
ROW = re.compile(r"^(\w+)\((.*)\)$", re.M)


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def lists(root):
    """The symbols in the lists of the backends, and the error numbers."""
    symbols, codes = set(), set()
    for path in sorted((root / "backends").rglob("*.def")):
        for kind, row in ROW.findall(path.read_text()):
            row = re.sub(r"\([^()]*(?:\([^()]*\)[^()]*)*\)", " ", row)  # parameters
            words = [word.strip() for word in row.split(",")]
            if kind == "ERROR":
                codes.add(int(words[1], 0))
            symbols |= {word for word in words if re.fullmatch(LOOKS, word)}
    return symbols, {code for code in codes if code > 10}  # smaller numbers are too common


def finds(path, text, pattern):
    for match in pattern.finditer(text):
        yield f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {match.group()}"


def check_shared(root, symbols, codes):
    known = re.compile(r"\b(?:" + "|".join(sorted(map(re.escape, symbols))) + r")\b")
    for path in sorted((root / "backends/cuda_hip").glob("*.[ch]")):
        text = path.read_text()
        yield from finds(path, text, VENDOR)
        yield from finds(path, text, known)
        bare = STRING.sub(blank, text)
        for match in NUMBER.finditer(bare):
            if int(match.group(1), 0) in codes:
                yield f"{path}:{bare.count(chr(10), 0, match.start()) + 1}: {match.group()}, an error number"


def check_core(root):
    for path in sorted((root / "core").rglob("*")):
        if path.is_file():
            text = path.read_text()
            public = "include" in path.relative_to(root / "core").parts
            yield from finds(path, COMMENT.sub(blank, text) if public else text, VENDOR)


def check_headers(root):
    for directory in "core", "backends":
        for path in sorted((root / directory).rglob("*.[ch]")):
            yield from finds(path, path.read_text(), HEADER)


def main(root="."):
    root = Path(root)
    symbols, codes = lists(root)
    if len(symbols) < 100 or len(codes) < 20:
        print(f"cannot parse the lists of the backends: {len(symbols)} symbols, {len(codes)} errors")
        return 1
    wrong = [*check_shared(root, symbols, codes), *check_core(root), *check_headers(root)]
    print(f"vendors' names    {len(symbols)} symbols and {len(codes)} error numbers, {len(wrong)} found where they must not be")
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
