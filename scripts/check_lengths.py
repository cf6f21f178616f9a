"""Check the limits on function and file length, and print their distribution. A Python function counts without its
docstring, a file with all its lines.

    check_lengths.py [DIRECTORY...]
"""

import ast
import re
import sys
from pathlib import Path

FUNCTION_LIMIT = 60
FILE_LIMIT = 600
DIRECTORIES = ["core", "backends", "python", "tests", "scripts", "examples", "bench"]

# Replaced by blanks before braces are counted; line breaks are kept.
NOISE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def c_functions(text):
    """Yield name and number of lines of each function, from its first line to its closing brace."""
    text = NOISE.sub(blank, text)
    # Of #if … #else keep the first branch only, so that braces match.
    text = re.sub(r"(?ms)^[ \t]*#[ \t]*else\b.*?(?=^[ \t]*#[ \t]*endif)", blank, text)
    text = re.sub(r"(?m)^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blank, text)
    text = re.sub(r"extern\s*\{", blank, text)  # "C" was replaced above
    # A macro that stands alone ends a statement, as a semicolon does.
    text = re.sub(r"(?m)^[A-Z][A-Z_]*\([^{};]*?\)$(?!\n\{)", lambda m: ";" + blank(m)[1:], text)
    depth = begin = 0
    head = None
    for at, char in enumerate(text):
        if char == "{":
            if depth == 0:
                head = re.search(r"(\w+)\s*\(.*\)[\s\w()]*$", text[begin:at], re.S)
                first = begin + len(text[begin:at]) - len(text[begin:at].lstrip())
            depth += 1
        elif char == "}":
            depth -= 1
            if depth <= 0:
                if depth == 0 and head and "=" not in text[begin:at].split("{")[0]:
                    yield head.group(1), text.count("\n", first, at) + 1
                depth, begin = 0, at + 1
        elif char == ";" and depth == 0:
            begin = at + 1


def prose(node):
    """Lines of the docstring of a function."""
    return node.body[0].end_lineno - node.body[0].lineno + 1 if ast.get_docstring(node) else 0


def python_functions(text):
    """The same without docstrings, which make no function harder to read."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.end_lineno - node.lineno + 1 - prose(node)


READERS = {".c": c_functions, ".h": c_functions, ".cpp": c_functions, ".hpp": c_functions, ".py": python_functions}


def spread(lengths):
    lengths = sorted(lengths)
    at = lambda part: lengths[min(len(lengths) - 1, int(len(lengths) * part))]
    return f"{len(lengths):5}, p50 {at(0.5)}, p90 {at(0.9)}, max {lengths[-1]}"


def main(directories):
    paths = [p for f in directories for p in sorted(Path(f).rglob("*")) if p.suffix in READERS]
    files, functions, wrong = [], {"C": [], "Python": []}, []
    for path in paths:
        text = path.read_text()
        files.append(len(text.splitlines()))
        if files[-1] > FILE_LIMIT:
            wrong.append(f"{path}: {files[-1]} lines, the limit is {FILE_LIMIT}")
        for name, length in READERS[path.suffix](text):
            functions["Python" if path.suffix == ".py" else "C"].append(length)
            if length > FUNCTION_LIMIT:
                wrong.append(f"{path}: {name} has {length} lines, the limit is {FUNCTION_LIMIT}")
    for kind, lengths in {**{k + " functions": v for k, v in functions.items()}, "files": files}.items():
        if lengths:
            print(f"{kind:17} {spread(lengths)}")
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or [f for f in DIRECTORIES if Path(f).is_dir()]))
