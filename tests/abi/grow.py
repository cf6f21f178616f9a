"""Copies a header, with three numbers appended to structs as a later version might append members:    grow.py FROM TO STRUCT…"""

import re
import sys
from pathlib import Path

source, target, *names = sys.argv[1:]
text = Path(source).read_text()
for name in names:
    text, found = re.subn(rf"(?ms)^(struct {name} \{{.*?)^\}};", r"\1    size_t grown[3];\n};", text)
    if found != 1:
        sys.exit(f"{source} has {found} definitions of struct {name}, expected 1")
Path(target).write_text(text)
