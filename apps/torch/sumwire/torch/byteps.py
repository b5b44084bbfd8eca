# byteps.py - BytePS's names for allreduce
# SPDX-License-Identifier: BSD-3-Clause
"""BytePS's highest priority is the most urgent, and the priorities that it gives
are 0 and below."""
from sumwire.torch.compression import Compression
from sumwire.torch.ops import (
    allreduce, allreduce_async, allreduce_async_, synchronize)


def check_version(version):
    if version:
        raise ValueError(f"version={version}: sumwire counts versions itself; "
                         f"leave it out")


def push_pull_async_inplace(tensor, average=True, name=None, version=0,
                            priority=0):
    """BytePS's allreduce_async_."""
    check_version(version)
    return allreduce_async_(tensor, average, name, priority=max(0, -priority))


def push_pull_async(tensor, average=True, name=None, version=0, priority=0):
    """BytePS's allreduce_async."""
    check_version(version)
    return allreduce_async(tensor, average, name, priority=max(0, -priority))


def push_pull_inplace(tensor, average=True, name=None, version=0, priority=0):
    """BytePS's allreduce_."""
    return synchronize(push_pull_async_inplace(tensor, average, name, version,
                                               priority))


def push_pull(tensor, average=True, name=None, version=0, priority=0,
              compression=Compression.none):
    """BytePS's allreduce."""
    check_version(version)
    return allreduce(tensor, average, name, priority=max(0, -priority),
                     compression=compression)
