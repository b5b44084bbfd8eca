# proc_examples.py - the small programs of apps/examples on two ranks
# SPDX-License-Identifier: BSD-3-Clause
import re

import rig
from proc_run import Run
from rig import check


def run_example(name):
    """Return the rank and the text of each output line."""
    with Run("-np", 2, "--no-tags", "--",
             rig.program("apps/example_" + name)) as p:
        p.wait_ok()
        return sorted(re.findall(r"^rank (\d) of 2: (.*)$", p.out(), re.M))


def test_all_reduce():
    said = run_example("all_reduce")
    check(said == [(r, "1048576 elements are 3") for r in "01"], said)


def test_push_pull():
    said = run_example("push_pull")
    check(said == [(r, f"step {i}") for r in "01" for i in range(3)], said)


if __name__ == "__main__":
    rig.main(dict(globals()))
