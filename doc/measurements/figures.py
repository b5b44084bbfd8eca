#!/usr/bin/env python3
# figures.py - draw the charts and write the tables of PERFORMANCE.md and README.md
# SPDX-License-Identifier: BSD-3-Clause
"""figures.py [--check]: charts to doc/figures/, tables into both documents.

A table stands between <!-- table NAME --> and <!-- end -->.  With --check nothing
is written: the script names every file that differs from its data, and every
number of PERFORMANCE.md, and of README.md's part about speed, that no file of
measurements has.  The law `figures` in test/lint does the same.
"""
import json
import math
import os
import re
import sys

import svg

PAGES = ("PERFORMANCE.md", "README.md")
SPAN = re.compile(r"(<!-- table (\S+) -->\n).*?(<!-- end -->)", re.S)
NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?")
# Parts of a page that hold no figures: blocks, code, targets of links, comments.
NO_FIGURES = re.compile(r"^```.*?^```|`[^`]*`|\]\([^)]*\)|<!--.*?-->", re.S | re.M)
# PyTorch on two nodes: each run and its name in the charts.
TORCH = (("zen4/torch-two-nodes-b066ab2", "Zen 4, 4 cores"),
         ("emerald/torch-two-nodes-98e77ce", "Emerald Rapids"),
         ("zen4/torch-two-nodes-f8d8101", "Zen 4"),
         ("zen3/torch-two-nodes-9214050", "Zen 3"))
ONE_MACHINE = ("emerald/torch-one-machine-98e77ce",
               "zen4/torch-one-machine-f8d8101", "zen3/torch-one-machine-9214050")
SIZES = ("64 floats", "1 MB", "25 MB", "256 MB")
STEPS = ("DDP digits", "DDP digits, wide", "DDP text", "DDP text, wide",
         "FSDP2 text, wide")


# each file of a run has these, and "values"; older records have tables and notes
RUN_KEYS = ("title", "machine", "date", "commit", "command", "conditions")


class Data:
    """The files of a folder, read when they are first asked for."""

    def __init__(self, folder):
        self.folder = folder
        self.files = {}

    def file(self, name):
        if name not in self.files:
            with open(os.path.join(self.folder, name + ".json"),
                      encoding="utf-8") as f:
                self.files[name] = json.load(f)
        return self.files[name]

    def value(self, file, name, peer=None):
        found = [v for v in self.file(file)["values"] if v["name"] == name
                 and peer in (None, v.get("peer"))]
        if len(found) != 1:
            raise SystemExit(f"{file}.json has {len(found)} values {name!r}")
        return found[0]

    def names(self):
        for folder, _, files in os.walk(self.folder):
            for file in sorted(files):
                if file.endswith(".json"):
                    path = os.path.join(folder, file)
                    yield os.path.relpath(path, self.folder)[:-5]


def point(v):
    """(low, middle, high) of a value: quartiles, or the lowest and highest run."""
    low, high = v.get("q1", v.get("lowest")), v.get("q3", v.get("highest"))
    middle = v["median"] if "median" in v else math.sqrt(low * high)
    return (middle if low is None else low, middle,
            middle if high is None else high)


def all_reduce_chart(data):
    return svg.dots(
        "PyTorch, two nodes: all_reduce of sumwire beside gloo", "times as fast",
        [f"{size}" for size in SIZES],
        [(name, [point(data.value(file, "all_reduce " + size)) for size in SIZES])
         for file, name in TORCH],
        ticks=(0.5, 1, 2), even=1, x_name="elements or bytes of each rank")


def step_chart(data):
    return svg.dots(
        "PyTorch, two nodes: training step of sumwire beside gloo",
        "times as fast", list(STEPS),
        [(name, [point(data.value(file, step)) for step in STEPS])
         for file, name in TORCH],
        ticks=(0.5, 1, 2), even=1, x_name="network")


def cpu_ns(v, who, n_bytes):
    """CPU time of both nodes per byte of a rank's tensor."""
    return v[who + "_ms"] * v[who + "_cores"] * 1e6 / n_bytes


def cpu_chart(data):
    places = [(file, name, size) for file, name in TORCH if "zen" in file
              for size in (25, 256)]
    series = []
    for who, name in (("sumwire", "sumwire"), ("peer", "gloo")):
        found = [cpu_ns(data.value(file, f"all_reduce {size} MB"), who, size * 1e6)
                 for file, _, size in places]
        series.append((name, [(x, x, x) for x in found]))
    return svg.dots(
        "PyTorch, two nodes: CPU time of an all_reduce", "ns per byte, both nodes",
        [f"{name}: {size} MB" for _, name, size in places], series,
        ticks=(1, 2, 4), x_name="machine and size")


def urgent_chart(data):
    near, far = "zen5/urgent-bd3f2cd", "zen4/urgent-f8d8101"
    ways = ("memif, pushes", "memif, results", "udp, pushes", "udp, results")
    fifo = point(data.value(near, "memif, pushes, in order of arrival"))
    return svg.dots(
        "64 KiB behind 256 MiB of less urgent data: p99", "times its time alone",
        list(ways),
        [("Zen 5", [point(data.value(near, way)) for way in ways]),
         ("Zen 4", [point(data.value(far, way)) for way in ways]),
         ("Zen 5, order of arrival", [fifo, None, None, None])],
        ticks=(1, 10, 100, 1000), even=1, x_name="port and direction of the load")


def queue_chart(data):
    file = "zen5/congestion-ba9c4b3c"
    series = []
    for name in "drops when full", "marks from 16 KiB on":
        v = data.value(file, "queue of 64 KiB, " + name)
        points = list(enumerate(v["kib"], 1))
        dropped = [0] + v["dropped"]
        series.append((name, points, [
            (ms, kib) for ms, kib in points if dropped[ms] > dropped[ms - 1]]))
    return svg.lines(
        "Simulated link of 200 Mb/s: queue, and milliseconds with drops",
        "KiB in the queue", "ms", series, (0, 50, 100, 150, 200, 250, 300),
        (0, 16, 32, 48, 64))


CHARTS = {"queue": queue_chart, "all_reduce": all_reduce_chart, "step": step_chart,
          "cpu_time": cpu_chart, "urgent": urgent_chart}


def said(x):
    """A number as the tables have it: three digits, integers whole."""
    if x >= 1000:
        return f"{x:,.0f}"
    if x >= 100 or x == int(x) and x >= 10:
        return f"{x:.0f}"
    return f"{x:.1f}" if x >= 10 else f"{x:.2f}"


def spread(v):
    low, _, high = point(v)
    return "" if low == high else f"{said(low)} – {said(high)}"


def table(columns, rows):
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |"
                              for row in rows]) + "\n"


def is_missed(v, is_time):
    """Is the middle value on the wrong side of the target?"""
    middle = point(v)[1]
    return middle > v["target"] if is_time else middle < v["target"]


def figure_row(data, text, file, name, is_time=False, peer=None):
    """A row: text, figure, spread, target (bold if missed), machine."""
    v = data.value(file, name, peer)
    figure = said(v["median"]) if "median" in v else ""
    target = said(v["target"]) if "target" in v else ""
    if target and is_missed(v, is_time):
        target = f"**{target}**"
    key = v.get("machine", data.file(file)["machine"])
    machine = {m["key"]: m["name"] for m in data.file("machines")["values"]}
    return text, figure, spread(v), target, machine.get(key, key)


MACHINES = ("zen3", "zen4-2", "zen4-4", "zen5", "emerald", "sapphire-2")


def machines_table(data):
    rows = {m["key"]: (m["name"], m["cpu"], m["cores"], m["polling_cores"])
            for m in data.file("machines")["values"]}
    return table(("name here", "CPU", "cores", "polling cores of a node"),
                 [rows[key] for key in MACHINES])


def peers_table(data):
    coll, push = "zen4/c-collectives-b066ab2", "zen4/c-push-pull-f47fdc2"
    rows = []
    for v in data.file(coll)["values"] + data.file(push)["values"]:
        file = coll if v in data.file(coll)["values"] else push
        text, figure, span, target, _ = figure_row(
            data, v["name"], file, v["name"], peer=v["peer"])
        rows.append((text, v["peer"], figure, span, target))
    return table(("call and size", "peer", "times as fast", "quartiles", "target"),
                 rows)


def core_table(data):
    echo = "256 MiB over raw echo, "
    kernels = "server over its kernels, "
    rows = [figure_row(data, echo + port, file, "over raw echo, " + port)
            for port, files in (
                ("memif", ("zen4/one-core-f8d8101", "zen3/one-core-b70f6c4",
                           "emerald/one-core-98e77ce")),
                ("udp", ("zen4/one-core-f8d8101", "zen3/one-core-b70f6c4",
                         "emerald/one-core-98e77ce")),
                ("af_packet", ("zen4/one-core-f8d8101",)))
            for file in files]
    for where in ("near", "far"):
        for n in (2, 32):
            rows.append(figure_row(
                data, f"{kernels}{n} members, {where} cores",
                "zen4/server-over-kernels-f8d8101", f"{where}, {n} members"))
    for p in ("p50", "p99"):
        rows.append(figure_row(
            data, f"4 KiB there and back, memif, {p}, µs", "zen4/one-core-f8d8101",
            f"4 KiB there and back, memif, blocking, {p}", True))
    return table(("quantity", "figure", "spread", "target", "machine"), rows)


OTHERS = (
    ("eight local ranks over the kernel of eight sources",
     "zen5/local-ranks-fc4b22c", "eight ranks over the kernel"),
    ("f32 add over the same loads and stores, AVX-512", "zen5/kernels-fc4b22c",
     "f32 add over the same loads and stores, L2, AVX-512"),
    ("chunks a second beside another job's arrival, over alone",
     "zen4/turns-f8d8101", "chunks a second beside alone"),
    ("a server's turn in that time, p99.9, µs", "zen4/turns-f8d8101",
     "CPU time of a turn, p99.9", True),
    ("all_reduce over push_pull, 512 KiB", "zen4/order-b066ab2",
     "all_reduce over push_pull, speed, 512 KiB"),
    ("sums in rank order, time over any order", "zen4/order-b066ab2",
     "sums in rank order over order of arrival, time", True),
    ("PyTorch, one of 1,000 tensors of 64 floats, grouped, µs",
     "sapphire/small-77b7f95", "a tensor, grouped", True),
    ("iteration over the ideal, three networks, at most", "counted",
     "iteration over the ideal, at most", True),
    ("the same in order of arrival", "counted",
     "iteration over the ideal in order of arrival, at most", True),
    ("time over the placement optimum, 0 to 8 CPU machines, %", "counted",
     "time over equation 6, k = 0 to 8", True),
    ("trials of the tuner to within 3 % of the best", "counted",
     "trials to within 3 % of the best", True),
    ("error of the sum of 64 ranks over its bound, bf16", "counted",
     "error of 64 workers' sum over its bound, bf16", True),
)


def others_table(data):
    return table(("quantity", "figure", "spread", "target", "machine"),
                 [figure_row(data, *row) for row in OTHERS])


def groups_table(data):
    rows = []
    for v in data.file("zen3/groups-c39bef46")["values"]:
        times = [f"{v[k]:.2f} s" if k in v else ""
                 for k in ("first_group_s", "second_group_s", "first_all_reduce_s")]
        rows.append((v["name"], *times, v["requests_of_a_rank"],
                     f"{v['requests']:,}"))
    return table(("ranks", "first group", "second group", "first all_reduce",
                  "requests of a rank", "of all"), rows)


def span_of(data, places, digits=1):
    """Lowest to highest median of values, bold if below 1."""
    found = sorted({round(point(data.value(*place))[1], digits)
                    for place in places})
    texts = [f"**{x}**" if x < 1 else f"{x}" for x in found]
    return texts[0] if len(texts) == 1 else f"{texts[0]} – {texts[-1]}"


def readme_table(data):
    nodes = [file for file, _ in TORCH]
    push, urgent = "zen4/c-push-pull-f47fdc2", "zen4/urgent-f8d8101"
    over = " and ".join(span_of(data, [(push, f"push_pull {n} MB", "OpenMPI, TCP")])
                        for n in (25, 256))
    shared = ", ".join(
        span_of(data, [(push, f"push_pull {n} MB", "OpenMPI, shared memory")], 2)
        for n in (4, 25, 256))
    rows = (
        ("PyTorch, two ranks on one machine, all_reduce of 25 MB",
         span_of(data, [(f, "all_reduce 25 MB") for f in ONE_MACHINE]) + " × gloo", 2),
        ("PyTorch, two nodes, all_reduce of 25 MB",
         span_of(data, [(nodes[0], "all_reduce 25 MB")]) + " × gloo", 4),
        ("the same, on three models of CPU",
         span_of(data, [(f, "all_reduce 25 MB") for f in nodes[1:]]) + " × gloo", 2),
        ("PyTorch, two nodes, DDP step bound by communication",
         span_of(data, [(f, "DDP digits, wide") for f in nodes]) + " × gloo",
         "2 and 4"),
        ("PyTorch, two nodes, FSDP2 step",
         span_of(data, [(f, "FSDP2 text, wide") for f in nodes]) + " × gloo",
         "2 and 4"),
        ("C, two nodes, 25 and 256 MB summed in place", over + " × OpenMPI over TCP",
         4),
        ("C, one machine, 4, 25 and 256 MB", shared + " × OpenMPI, shared memory", 4),
        ("64 KiB behind 256 MiB of less urgent data, p99",
         span_of(data, [(urgent, "memif, pushes")]) + " × its time alone", 2))
    return table(("measured", "sumwire is", "cores"), rows)


TABLES = {"machines": machines_table, "peers": peers_table, "core": core_table,
          "others": others_table, "groups": groups_table, "readme": readme_table}


def numbers_of(folder):
    """All numbers of the files, in values, tables and notes alike."""
    found = set()
    for name in Data(folder).names():
        with open(os.path.join(folder, name + ".json"), encoding="utf-8") as f:
            found |= {float(n.replace(",", "")) for n in NUMBER.findall(f.read())}
    return found


def unknown_numbers(text, known):
    """(line, number) of decimal numbers that no file has, rounded alike."""
    text = NO_FIGURES.sub(lambda m: "\n" * m[0].count("\n"), text)
    for i, line in enumerate(text.split("\n"), 1):
        for n in NUMBER.findall(line):
            digits = len(n.partition(".")[2])
            if "." in n and not any(round(x, digits) == float(n) for x in known):
                yield i, n


def form_faults(data):
    """(name, text) of files that lack a part."""
    keys = {m["key"] for m in data.file("machines")["values"]}
    for name in data.names():
        run = data.file(name)
        if name == "machines" or "values" not in run or "about" in run:
            continue
        missing = [k for k in RUN_KEYS if k not in run]
        if missing:
            yield name, "has no " + ", ".join(missing)
        elif run["machine"] not in keys | {"any"}:
            yield name, f"machines.json has no {run['machine']}"
        for v in run["values"]:
            if "name" not in v or not any(
                    isinstance(x, (int, float)) for x in v.values()):
                yield name, f"a value without name or number: {v}"


def results(root):
    """(path, text) of each file as the data want it."""
    data = Data(os.path.join(root, "doc", "measurements"))
    for name, chart in CHARTS.items():
        yield f"doc/figures/{name}.svg", chart(data)
    for page in PAGES:
        with open(os.path.join(root, page), encoding="utf-8") as f:
            text = f.read()
        yield page, SPAN.sub(lambda m: m[1] + TABLES[m[2]](data) + m[3], text)


def faults(root):
    """(path, line, text) of each figure that the data do not have."""
    for path, wanted in results(root):
        try:
            with open(os.path.join(root, path), encoding="utf-8") as f:
                is_same = f.read() == wanted
        except FileNotFoundError:
            is_same = False
        if not is_same:
            yield path, 0, "not of the data: run doc/measurements/figures.py"
    for name, text in form_faults(Data(os.path.join(root, "doc", "measurements"))):
        yield f"doc/measurements/{name}.json", 0, text
    known = numbers_of(os.path.join(root, "doc", "measurements"))
    for page in PAGES:
        with open(os.path.join(root, page), encoding="utf-8") as f:
            text = f.read()
        before = 0
        if page == "README.md":
            head, _, rest = text.partition("\n## Performance\n")
            before, text = head.count("\n"), rest.partition("\n## ")[0]
        for line, n in unknown_numbers(text, known):
            yield page, before + line, f"no file of doc/measurements/ has {n}"


def main():
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    if sys.argv[1:] == ["--check"]:
        found = list(faults(root))
        for path, line, text in found:
            print(f"{path}:{line}: {text}")
        return 1 if found else 0
    if sys.argv[1:]:
        sys.exit(__doc__)
    for path, text in results(root):
        os.makedirs(os.path.dirname(os.path.join(root, path)) or ".", exist_ok=True)
        with open(os.path.join(root, path), "w", encoding="utf-8") as f:
            f.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
