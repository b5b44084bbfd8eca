# svg.py - charts as SVG: dots with their spreads, lines over time
# SPDX-License-Identifier: BSD-3-Clause
"""Two kinds of charts.  dots: for each category, a mark of each series at its middle
value, with a line from its low to its high one, on a logarithmic axis.  lines: a line
for each series on linear axes, with marks at some of its points."""
import math
from html import escape

WIDTH, HEIGHT = 760, 360
LEFT, RIGHT, TOP, LOW = 70, 180, 56, 62
# The palette of Okabe and Ito, which colour-blind readers tell apart; each series
# has a shape of its own as well.
SERIES = (("#0072b2", "circle"), ("#d55e00", "square"), ("#009e73", "triangle"),
          ("#cc79a7", "diamond"))
SHAPES = {"square": ((-4, -4), (4, -4), (4, 4), (-4, 4)),
          "triangle": ((0, -5), (5, 4), (-5, 4)),
          "diamond": ((0, -6), (6, 0), (0, 6), (-6, 0))}


def text(x, y, string, anchor="middle", colour="#333", size=12):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" '
            f'font-size="{size}">{escape(string)}</text>')


def mark(x, y, colour, shape):
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{colour}"/>'
    points = " ".join(f"{x + a:.1f},{y + b:.1f}" for a, b in SHAPES[shape])
    return f'<polygon points="{points}" fill="{colour}"/>'


def line(x0, y0, x1, y1, colour, width=1.0):
    return (f'<path d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}" stroke="{colour}" '
            f'stroke-width="{width:g}"/>')


def ends(series, ticks):
    """The ends of the axis: those of values and ticks, with some room."""
    found = [y for _, points in series for p in points if p for y in p]
    return min(found + list(ticks)) / 1.1, max(found + list(ticks)) * 1.1


def axes(names, y_name, x_name, ticks, even, down):
    """Frame, ticks, names; @even is the value at which both are equal."""
    out = [text(LEFT, TOP - 10, y_name, "start")]
    for tick in ticks:
        out.append(line(LEFT, down(tick), WIDTH - RIGHT, down(tick),
                        "#555" if tick == even else "#ddd"))
        out.append(text(LEFT - 8, down(tick) + 4, f"{tick:,g}", "end"))
    step = (WIDTH - LEFT - RIGHT) / len(names)
    for i, name in enumerate(names):
        first, _, second = name.partition(": ")
        out.append(text(LEFT + (i + 0.5) * step, HEIGHT - LOW + 18, first,
                        size=11))
        if second:
            out.append(text(LEFT + (i + 0.5) * step, HEIGHT - LOW + 32, second,
                            size=11))
    out.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, x_name))
    return out


def head(title):
    return [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" '
            f'height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
            'font-family="sans-serif">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
            text(LEFT, 22, title, "start", "#000", 15)]


def lines(title, y_name, x_name, series, x_ticks, y_ticks):
    """The chart.  @series: (name, points (x, y), points to mark)."""
    def across(x):
        return LEFT + (WIDTH - LEFT - RIGHT) * x / x_ticks[-1]

    def down(y):
        return HEIGHT - LOW - (HEIGHT - TOP - LOW) * y / y_ticks[-1]

    out = [*head(title), text(LEFT, TOP - 10, y_name, "start")]
    for tick in y_ticks:
        out += [line(LEFT, down(tick), WIDTH - RIGHT, down(tick), "#ddd"),
                text(LEFT - 8, down(tick) + 4, f"{tick:,g}", "end")]
    out += [text(across(tick), HEIGHT - LOW + 18, f"{tick:,g}", size=11)
            for tick in x_ticks]
    out.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, x_name))
    for k, (name, points, marked) in enumerate(series):
        colour, shape = SERIES[k]
        path = "L".join(f"{across(x):.1f} {down(y):.1f}" for x, y in points)
        out.append(f'<path d="M{path}" stroke="{colour}" stroke-width="1.5" '
                   'fill="none"/>')
        out += [mark(across(x), down(y), colour, shape) for x, y in marked]
        y = TOP + 10 + 20 * k
        out += [mark(WIDTH - RIGHT + 20, y, colour, shape),
                text(WIDTH - RIGHT + 32, y + 4, name, "start")]
    return "\n".join(out + ["</svg>", ""])


def dots(title, y_name, names, series, ticks, even=None, x_name=""):
    """The chart.  @series: (name, [(low, middle, high) or None for each of @names])."""
    low, high = ends(series, ticks)

    def down(y):
        return HEIGHT - LOW - (HEIGHT - TOP - LOW) * (
            math.log(y / low) / math.log(high / low))

    out = [*head(title),
           *axes(names, y_name, x_name, ticks, even, down)]
    step = (WIDTH - LEFT - RIGHT) / len(names)
    for k, (name, points) in enumerate(series):
        colour, shape = SERIES[k]
        for i, p in enumerate(points):
            if p is None:
                continue
            x = LEFT + (i + 0.5) * step + (k - (len(series) - 1) / 2) * 14
            out += [line(x, down(p[0]), x, down(p[2]), colour, 2),
                    mark(x, down(p[1]), colour, shape)]
        y = TOP + 10 + 20 * k
        out += [mark(WIDTH - RIGHT + 20, y, colour, shape),
                text(WIDTH - RIGHT + 32, y + 4, name, "start")]
    return "\n".join(out + ["</svg>", ""])
