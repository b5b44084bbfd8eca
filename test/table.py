#!/usr/bin/env python3
# table.py - the closing table of test/run, from meson's JSON logs
# SPDX-License-Identifier: BSD-3-Clause
"""table.py NAME=LOG...: one row per NAME with tests, cases and seconds.

A test is one program.  Cases are what a program reports: the lines of its TAP
output, else its own closing "N passed, N failed"; a program that reports
neither is one case.  Exit code 0 only if a test passed and none failed.
"""
import json
import re
import sys

PASSED = {"OK", "EXPECTEDFAIL"}


def read_log(path):
    """The tests of one meson log (one JSON object a line); [] if there is none."""
    try:
        with open(path, encoding="utf-8") as f:
            return [json.loads(line) for line in f]
    except OSError:
        return []


def n_cases(test):
    """How many cases a test's output speaks of, at least 1."""
    out = test.get("stdout") or ""
    tap = re.findall(r"^\s*(?:not )?ok\b", out, re.M)
    if tap:
        return len(tap)
    closing = re.findall(r"^(\d+) passed, (\d+) failed", out, re.M)
    return max(1, sum(map(int, closing[-1]))) if closing else 1


def row(name, tests):
    """Counts of one suite: passed, failed, skipped, cases, seconds."""
    n_ok = sum(t["result"] in PASSED for t in tests)
    n_skip = sum(t["result"] == "SKIP" for t in tests)
    n_bad = len(tests) - n_ok - n_skip
    start = min((t["starttime"] for t in tests), default=0)
    end = max((t["starttime"] + t["duration"] for t in tests), default=0)
    return name, n_ok, n_bad, n_skip, sum(map(n_cases, tests)), end - start


def main(args):
    rows = [row(*(a.split("=", 1)[0], read_log(a.split("=", 1)[1])))
            for a in args]
    print(f"{'suite':<20}{'passed':>8}{'failed':>8}{'skipped':>9}"
          f"{'cases':>8}{'seconds':>9}")
    for r in rows:
        print(f"{r[0]:<20}{r[1]:>8}{r[2]:>8}{r[3]:>9}{r[4]:>8}{r[5]:>9.1f}")
    for name in (r[0] for r in rows if r[1] + r[2] + r[3] == 0):
        print(f"{name}: no test was run")
    n_ok, n_bad, n_skip = (sum(r[i] for r in rows) for i in (1, 2, 3))
    n_bad += sum(r[1] + r[2] + r[3] == 0 for r in rows)
    skipped = f", {n_skip} skipped" if n_skip else ""
    print(f"{n_ok} passed, {n_bad} failed{skipped}")
    return 0 if n_ok and not n_bad else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
