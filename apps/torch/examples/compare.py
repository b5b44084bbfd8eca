# compare.py - the examples over sumwire and over gloo, side by side
# SPDX-License-Identifier: BSD-3-Clause
"""compare.py [--repeats N] [--np N] [--json]

Runs each model over sumwire with and without the barrier and over torch's own
DDP with gloo, in turns, on this machine: sumwire over memif, gloo over TCP on
the loopback device.  Prints medians over the repeats; "alone" is forward and
backward without any communication."""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SUMWIRE = os.path.join(HERE, "..", "..", "..", "build", "apps", "sumwire")
WAYS = {"sumwire": [], "sumwire, barrier": ["--barrier"],
        "gloo": ["--ddp", "gloo"]}
MODELS = {
    "digits": ["digits.py", "--steps", "60"],
    "digits, width 2048": ["digits.py", "--steps", "25", "--width", "2048",
                           "--batch", "8"],
    "text": ["text.py", "--steps", "25"],
    "text, width 512, length 16": ["text.py", "--steps", "12", "--width", "512",
                                   "--length", "16", "--batch", "2"],
}
LINE = re.compile(r"ranks, ([\d,]+) parameters, (.*), step ([\d.]+) ms, of it "
                  r"forward and backward ([\d.]+) ms")


def run(n_ranks, program, way):
    """Parameters, what was learnt, ms of a step, ms alone."""
    p = subprocess.run(
        [SUMWIRE, "run", "-np", str(n_ranks), "--no-tags", sys.executable,
         os.path.join(HERE, program[0]), *program[1:], *way],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        timeout=600, check=False)
    found = LINE.search(p.stdout)
    if p.returncode or not found:
        sys.exit(f"compare: {' '.join(program + way)} ended with "
                 f"{p.returncode}:\n{p.stdout}{p.stderr}")
    n, learnt, step, alone = found.groups()
    return int(n.replace(",", "")), learnt, float(step), float(alone)


def measure(model, repeats, n_ranks):
    """One row per way of summing; turns, since a machine changes its mind."""
    runs = {way: [] for way in WAYS}
    for i in range(repeats):
        for way, options in WAYS.items():
            print(f"{model}, {way}, {i + 1} of {repeats}", file=sys.stderr)
            runs[way].append(run(n_ranks, MODELS[model], options))
    gloo = statistics.median(r[2] for r in runs["gloo"])
    rows = []
    for way, all_runs in runs.items():
        step = statistics.median(r[2] for r in all_runs)
        alone = statistics.median(r[3] for r in all_runs)
        rows.append({"model": model, "parameters": all_runs[0][0], "way": way,
                     "step_ms": step, "alone_ms": alone,
                     "communication": max(0, 1 - alone / step),
                     "speed_to_gloo": gloo / step, "learnt": all_runs[0][1]})
    return rows


def main():
    p = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--repeats", type=int, default=3)
    p.add_argument("--np", type=int, default=2, help="ranks")
    p.add_argument("--json", action="store_true", help="one object on stdout")
    args = p.parse_args()
    rows = [r for m in MODELS for r in measure(m, args.repeats, args.np)]
    if args.json:
        print(json.dumps({"ranks": args.np, "rows": rows}))
        return
    print("| model | parameters | over | step | communication | speed to gloo "
          "| learnt |\n|---|---|---|---|---|---|---|")
    for r in rows:
        print(f"| {r['model']} | {r['parameters']:,} | {r['way']} | "
              f"{r['step_ms']:.1f} ms | {r['communication']:.0%} | "
              f"{r['speed_to_gloo']:.2f} | {r['learnt']} |")


if __name__ == "__main__":
    main()
