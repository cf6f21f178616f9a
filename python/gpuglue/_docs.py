"""gpuglue docs: the guides, the reference and the examples, which the package contains."""

import json
import re
from pathlib import Path

import gpuglue

HERE = Path(__file__).resolve()
# Laid out as the source tree, so that links between pages work. An editable installation has that tree itself.
ROOT = next((path for path in (HERE.with_name("_documents"), HERE.parents[2]) if (path / "docs").is_dir()), HERE.parent)
HIDDEN = re.compile(r"^ *<!--.*?-->\n?", re.S | re.M)  # directions to the tests


def add_options(parser):
    parser.add_argument("page", nargs="?", help="print this page: a name of the list, or its last part")
    parser.add_argument("--path", action="store_true", help="print the path of the page, or of the directory, instead")
    parser.add_argument("--search", metavar="TEXT", help="print the lines that contain TEXT, of all pages or of one")
    parser.add_argument("--examples", metavar="DIR", type=Path, help="copy the examples to DIR, which is created")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def main_of(options):
    if options.examples:
        return copy_examples(options.examples)
    known = pages()
    chosen = {options.page: find(options.page, known)} if options.page else known
    if options.search is not None:
        return search(options.search, chosen)
    show(chosen, options)
    return 0


def pages():
    """The path of each page by name: README.md is overview, docs/howto/mpi.md is howto/mpi, docs/explanation/index.md is explanation."""
    found = {"overview": ROOT / "README.md"}
    found |= {name_of(path): path for path in sorted(ROOT.glob("docs/**/*.md"))}
    found |= {name_of(path.parent, ROOT): path for path in sorted(ROOT.glob("examples/*/README.md"))}
    if not found["overview"].is_file():
        raise gpuglue.Error(f"there are no documents in {ROOT}: reinstall gpuglue")
    return found


def name_of(path, below=None):
    return path.relative_to(below or ROOT / "docs").with_suffix("").as_posix().removesuffix("/index")


def find(name, known):
    import difflib  # here and below: only what a call needs, as every command imports this file

    wanted = name.lower().removesuffix(".md").removeprefix("docs/")
    if wanted in known:
        return known[wanted]
    same = [full for full in known if full.endswith("/" + wanted)]
    if len(same) == 1:
        return known[same[0]]
    last = {full.rpartition("/")[2]: full for full in known}
    near = same or [last[part] for part in difflib.get_close_matches(wanted.rpartition("/")[2], last)]
    hint = f"did you mean {' or '.join(near)}?" if near else "`gpuglue docs` lists all pages"
    raise gpuglue.InvalidArgumentError(f"there is no page {name!r}: {hint}")


def text_of(path):
    return HIDDEN.sub("", path.read_text(encoding="utf-8"))


def title_of(path):
    return next((line[2:].strip() for line in text_of(path).splitlines() if line.startswith("# ")), path.stem)


def show(chosen, options):
    if options.json:
        rows = [{"name": name, "title": title_of(path), "path": str(path)} for name, path in chosen.items()]
        print(json.dumps({"directory": str(ROOT), "pages": rows}, indent=2))
    elif options.path:
        print(*chosen.values() if options.page else [ROOT])
    elif options.page:
        import pydoc

        pydoc.pager(text_of(*chosen.values()))
    else:
        print("\n".join(lines(chosen)))


def lines(known):
    width = max(map(len, known)) + 2
    yield from (f"{name:{width}}{title_of(path)}" for name, path in known.items())
    yield ""
    yield "gpuglue docs PAGE            prints a page: `gpuglue docs tutorial`, `gpuglue docs mpi`"
    yield "gpuglue docs --search TEXT   the lines that contain TEXT"
    yield "gpuglue docs --examples DIR  copies the examples to DIR"
    yield f"The files are in {ROOT}"


def search(text, chosen):
    """Print the lines in which the text is, in any case of letters; the status is that of grep."""
    wanted, status = text.lower(), 1
    for name, path in chosen.items():
        for line in text_of(path).splitlines():
            if wanted in line.lower():
                print(f"{name}: {line.strip()}")
                status = 0
    return status


def copy_examples(directory):
    import shutil

    try:
        shutil.copytree(ROOT / "examples", directory, ignore=shutil.ignore_patterns("__pycache__", "build"))
    except FileExistsError:
        raise gpuglue.InvalidArgumentError(f"{directory} exists: expected a directory that can be created") from None
    except OSError as error:
        raise gpuglue.Error(f"the examples cannot be copied to {directory}: {error}") from None
    print(f"the examples are in {directory}")
    return 0
