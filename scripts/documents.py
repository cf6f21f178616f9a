"""The documents and examples that the package contains, for `gpuglue docs`: one path per line, below the root of the tree."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("*.md", "bench/README.md", "docs/**/*.md")
# Of use only with the source tree: how to change, test and measure gpuglue itself, and its history; the
# table of operations, which `gpuglue info --slots` prints; lists of pages, which `gpuglue docs` prints; tables of other packages'
# names and programs; a page about a build that is no wheel; pages that a program fills with docstrings, which help() prints.
# Pages of the package may link to them.
WITH_THE_SOURCES = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "bench/README.md", "docs/adding-a-backend.md",
                    "docs/adding-an-operation.md", "docs/architecture.md", "docs/contributing/index.md", "docs/howto/index.md",
                    "docs/index.md", "docs/performance.md",
                    "docs/reference/compat-names.md", "docs/reference/compat.md", "docs/reference/drivers.md", "docs/reference/free-threading.md",
                    "docs/reference/index.md", "docs/reference/programs.md", "docs/reference/pycuda-names.md",
                    "docs/reference/python.md", "docs/reference/slots.md", "docs/testing.md")
# Filled with the comments of the C headers, which the package contains. Its index is in the package.
C_REFERENCE = "docs/reference/c"
EXAMPLES = ("md", "py", "c", "cpp", "cu", "h", "i", "toml", "txt", "build", "options")


def documents(root=ROOT):
    """What a build or a run leaves in the directories of the examples has other suffixes, or is in a directory of its own."""
    found = [path for pattern in PAGES for path in root.glob(pattern) if path.relative_to(root).as_posix() not in WITH_THE_SOURCES]
    found = [path for path in found if path.parent != root / C_REFERENCE or path.stem == "index"]
    examples = [path for path in root.glob("examples/**/*") if path.name == "Makefile" or path.suffix[1:] in EXAMPLES]
    found += [path for path in examples if path.is_file() and not any("build" in part for part in path.relative_to(root).parts[:-1])]
    return sorted(path.relative_to(root).as_posix() for path in found)


if __name__ == "__main__":
    print("\n".join(documents()))
