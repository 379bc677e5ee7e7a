"""Draws the shapes of a JSON file into a PNG with matplotlib. usage: draw.py SHAPES.json IMAGE.png"""
import json
import sys

try:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Circle, Polygon
except ImportError:
    sys.exit(77)

DPI = 96
POINT = 72 / DPI  # matplotlib measures lines and letters in 1/72 inch, we in 1/96


def line(shape, order):
    xs, ys = zip(*shape["places"])
    dashes = (0, tuple(length / shape["width"] for length in shape["dashes"])) if shape["dashes"] else "-"
    return Line2D(xs, ys, color=shape["stroke"], linewidth=shape["width"] * POINT, linestyle=dashes, zorder=order,
                  solid_capstyle="butt", dash_capstyle="butt", solid_joinstyle="round")


def area(shape, order):
    edge = {"edgecolor": shape["stroke"] or "none", "linewidth": shape["width"] * POINT if shape["stroke"] else 0}
    face = {"facecolor": shape["fill"] or "none", "zorder": order, **edge}
    return Circle(shape["centre"], shape["radius"], **face) if "radius" in shape else Polygon(shape["places"], **face)


def text(axes, shape, order):
    plain = shape["text"].replace("$", "\\$")  # between two bare ones, matplotlib expects TeX
    axes.text(*shape["at"], plain, fontsize=shape["size"] * POINT, color=shape["colour"], ha=shape["align"],
              va="baseline", rotation=0 if shape["is_upright"] else 90, rotation_mode="anchor", zorder=order,
              family=["DejaVu Sans"], weight="bold" if shape["is_bold"] else "normal")


def main(source, image):
    with open(source, encoding="utf-8") as file:
        drawing = json.load(file)
    size = (drawing["width"] / DPI, drawing["height"] / DPI)
    figure = Figure(figsize=size, dpi=DPI * drawing["scale"], facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, drawing["width"])
    axes.set_ylim(drawing["height"], 0)
    for order, shape in enumerate(drawing["shapes"]):
        if "text" in shape:
            text(axes, shape, order)
        elif "radius" in shape or shape["is_closed"]:
            axes.add_patch(area(shape, order))
        else:
            axes.add_line(line(shape, order))
    figure.savefig(image, format="png")


main(*sys.argv[1:])
