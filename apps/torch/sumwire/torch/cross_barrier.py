# cross_barrier.py - what byteps.torch.cross_barrier has, for its scripts
# SPDX-License-Identifier: BSD-3-Clause
"""import sumwire.torch.cross_barrier as bps: all of sumwire.torch, with
CrossBarrier."""
from sumwire import torch as _all
from sumwire.torch import *  # noqa: F401,F403


def __getattr__(name):
    return getattr(_all, name)
