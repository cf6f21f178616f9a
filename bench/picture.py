"""Draw the results of copies.py: bandwidth against size, one line per side. Of docs/performance.json (report.py): the time of
calls beside raw C and other packages, with --scale that of alloc + close as streams, blocks and threads are added, or with
--collectives the bandwidth of collective operations against size.

    python picture.py [--scale | --collectives] FIGURES.json PICTURE.png

Needs matplotlib, but neither gpuglue nor a device: the figures may come from another machine.
"""

import json
import sys
from pathlib import Path

TITLES = {"H2D": "host to device", "D2H": "device to host, into warm memory",
          "D2H, new array": "device to host, a new array"}


def lines(sizes, row):
    """Side → (sizes in MiB, GB/s)."""
    found = {}
    for mib, rows in sorted(sizes.items(), key=lambda pair: int(pair[0])):
        for side, gbps in rows.get(row, {}).items():
            xs, ys = found.setdefault(side, ([], []))
            xs.append(int(mib))
            ys.append(gbps)
    return found


def draw(figures, target):
    """Draw one panel per row; a side has the same colour in all of them."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    picture, panels = pyplot.subplots(1, len(TITLES), figsize=(15, 5), sharey=True)
    colours, drawn = {}, {}
    for panel, (row, title) in zip(panels, TITLES.items()):
        for side, (xs, ys) in lines(figures["sizes"], row).items():
            own = side == "gpuglue"
            colour = colours.setdefault(side, f"C{len(colours)}")
            drawn[side], = panel.plot(xs, ys, marker="o", color=colour, linewidth=2.5 if own else 1.2,
                                      zorder=3 if own else 2)
        panel.set_xscale("log", base=2)
        panel.xaxis.set_major_formatter("{x:.0f}")
        panel.set_title(title)
        panel.set_xlabel("MiB")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("GB/s")
    picture.suptitle(f"copies of pageable memory, {figures['device']}")
    picture.tight_layout(rect=(0, 0.06, 1, 1))
    picture.legend(drawn.values(), drawn.keys(), loc="lower center", ncols=len(drawn), frameon=False)
    picture.savefig(target, dpi=90)


def bars(rows, sides, title, unit, target):
    """A group of horizontal bars for each row: rows is name → side → figure."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    picture, panel = pyplot.subplots(figsize=(10, 1.5 + 0.45 * len(rows)))
    width = 0.8 / len(sides)
    for place, side in enumerate(sides):
        found = [(at, figures[side]) for at, figures in enumerate(rows.values()) if figures.get(side)]
        panel.barh([at + (place + 0.5) * width - 0.4 for at, _ in found], [value for _, value in found], width, label=side,
                   color=f"C{place}")
    panel.set_yticks(range(len(rows)), rows)
    panel.invert_yaxis()
    panel.set_xscale("log")
    panel.set_xlabel(unit)
    panel.set_title(title)
    panel.grid(axis="x", alpha=0.3)
    panel.legend(frameon=False)
    picture.tight_layout()
    picture.savefig(target, dpi=90)


def draw_calls(figures, target):
    """The calls of bench.py on a stream of gpuglue's own."""
    found = figures["bench"]["figures"]
    peers = {"CuPy": "cupy", "PyTorch": "torch", "cuda.core": "cuda.core"}
    rows = {row: {"raw C": sides.get("raw"), "gpuglue": sides["gpuglue"],
                  **{name: found["peers"].get(key, {}).get(row) for name, key in peers.items()}}
            for row, sides in found["streams"]["own"]["ns"].items()}
    bars(rows, ["raw C", "gpuglue", *peers], "calls from Python", "nanoseconds", target)


def draw_scale(figures, target):
    """The rows of scale.c."""
    sides = {"median": "median", "mean": "mean", "99.9 %": "p999", "worst": "worst"}
    rows = {row: {side: values[key] for side, key in sides.items()} for row, values in figures["scale"]["figures"].items()}
    bars(rows, list(sides), "alloc + close, in C", "nanoseconds", target)


def draw_collectives(figures, target):
    """The bandwidths of comm.py: a panel for each number of ranks, and a colour for each operation."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    found = [figures[name]["figures"] for name in ("comm-2", "comm-4") if name in figures]
    picture, panels = pyplot.subplots(1, len(found), figsize=(5.5 * len(found), 5), sharey=True, squeeze=False)
    for panel, one in zip(panels[0], found):
        rows = [row for row in one["bandwidth"] if row[3] is not None]
        for at, name in enumerate(dict.fromkeys(row[0] for row in rows)):
            sizes = [row[1] for row in rows if row[0] == name]
            for column, side, style in ((2, "gpuglue", {"marker": "o", "linewidth": 2}), (3, "raw NCCL", {"marker": "x", "linestyle": "--"})):
                panel.plot(sizes, [row[column] for row in rows if row[0] == name], color=f"C{at}", label=f"{name}, {side}", **style)
        panel.set_xscale("log", base=2)
        panel.xaxis.set_major_formatter("{x:.0f}")
        panel.set_title(f"{one['ranks']} ranks")
        panel.set_xlabel("MiB")
        panel.grid(alpha=0.3)
    panels[0][0].set_ylim(bottom=0)  # of all panels, after the last of them
    panels[0][0].set_ylabel("bus bandwidth, GB/s")
    panels[0][-1].legend(frameon=False)
    picture.tight_layout()
    picture.savefig(target, dpi=90)


PICTURES = {"--scale": draw_scale, "--collectives": draw_collectives}


def main():
    """Read the figures and draw the picture."""
    arguments = [argument for argument in sys.argv[1:] if argument not in PICTURES]
    if len(arguments) != 2:
        sys.exit(__doc__)
    source, target = map(Path, arguments)
    figures = json.loads(source.read_text())
    (made,) = [PICTURES[option] for option in sys.argv if option in PICTURES] or [draw_calls if "bench" in figures else draw]
    try:
        made(figures, target)
    except ModuleNotFoundError as error:
        sys.exit(f"no picture: {error.name} is not installed; run picture.py with {source} on a machine that has it")
    print(f"drawn: {target}")


if __name__ == "__main__":
    main()
