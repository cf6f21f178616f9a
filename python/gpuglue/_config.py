"""gpuglue config: the directories and options that a build with the installed package needs.

``gpuglue-config`` and ``python -m gpuglue._config`` do the same, and need at least one option."""

import argparse
import json
import os

import gpuglue


def answers() -> "dict[str, tuple[str, str]]":
    """Each option: its output and its help text."""
    include, library = gpuglue.get_include(), gpuglue.get_library_dir()
    return {
        "version": (gpuglue.__version__, "version of the package"),
        "cflags": (f"-I{include}", "for the compiler"),
        "libs": (f"-L{library} -lgpuglue -Wl,-rpath,{library}", "for the linker; Python extensions do not need them"),
        "includedir": (include, "directory of the headers"),
        "libdir": (library, "directory of libgpuglue.so"),
        "pkgconfigdir": (os.path.join(library, "pkgconfig"), "for PKG_CONFIG_PATH"),
        "cmakedir": (os.path.join(library, "cmake", "gpuglue"), "for -Dgpuglue_DIR"),
    }


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    for name, (_, help_text) in answers().items():
        other = ["--cmake-dir"] if name == "cmakedir" else []
        parser.add_argument(f"--{name}", *other, action="store_true", help=help_text)


def main_of(options: argparse.Namespace) -> int:
    """Print the requested values in the order of the options; without a request print all, with their names."""
    known = {name: value for name, (value, _) in answers().items()}
    selected = [name for name in known if getattr(options, name)]
    if options.json:
        print(json.dumps({name: known[name] for name in selected or known}, indent=2))
    elif selected:
        print(*(known[name] for name in selected))
    else:
        print("\n".join(f"{name:12} {value}" for name, value in known.items()))
    return 0


def main() -> None:
    """The program gpuglue-config."""
    parser = argparse.ArgumentParser(prog="gpuglue-config", description="What a build needs of gpuglue.")
    add_options(parser)
    options = parser.parse_args()
    if not any(vars(options).values()):
        parser.error("give at least one option")
    main_of(options)


if __name__ == "__main__":
    main()
