# trace_picture.py - one round of a trace as SVG
# SPDX-License-Identifier: BSD-3-Clause
"""trace_picture.py TRACE.json late|quick > PICTURE.svg

`sumwire trace JOB -o TRACE.json` wrote TRACE.json while a job ran; its first tensor counts.

quick draws the round with the shortest time from the first call to the last result, late
the one in which the second rank called the latest after the first one.
"""
import collections
import json
import sys

from svg import line, text

WIDTH, LEFT, TOP, ROW = 760, 190, 44, 30
COLOURS = {"push": "#0072b2", "fold": "#d55e00", "result": "#009e73", "hold": "#cc79a7",
           "call": "#bbbbbb"}


def rounds_of(events):
    """The chunks' slices of each round, and the calls that overlap them."""
    rounds = collections.defaultdict(list)
    tensor = next(e["args"]["tensor"] for e in events if e.get("cat") == "chunk")
    for e in events:
        if e.get("cat") == "chunk" and e["name"] in COLOURS and \
                e["args"]["tensor"] == tensor:
            rounds[e["args"]["round"]].append(e)
    first, last = min(rounds), max(rounds)
    for found in rounds.values():
        begin, end = ends(found)
        number = found[0]["args"]["round"]
        found += [{**e, "name": "call"} for e in events if e.get("cat") == "call" and
                  e["name"] == tensor and e["args"]["number"] == number and
                  e["ts"] < end and e["ts"] + e["dur"] > begin]
    return [found for number, found in sorted(rounds.items())
            if first < number < last]


def ends(slices):
    return min(e["ts"] for e in slices), max(e["ts"] + e["dur"] for e in slices)


def lateness(slices):
    calls = [e["ts"] for e in slices if e["name"] == "call"]
    return max(calls) - min(calls)


def choose(rounds, how):
    whole = [r for r in rounds if sum(e["name"] == "call" for e in r) == 2]
    if how == "late":
        return max(whole, key=lateness)
    return min(whole, key=lambda r: ends(r)[1] - ends(r)[0])


def names_of(events):
    """(process, track): name, such as "gpu0: link to server"."""
    of = {(e["pid"], e["name"], e["tid"]): e["args"]["name"] for e in events
          if e["ph"] == "M"}
    out = {}
    for (pid, kind, tid), name in of.items():
        if kind == "thread_name":
            daemon = of[pid, "process_name", 0].split(" ")[1]
            out[pid, tid] = f"{daemon}: {' '.join(name.split(' ')[:4 if ' agent ' in name else 3])}"
    return out


def draw(events, slices, arrows):
    begin, end = ends(slices)
    tracks = sorted({(e["pid"], e["tid"]) for e in slices},
                    key=lambda at: (names_of(events)[at].split(":")[0],
                                    -at[1]))
    rows = {at: TOP + i * ROW for i, at in enumerate(tracks)}
    scale = (WIDTH - LEFT - 16) / (end - begin)
    height = TOP + len(tracks) * ROW + 26
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
           f'font-family="sans-serif"><rect width="100%" height="100%" fill="#fff"/>')
    for i, (name, colour) in enumerate(COLOURS.items()):
        yield f'<rect x="{LEFT + 90 * i}" y="12" width="12" height="12" fill="{colour}"/>'
        yield text(LEFT + 90 * i + 18, 22, name, "start")
    for at, y in rows.items():
        yield text(LEFT - 8, y + 14, names_of(events)[at], "end")
    for e in slices:
        y = rows[e["pid"], e["tid"]]
        yield (f'<rect x="{LEFT + (e["ts"] - begin) * scale:.1f}" y="{y}" '
               f'width="{max(e["dur"] * scale, 1):.1f}" height="20" '
               f'fill="{COLOURS[e["name"]]}"/>')
    for way in arrows:
        spots = [(LEFT + (e["ts"] - begin) * scale, rows[e["pid"], e["tid"]] + 10)
                 for e in way if (e["pid"], e["tid"]) in rows]
        for (x0, y0), (x1, y1) in zip(spots, spots[1:]):
            yield line(x0, y0, x1, y1, "#888", 0.4)
    yield text(LEFT, height - 8, "0", "start")
    yield text(WIDTH - 16, height - 8, f"{(end - begin) / 1000:.2f} ms", "end")
    yield "</svg>"


def main(path, how):
    with open(path, encoding="utf-8") as f:
        events = json.load(f)["traceEvents"]
    slices = choose(rounds_of(events), how)
    begin, end = ends(slices)
    ways = collections.defaultdict(list)
    for e in events:
        if e["ph"] in "stf" and begin <= e["ts"] <= end:
            ways[e["id"]].append(e)
    print("\n".join(draw(events, slices, ways.values())))


if __name__ == "__main__":
    main(*sys.argv[1:])
