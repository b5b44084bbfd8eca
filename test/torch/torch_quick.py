# torch_quick.py - small collectives of the backend in C (apps/torch/quick.c)
# SPDX-License-Identifier: BSD-3-Clause
from backend_rig import Net, main
from rig import RUN_S, check

CASES = ["equal", "others", "recorded", "late", "differing", "expired", "aborted",
         "threads", "seen_by_another", "interrupted", "forked"]


def test_all():
    with Net(2) as net:
        net.start_all()
        net.ranks_ok("cases_quick.py", *CASES)
        net.ranks_ok("cases_quick.py", "without", env={"SUMWIRE_QUICK": "0"})


def test_ends():
    """Of a rank that is killed, and of a program whose thread waits."""
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
