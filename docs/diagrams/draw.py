"""Draws the diagrams of the documentation: python docs/diagrams/draw.py writes *.svg beside this file.

The colours are readable on a light and on a dark page: white text on boxes of a middle tone, and lines in a grey between
the two backgrounds."""

from pathlib import Path
from xml.sax.saxutils import escape

BLUE, GREEN, ORANGE, GREY, LINE = "#2f6db3", "#2a7d4f", "#a85a12", "#5f6b7a", "#7c8490"
STYLE = "text{font-family:system-ui,'DejaVu Sans',sans-serif;font-size:16px}"


class Drawing:
    """An SVG image of a fixed size."""

    def __init__(self, width, height, title):
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
                      f"<title>{escape(title)}</title>", f"<style>{STYLE}</style>",
                      f'<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">'
                      f'<path d="M0 0L10 5L0 10z" fill="{LINE}"/></marker></defs>']

    def text(self, x, y, text, colour=LINE, anchor="middle", size=16):
        """Text whose middle line is at y; a line break begins a new line."""
        lines = text.split("\n")
        for number, line in enumerate(lines):
            at = y + (number - (len(lines) - 1) / 2) * 1.25 * size + 0.35 * size
            self.parts.append(f'<text x="{x}" y="{at:.1f}" fill="{colour}" text-anchor="{anchor}" style="font-size:{size}px">{escape(line)}</text>')

    def box(self, x, y, width, height, text, colour=BLUE, size=16):
        """A filled box with white text."""
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="{colour}"/>')
        self.text(x + width / 2, y + height / 2, text, "#fff", size=size)

    def frame(self, x, y, width, height):
        """An empty dashed box."""
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="none" stroke="{LINE}" stroke-width="1.5" stroke-dasharray="6 4"/>')

    def line(self, *points, head=True, dashed=False):
        """A line through points, with an arrow head at its end."""
        path = "L".join(f"{x} {y}" for x, y in points)
        marker = ' marker-end="url(#head)"' if head else ""
        dashes = ' stroke-dasharray="6 4"' if dashed else ""
        self.parts.append(f'<path d="M{path}" fill="none" stroke="{LINE}" stroke-width="2"{dashes}{marker}/>')

    def dot(self, x, y):
        self.parts.append(f'<circle cx="{x}" cy="{y}" r="7" fill="{ORANGE}"/>')

    def svg(self):
        return "\n".join([*self.parts, "</svg>\n"])


def layers():
    """Programs, the core, plugins, drivers."""
    image = Drawing(640, 414, "The layers of gpuglue")
    image.box(0, 0, 312, 48, "Python programs", GREY)
    image.box(328, 0, 312, 48, "C, C++ and Fortran programs", GREY)
    image.line((156, 50), (156, 70))
    image.line((484, 50), (484, 138))
    image.box(0, 74, 312, 44, "Python package gpuglue")
    image.line((156, 120), (156, 138))
    image.box(0, 142, 640, 60, "libgpuglue, the core: devices, streams, events,\nmemory, copies, kernels; names no vendor")
    image.frame(0, 206, 640, 34)
    image.text(320, 223, "one table of operations: gpuglue/backend.h", size=14)
    plugins = {"cuda": "libcuda", "hip": "libamdhip64", "ze": "libze_loader", "host": "threads", "yours": "…"}
    for number, (name, library) in enumerate(plugins.items()):
        x = number * 130
        image.line((x + 60, 241), (x + 60, 262))
        image.box(x, 266, 120, 44, name, GREEN)
        image.line((x + 60, 312), (x + 60, 334))
        image.box(x, 338, 120, 44, library, ORANGE)
    image.text(320, 400, "plugins; each uses its vendor's driver library, if there is one", size=14)
    return image


def streams():
    """The order of two streams and of the host."""
    image = Drawing(660, 290, "The order of two streams")
    for y, name, start in ((30, "stream a", 85), (110, "host", 85), (190, "stream b", 262)):
        image.text(0, y, name, anchor="start")
        image.line((start, y), (655, y), head=False)
    image.box(90, 90, 58, 40, "queue", GREY, size=14)
    image.box(152, 90, 58, 40, "queue", GREY, size=14)
    image.text(365, 98, "does other work", size=14)
    image.box(460, 90, 112, 40, "waits for b", GREY, size=14)
    image.box(580, 90, 75, 40, "result", GREY, size=14)
    image.line((119, 88), (119, 54))
    image.line((181, 132), (181, 166))
    image.box(105, 10, 136, 40, "copy to device")
    image.dot(254, 30)
    image.text(268, 14, "event", anchor="start", size=14)
    image.box(400, 10, 140, 40, "next copy")
    image.line((254, 38), (254, 166))
    image.frame(105, 170, 144, 40)
    image.text(177, 190, "waits for the event", size=13)
    image.box(262, 170, 150, 40, "kernel", GREEN)
    image.box(418, 170, 150, 40, "copy to host", GREEN)
    image.line((566, 168), (576, 134), dashed=True)
    image.line((85, 250), (655, 250))
    image.text(370, 268, "time", size=14)
    return image


def block():
    """The life of a block of memory."""
    image = Drawing(640, 330, "The life of a block of memory")
    image.box(0, 20, 150, 60, "the driver's\nmemory", ORANGE)
    image.box(470, 20, 170, 60, "in use\nby the program", BLUE)
    image.box(470, 230, 170, 60, "retired: queued\nwork still uses it", GREY)
    image.box(0, 230, 150, 60, "cached\nin the pool", GREEN)
    image.line((152, 40), (464, 40))
    image.text(308, 24, "allocated; the pool has no free block", size=14)
    image.line((600, 82), (600, 224))
    image.text(592, 132, "released", anchor="end", size=14)
    image.line((510, 228), (510, 86), dashed=True)
    image.text(502, 186, "allocated again on the\nsame stream: at once", anchor="end", size=14)
    image.line((466, 270), (156, 270))
    image.text(310, 288, "its work is complete", size=14)
    image.line((130, 226), (466, 72))
    image.text(205, 132, "allocated again,\non any stream", size=14)
    image.line((40, 228), (40, 86))
    image.text(48, 186, "trim, or above\nthe threshold", anchor="start", size=14)
    return image


DIAGRAMS = {"layers": layers, "streams": streams, "block": block}

if __name__ == "__main__":
    for name, draw in DIAGRAMS.items():
        (Path(__file__).parent / f"{name}.svg").write_text(draw().svg())
