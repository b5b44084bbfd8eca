# torch_drawn.py - the backend's collectives, drawn from seeds
# SPDX-License-Identifier: BSD-3-Clause
"""SUMWIRE_TEST_SEEDS=N, or FIRST:N, python3 test/torch/torch_drawn.py build
runs seeds other than the default first three. A quick run uses the first."""
import os

from backend_rig import Net, main
import rig


def seeds():
    first, _, n = os.environ.get("SUMWIRE_TEST_SEEDS", "").partition(":")
    if first:
        return range(int(first), int(first) + int(n or 1))
    return range(1, 2 if rig.IS_QUICK else 4)


def run_seeds(local):
    with Net(len(local), local=local) as net:
        net.start_all()
        for seed in seeds():
            net.ranks_ok("cases_drawn.py", "drawn",
                         env={"TEST_SEED": str(seed)})


def test_two_ranks():
    run_seeds((1, 1))


@rig.is_long
def test_three_ranks():
    run_seeds((2, 1))


def test_four_ranks():
    run_seeds((1, 2, 1))


if __name__ == "__main__":
    main(dict(globals()))
