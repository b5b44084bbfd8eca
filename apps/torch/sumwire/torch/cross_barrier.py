# cross_barrier.py - the names of byteps.torch.cross_barrier, for its scripts
# SPDX-License-Identifier: BSD-3-Clause
"""Provide all names of sumwire.torch, with CrossBarrier, to scripts that import
sumwire.torch.cross_barrier as bps."""
from sumwire import torch as _all
from sumwire.torch import *  # noqa: F401,F403


def __getattr__(name):
    return getattr(_all, name)
