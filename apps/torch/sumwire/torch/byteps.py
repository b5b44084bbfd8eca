# byteps.py - BytePS's names for allreduce
# SPDX-License-Identifier: BSD-3-Clause
"""BytePS sends the highest priority first and gives priorities of 0 and below;
sumwire sends the lowest first, so these functions negate the priority."""
from sumwire.torch.compression import Compression
from sumwire.torch.ops import (
    allreduce, allreduce_async, allreduce_async_, synchronize)


def check_version(version):
    if version:
        raise ValueError(f"version={version}: sumwire counts versions itself; "
                         f"leave it out")


def push_pull_async_inplace(tensor, average=True, name=None, version=0,
                            priority=0):
    """Begin to replace tensor by its average, or sum, over all ranks, as
    allreduce_async_ does.  Return a handle.  version must be 0; the highest
    priority is sent first, and 0 is the highest."""
    check_version(version)
    return allreduce_async_(tensor, average, name, priority=max(0, -priority))


def push_pull_async(tensor, average=True, name=None, version=0, priority=0):
    """Begin the average, or sum, of tensor over all ranks in a new tensor, as
    allreduce_async does.  Return a handle.  Other arguments are those of
    push_pull_async_inplace."""
    check_version(version)
    return allreduce_async(tensor, average, name, priority=max(0, -priority))


def push_pull_inplace(tensor, average=True, name=None, version=0, priority=0):
    """Replace tensor by its average, or sum, over all ranks, as allreduce_
    does."""
    return synchronize(push_pull_async_inplace(tensor, average, name, version,
                                               priority))


def push_pull(tensor, average=True, name=None, version=0, priority=0,
              compression=Compression.none):
    """Return the average, or sum, of tensor over all ranks, as allreduce does.
    """
    check_version(version)
    return allreduce(tensor, average, name, priority=max(0, -priority),
                     compression=compression)
