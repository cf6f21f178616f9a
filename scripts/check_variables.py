"""Each GPUGLUE_ variable that this tree reads is listed in core/base/env.c, which warns about others.

    check_variables.py
"""

import re
import sys
from pathlib import Path

from sources import sources

READS = r"""(?:getenv|get_env|ggi_env_get|environ\.(?:get|pop))\(\s*["'](GPUGLUE_\w+)|environ\[["'](GPUGLUE_\w+)|["'](GPUGLUE_\w+)["'] in os\.environ|\.variable = "(GPUGLUE_\w+)"""


def main():
    known = set(re.findall(r'"(GPUGLUE_\w+)"', Path("core/base/env.c").read_text()))
    accepted = re.compile(r"\w+_LIBRARY|GPUGLUE_(?:TEST|SIM)_\w+")
    read = {}
    for path in sources(".c", ".h", ".py", ".cpp"):
        for match in re.finditer(READS, path.read_text()):
            read.setdefault(next(filter(None, match.groups())), path)
    unknown = {name: file for name, file in read.items() if name not in known and not accepted.fullmatch(name)}
    for name, file in sorted(unknown.items()):
        print(f"{file}: reads {name}, which core/base/env.c does not know")
    print(f"variables         {len(read)} read, {len(unknown)} of them unknown")
    return bool(unknown)


sys.exit(main())
