# torch_frameworks.py - Lightning and Accelerate over the backend, beside gloo
# SPDX-License-Identifier: BSD-3-Clause
"""Needs both beside the PyTorch of SUMWIRE_TEST_PYTHON."""
import os
import re

import torch_rig
from backend_rig import Alone, main
from rig import Skip, check

STEPS = 6


def trained(module, script):
    """Losses are gloo's, within what other orders of adding change."""
    if not torch_rig.has_torch(f"import {module}"):
        raise Skip(f"{torch_rig.python()} has no {module}")
    losses = {}
    for backend in "gloo", "sumwire":
        with Alone() as net:
            p = net.torchrun(os.path.join(torch_rig.HERE, script), backend)
            p.wait_ok()
            n = p.out().count(f"backend {backend}")
            check(n == 2, f"{n} ranks have {backend}")
            losses[backend] = [float(x) for x in re.findall(
                r"loss \d+ ([\d.]+)", p.out())]
            net.await_nothing()
    check(len(losses["gloo"]) == len(losses["sumwire"]) == STEPS, losses)
    for x, y in zip(*losses.values()):
        check(abs(x - y) <= 1e-4 * x, losses)


def test_lightning():
    trained("lightning", "train_lightning.py")


def test_accelerate():
    trained("accelerate", "train_accelerate.py")


if __name__ == "__main__":
    main(dict(globals()))
