"""copy_host.py DIRECTORY: the host backend as the sources of a plugin named `mine`, for tests.

The copy has nearly every optional operation, so all suites run on a plugin that is built with the installed headers
alone. examples/plugin/Makefile builds it."""

import re
import sys
from pathlib import Path

HOST = Path(__file__).resolve().parents[2] / "backends/host"
QUERY = """/* query.c: the one exported symbol. */
#include "mine.h"

int gg_backend_query(uint32_t core_abi, const struct gg_host_api *host, const struct gg_backend_desc **out)
{
    if (core_abi >> 16 != GG_ABI_MAJOR || host->struct_size < offsetof(struct gg_host_api, processor_count))
        return 1;
    *out = ggi_host_backend(host);
    return 0;
}
"""


def renamed(text):
    text = re.sub(r"(?<!gpuglue/)\bhost_", "mine_", text)
    text = re.sub(r"\bhost\.([ch])", r"mine.\1", text)
    text = text.replace('.name = "host"', '.name = "mine"')
    return re.sub(r"\.priority = [^,]*", ".priority = -2000", text)  # below the built-in host


def main(directory):
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    for path in directory.glob("*.[ch]"):
        path.unlink()
    for path in HOST.glob("*.[ch]"):
        (directory / re.sub(r"^host\b", "mine", path.name)).write_text(renamed(path.read_text()))
    (directory / "query.c").write_text(QUERY)


if __name__ == "__main__":
    main(*sys.argv[1:])
