#!/usr/bin/env python3
# table_test.py - the closing table: a skip that is not allowed is a failure
# SPDX-License-Identifier: BSD-3-Clause
import contextlib
import io
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                ".."))
import table  # noqa: E402

SKIPS = """# a comment

proc_a one | true | it may
proc_a two | false | it may elsewhere
proc_b *   | true || false | all of it may
"""
TAP = "1..2\nok 1 - good\nok 2 - bad # SKIP\n"
# Program, result, output, and the expected result in the table.
CASES = [
    ("proc_a", "OK", "PASS one 0.1 s\n1 passed, 0 failed\n", 0),
    ("proc_a", "OK", "SKIP one 0.1 s: no way\n1 passed, 0 failed\n", 0),
    ("proc_a", "OK", "SKIP two 0.1 s: no way\n1 passed, 0 failed\n", 1),
    ("proc_a", "OK", "SKIP three 0.1 s: no way\n1 passed, 0 failed\n", 1),
    ("proc_a", "SKIP", "SKIP: nothing can run\n", 1),
    ("proc_a", "FAIL", "FAIL one 0.1 s: wrong\n", 1),
    ("proc_b", "SKIP", "SKIP: nothing can run\n", 0),
    ("proc_b", "OK", "SKIP any 0.1 s: no way\n", 0),
    ("unit_c", "OK", TAP, 1),
]


def code_of(folder, program, result, out):
    """Return the exit code of the table for one test and another that passes."""
    log = os.path.join(folder, "log.json")
    with open(log, "w", encoding="utf-8") as f:
        for name, res, text in (("good", "OK", ""), (program, result, out)):
            f.write(json.dumps({"name": f"sumwire:{program[:4]} / {name}",
                                "result": res, "stdout": text, "starttime": 0,
                                "duration": 1}) + "\n")
    with contextlib.redirect_stdout(io.StringIO()):
        return table.main([log])


def main():
    n_bad = 0
    with tempfile.TemporaryDirectory() as folder:
        table.SKIPS = os.path.join(folder, "skips")
        with open(table.SKIPS, "w", encoding="utf-8") as f:
            f.write(SKIPS)
        for program, result, out, want in CASES:
            got = code_of(folder, program, result, out)
            if got != want:
                print(f"{program} {result} {out!r}: {got}, not {want}")
                n_bad += 1
        with contextlib.redirect_stdout(io.StringIO()):
            if table.main([os.path.join(folder, "not-there.json")]) == 0:
                n_bad += 1
    print(f"{len(CASES) - n_bad} passed, {n_bad} failed")
    return n_bad != 0


if __name__ == "__main__":
    sys.exit(main())
