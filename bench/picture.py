"""A picture of what copies.py has measured: bandwidth against size, one line for each side.

    python picture.py FIGURES.json PICTURE.png

Needs matplotlib, and neither gpuglue nor a device: the figures may come from another machine.
"""

import json
import sys
from pathlib import Path

TITLES = {"up": "host to device", "down": "device to host, into warm memory", "down, fresh": "device to host, a new array"}


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
    """One panel for each direction."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    picture, panels = pyplot.subplots(1, len(TITLES), figsize=(15, 5), sharey=True)
    for panel, (row, title) in zip(panels, TITLES.items()):
        for side, (xs, ys) in lines(figures["sizes"], row).items():
            own = side == "gpuglue"
            panel.plot(xs, ys, marker="o", label=side, linewidth=2.5 if own else 1.2, zorder=3 if own else 2)
        panel.set_xscale("log", base=2)
        panel.set_title(title)
        panel.set_xlabel("MiB")
        panel.set_ylim(bottom=0)
        panel.grid(alpha=0.3)
        panel.legend()
    panels[0].set_ylabel("GB/s")
    picture.suptitle(f"copies of pageable memory, {figures['device']}")
    picture.tight_layout()
    picture.savefig(target, dpi=120)


def main():
    """Read, draw, say where."""
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, target = map(Path, sys.argv[1:])
    try:
        draw(json.loads(source.read_text()), target)
    except ModuleNotFoundError as error:
        sys.exit(f"no picture: {error.name} is not installed; run picture.py with {source} where it is")
    print(f"drawn: {target}")


if __name__ == "__main__":
    main()
