# __init__.py - the backend "sumwire" of torch.distributed
# SPDX-License-Identifier: BSD-3-Clause
"""Use it with torch.distributed.init_process_group("sumwire").  Before PyTorch
2.14, import sumwire.torch first.  Since 2.14 torch finds register() by its
entry point.

Errors of the backend are SumwireError, and also torch's DistBackendError."""
from datetime import timedelta
from types import SimpleNamespace

import torch
from torch import distributed as dist

SINCE = (2, 4)  # first PyTorch that takes a group from Python
NAME = "sumwire"
TIMEOUT = timedelta(minutes=30)  # torch's default
BACKENDS_SINCE = (2, 14)  # first PyTorch that takes a Backend from Python


def version():
    """Return PyTorch's version, such as (2, 13) for "2.13.0+cpu"."""
    return tuple(int(part) for part in torch.__version__.split(".")[:2])


def device_types():
    """Return the device types whose tensors a group takes on this machine.  If
    they include "cuda", torch prefers CUDA tensors for the group."""
    return ["cpu", "cuda"] if torch.cuda.device_count() else ["cpu"]


def create_group(store, rank, size, timeout=TIMEOUT, name="group"):
    """Make a group of processes without init_process_group(), for programs that
    have their own store, such as torchft.  Wait until all members have called
    it.

    store    a torch store for this group alone, for example a PrefixStore
    rank     rank of this process in the group, from 0
    size     number of processes in the group
    timeout  limit for the group's start and for each collective; a timedelta
    name     name of the group in messages

    Return a process group of the type that dist.new_group() returns in this
    PyTorch.  End the group with shutdown(), or with abort(), which also ends it
    at the other members.  Raise SumwireError at every member if one fails or is
    missing after timeout, RuntimeError for a PyTorch before 2.4."""
    if version() < SINCE:
        raise RuntimeError(f"PyTorch {torch.__version__} has no backends written "
                           f"in Python: install {SINCE[0]}.{SINCE[1]} or later")
    if not 0 <= rank < size:
        raise ValueError(f"rank {rank} of {size}: ranks are 0 to {size - 1}")
    return creator()(SimpleNamespace(
        store=store, group_rank=rank, group_size=size, timeout=timeout,
        group_id=name, global_ranks_in_group=list(range(size))), None)


def shared_hook(group, bucket):
    """Average a bucket of torch's DistributedDataParallel without copies.
    Register it on every rank, right after the model is made:

        model.register_comm_hook(None, sumwire.distributed.shared_hook)

    group   the model's process_group; None: the default group
    bucket  from DDP, on the CPU or a CUDA device

    Return torch's future of the averages.  Each bucket is sent as soon as it
    is ready; the call for the last one waits for all, as DDP itself would.  The
    first call for a bucket moves it to memory that the agent reads and writes.
    Raise SumwireError if an average fails, or if the group has another backend
    for the device."""
    from sumwire.distributed.ddp import average
    return average(group, bucket)


def creator():
    """Return the function that makes a group for this PyTorch."""
    if version() >= BACKENDS_SINCE:
        from sumwire.distributed.backend import create
    else:
        from sumwire.distributed.group import create
    return create


def register():
    """Register the backend with torch, if this PyTorch takes backends from
    Python."""
    if version() < SINCE or not dist.is_available():
        return
    if NAME not in dist.Backend.backend_list:
        dist.Backend.register_backend(NAME, creator(), extended_api=True,
                                      devices=device_types())


register()
