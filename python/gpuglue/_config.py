"""gpuglue-config: what a build needs of the installed package. ``python -m gpuglue._config`` is the same."""

import argparse
import os

import gpuglue


def answers() -> "dict[str, tuple[str, str]]":
    """Each option: what it prints and what that is."""
    include, library = gpuglue.get_include(), gpuglue.get_library_dir()
    return {
        "version": (gpuglue.__version__, "version of the package"),
        "cflags": (f"-I{include}", "for the compiler"),
        "libs": (f"-L{library} -lgpuglue -Wl,-rpath,{library}", "for the linker; extensions of Python need none"),
        "includedir": (include, "folder of the headers"),
        "libdir": (library, "folder of libgpuglue.so"),
        "pkgconfigdir": (os.path.join(library, "pkgconfig"), "for PKG_CONFIG_PATH"),
        "cmakedir": (os.path.join(library, "cmake", "gpuglue"), "for -Dgpuglue_DIR"),
    }


def main() -> None:
    """Print what was asked for, in the order of the options below."""
    known = answers()
    parser = argparse.ArgumentParser(prog="gpuglue-config", description="What a build needs of gpuglue.")
    for name, (_, help_text) in known.items():
        parser.add_argument(f"--{name}", action="store_true", help=help_text)
    asked = [name for name, given in vars(parser.parse_args()).items() if given]
    if not asked:
        parser.error("give at least one option")
    print(*(known[name][0] for name in asked))


if __name__ == "__main__":
    main()
