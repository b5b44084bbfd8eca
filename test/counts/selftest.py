#!/usr/bin/python3
# selftest.py - counts: a large rise is reported by name, a small one is not
# SPDX-License-Identifier: BSD-3-Clause
import os
import sys
import tempfile

import counts

KEY = (8, 131072, "server_push")
OLD = {KEY: [1000.0, 30.0, 0.0, 10.0]}
# New counts, and the parts that must be reported.
CASES = [
    ({KEY: [1000.0, 30.0, 0.0, 10.0]}, []),
    ({KEY: [1029.0, 30.0, 0.0, 10.0]}, []),
    ({KEY: [1031.0, 30.0, 0.0, 10.0]}, ["engine"]),
    ({KEY: [1000.0, 31.9, 0.0, 11.9]}, []),
    ({KEY: [1000.0, 33.0, 0.0, 13.0]}, ["crc", "copy"]),
    ({KEY: [1000.0, 30.0, 2.1, 10.0]}, ["add"]),
    ({KEY: [900.0, 30.0, 0.0, 10.0]}, ["engine"]),
    ({KEY: [1000.0, 30.0, 0.0, 10.0],
      (8, 131072, "new"): [3.0, 0.0, 0.0, 0.0]}, ["engine"]),
    ({}, ["engine", "crc", "copy"]),
]


def main():
    n_bad = 0
    for new, want in CASES:
        got = [name.rsplit(", ", 1)[1]
               for name, _, _ in counts.changes(OLD, new)]
        if got != want:
            print(f"{new}: {got}, not {want}")
            n_bad += 1
    shares = list(counts.reader_shares({**OLD, (8, 131072, "worker_push"): [500.0] * 5,
                                        (8, 131072, "server_look"): [3000.0, 0, 0, 142.0, 0],
                                        (2, 64, "server_push"): [9.0] * 5}))
    if [(m, n, round(s, 5)) for m, n, s in shares] != [(8, 131072, 0.0002)]:
        print(f"readers take {shares}")
        n_bad += 1
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "recorded")
        counts.write(path, "12.2.0", OLD)
        if counts.read(path) != ("12.2.0", OLD):
            print("what was written is not what is read")
            n_bad += 1
    print(f"{len(CASES) + 2 - n_bad} passed, {n_bad} failed")
    return n_bad != 0


sys.exit(main())
