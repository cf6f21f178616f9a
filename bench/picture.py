"""Draw the results of copies.py: bandwidth against size, one line per side.

    python picture.py FIGURES.json PICTURE.png

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
        panel.set_ylim(bottom=0)
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("GB/s")
    picture.suptitle(f"copies of pageable memory, {figures['device']}")
    picture.tight_layout(rect=(0, 0.06, 1, 1))
    picture.legend(drawn.values(), drawn.keys(), loc="lower center", ncols=len(drawn), frameon=False)
    picture.savefig(target, dpi=90)


def main():
    """Read the figures and draw the picture."""
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, target = map(Path, sys.argv[1:])
    try:
        draw(json.loads(source.read_text()), target)
    except ModuleNotFoundError as error:
        sys.exit(f"no picture: {error.name} is not installed; run picture.py with {source} on a machine that has it")
    print(f"drawn: {target}")


if __name__ == "__main__":
    main()
