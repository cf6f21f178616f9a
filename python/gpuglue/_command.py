"""The command gpuglue: lists backends and devices, finds out why others are missing, watches and measures devices, and prints
what a build needs, the documents, and a copy of PyCUDA's Python files."""

import argparse
import os
import sys

import gpuglue


def command_parser():
    from gpuglue import _bench, _config, _docs, _doctor, _info, _pycuda, _top

    parser = argparse.ArgumentParser(
        prog="gpuglue", description=__doc__, epilog="Without a subcommand, info runs: `gpuglue --json` is `gpuglue info --json`."
    )
    parser.add_argument("--version", action="version", version=f"gpuglue {gpuglue.__version__}")
    modules = {"info": _info, "doctor": _doctor, "top": _top, "bench": _bench, "config": _config, "docs": _docs,
               "pycuda": _pycuda}
    commands = parser.add_subparsers(dest="command", metavar="{" + ",".join(modules) + "}")
    for name, module in modules.items():
        text = module.__doc__.partition("\n\n")[0]
        added = commands.add_parser(name, help=text.partition(":")[2].strip(), description=text)
        module.add_options(added)
        added.set_defaults(main=module.main_of)
    parser.set_defaults(commands=tuple(modules))
    return parser


def with_default(arguments):
    """Options alone are options of info, except those of the command itself."""
    first = arguments[0] if arguments else ""
    if not first or (first.startswith("-") and first not in ("-h", "--help", "--version")):
        return ["info", *arguments]
    return arguments


def main(arguments=None):
    arguments = with_default(sys.argv[1:] if arguments is None else arguments)
    parser = command_parser()
    refuse_misspelt(parser, arguments[0])
    options = parser.parse_args(arguments)
    return options.main(options)


def refuse_misspelt(parser, name):
    """Before argparse does, whose message lists all subcommands."""
    import difflib  # only what a call needs

    known = parser.get_default("commands")
    if not name.startswith("-") and name not in known and (near := difflib.get_close_matches(name, known, 1)):
        parser.error(f"there is no subcommand {name!r}: did you mean {near[0]}?")


def run():
    """The entry point of the console script: the exit status is main's."""
    sys.stdout.reconfigure(errors="backslashreplace")  # paths and variables may not be UTF-8
    try:
        status = main()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    except gpuglue.Error as error:
        print(f"gpuglue: error: {error}", file=sys.stderr)
        status = 2
    except KeyboardInterrupt:
        status = 130
    sys.exit(status)
