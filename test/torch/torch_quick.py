# torch_quick.py - small collectives of the backend in C (apps/torch/quick.c)
# SPDX-License-Identifier: BSD-3-Clause
import os
import shutil
import subprocess

import torch_rig
import rig
from backend_rig import Net, main
from rig import RUN_S, check

CASES = ["equal", "fields", "asked", "others", "recorded", "ended", "entered",
         "hooked", "late", "differing", "expired", "aborted",
         "threads", "seen_by_another", "interrupted", "forked"]


def test_alone():
    """Run without PyTorch, in each installed Python."""
    names = {f"python3.{i}" for i in range(9, 15)} | {torch_rig.python()}
    for python in filter(None, map(shutil.which, names)):
        if subprocess.run([python, "-c", ""], check=False,
                          stderr=subprocess.DEVNULL).returncode:
            continue  # pyenv's name of a Python that is not selected
        p = subprocess.run(
            [python, os.path.join(torch_rig.HERE, "quick_alone.py"),
             os.path.join(rig.BUILD, "apps", "quick.abi3.so")], check=False,
            capture_output=True, text=True, timeout=RUN_S)
        check(not p.returncode, f"{python}: {p.stderr}")


def test_all():
    with Net(2) as net:
        net.start_all()
        net.ranks_ok("cases_quick.py", *CASES)
        net.ranks_ok("cases_quick.py", "without", env={"SUMWIRE_QUICK": "0"})


def test_ends():
    """Check ends after a rank is killed, and in a program with a waiting
    thread."""
    with Net(2) as net:
        net.start_all()
        for name, expected in ("left_waiting", (0, 0)), ("killed", (0, -9)):
            ranks = net.cases("cases_quick.py", name)
            for p, code in zip(ranks, expected):
                got = p.wait(RUN_S)
                check(got == code and f"ok {name}" in p.out(),
                      f"{p.name} ended with {got}: {p.out()}{p.log()}")
            net.remove_files()


if __name__ == "__main__":
    main(dict(globals()))
