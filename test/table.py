#!/usr/bin/env python3
# table.py - the closing table of test/run, from meson's JSON logs
# SPDX-License-Identifier: BSD-3-Clause
"""table.py LOG...: one row per suite with tests, cases and seconds.

A test is one program.  Cases are what a program reports: the lines of its TAP
output, else its own closing "N passed, N failed"; a program that reports
neither is one case. Exit code 0 only if a test passed and none failed. A
skipped case without a line in test/skips that holds here has failed.
"""
import fnmatch
import functools
import json
import os
import re
import subprocess
import sys

PASSED = {"OK", "EXPECTEDFAIL"}
SKIPS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "skips")


def read_log(path):
    """The tests of one meson log (one JSON object a line); [] if it is
    missing."""
    try:
        with open(path, encoding="utf-8") as f:
            return [json.loads(line) for line in f]
    except OSError:
        return []


def suite_of(test):
    """The suite in "PROJECT:SUITE / NAME"."""
    return test["name"].split(" / ")[0].split(":")[-1]


def n_cases(test):
    """How many cases a test's output speaks of, at least 1."""
    out = test.get("stdout") or ""
    tap = re.findall(r"^\s*(?:not )?ok\b", out, re.M)
    if tap:
        return len(tap)
    closing = re.findall(r"^(\d+) passed, (\d+) failed", out, re.M)
    return max(1, sum(map(int, closing[-1]))) if closing else 1


def read_skips():
    """(program, case, condition, reason) of each line of test/skips."""
    rows = []
    with open(SKIPS, encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                names, *rest, reason = line.split(" | ")
                program, case = names.split()
                rows.append((program, case, " | ".join(rest), reason.strip()))
    return rows


def skipped_cases(test):
    """Names of the cases that a test skipped; "*": all of it."""
    out = test.get("stdout") or ""
    cases = re.findall(r"^SKIP (\w+) [\d.]+ s", out, re.M)  # rig.py's
    cases += re.findall(r"^ok \d+ - (\S+) # SKIP", out, re.M)  # TAP
    return cases or (["*"] if test["result"] == "SKIP" else [])


@functools.lru_cache(maxsize=None)
def is_so(condition):
    return subprocess.run(["sh", "-c", condition], check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


def why_allowed(program, case, rows):
    """The reason for which it may be skipped here, or None."""
    for row_program, row_case, condition, reason in rows:
        if row_program == program and \
                fnmatch.fnmatchcase(case, row_case) and is_so(condition):
            return reason
    return None


def tell_skips(tests, rows):
    """Say what was skipped; returns the tests in which something may not be."""
    wrong = []
    for test in tests:
        program = test["name"].split(" / ")[-1].split(":")[-1]
        for case in skipped_cases(test):
            reason = why_allowed(program, case, rows)
            print(f"skipped: {program} {case}: " +
                  (reason or "not in test/skips, or not for this machine"))
            if not reason and test not in wrong:
                wrong.append(test)
    return wrong


def row(name, tests, rows):
    """Counts of one suite: passed, failed, skipped, cases, seconds."""
    for t in tell_skips(tests, rows):
        t["result"] = "FAIL"
    n_ok = sum(t["result"] in PASSED for t in tests)
    n_skip = sum(t["result"] == "SKIP" for t in tests)
    n_bad = len(tests) - n_ok - n_skip
    start = min((t["starttime"] for t in tests), default=0)
    end = max((t["starttime"] + t["duration"] for t in tests), default=0)
    return name, n_ok, n_bad, n_skip, sum(map(n_cases, tests)), end - start


def main(paths):
    skips = read_skips()
    logs = {path: read_log(path) for path in paths}
    suites = {}
    for test in (t for log in logs.values() for t in log):
        suites.setdefault(suite_of(test), []).append(test)
    rows = [row(name, tests, skips) for name, tests in suites.items()]
    print(f"{'suite':<20}{'passed':>8}{'failed':>8}{'skipped':>9}"
          f"{'cases':>8}{'seconds':>9}")
    for r in rows:
        print(f"{r[0]:<20}{r[1]:>8}{r[2]:>8}{r[3]:>9}{r[4]:>8}{r[5]:>9.1f}")
    empty = [path for path, log in logs.items() if not log]
    for path in empty:
        print(f"{path}: no test was run")
    n_ok, n_bad, n_skip = (sum(r[i] for r in rows) for i in (1, 2, 3))
    n_bad += len(empty)
    skipped = f", {n_skip} skipped" if n_skip else ""
    print(f"{n_ok} passed, {n_bad} failed{skipped}")
    return 0 if n_ok and not n_bad else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
