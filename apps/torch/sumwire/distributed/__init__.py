# __init__.py - the backend of torch.distributed that is called "sumwire"
# SPDX-License-Identifier: BSD-3-Clause
"""torch.distributed.init_process_group("sumwire"); before PyTorch 2.14 after
import sumwire.torch, from then on without: torch finds register() by its entry
point."""
from datetime import timedelta
from types import SimpleNamespace

import torch
from torch import distributed as dist

SINCE = (2, 4)  # earlier ones take no group from Python
NAME = "sumwire"
TIMEOUT = timedelta(minutes=30)  # torch's
BACKENDS_SINCE = (2, 14)  # and a Backend, the part of a group


def version():
    """(2, 13) of "2.13.0+cpu"."""
    return tuple(int(part) for part in torch.__version__.split(".")[:2])


def device_types():
    """Return the types of devices whose tensors a group takes on this machine.
    torch takes a group with CUDA to be for CUDA's tensors first."""
    return ["cpu", "cuda"] if torch.cuda.device_count() else ["cpu"]


def create_group(store, rank, size, timeout=TIMEOUT, name="group"):
    """A group of size processes, of which this is rank, without
    init_process_group(): for programs with a store of their own, as torchft.

    store    torch's; all keys of it are this group's (a PrefixStore, for example)
    timeout  of the group's start and of its collectives; a timedelta
    name     in messages

    All members call it.  Returns what dist.new_group() would for this PyTorch; end
    it with shutdown(), or with abort(), which also ends it at the others."""
    if version() < SINCE:
        raise RuntimeError(f"PyTorch {torch.__version__} takes no groups from "
                           f"Python: {SINCE[0]}.{SINCE[1]} or later is needed")
    if not 0 <= rank < size:
        raise ValueError(f"rank {rank} of {size}: ranks are 0 to {size - 1}")
    return creator()(SimpleNamespace(
        store=store, group_rank=rank, group_size=size, timeout=timeout,
        group_id=name, global_ranks_in_group=list(range(size))), None)


def creator():
    """The function that makes a group for this PyTorch."""
    if version() >= BACKENDS_SINCE:
        from sumwire.distributed.backend import create
    else:
        from sumwire.distributed.group import create
    return create


def register():
    """Make the name known to torch, where it takes such backends."""
    if version() < SINCE or not dist.is_available():
        return
    if NAME not in dist.Backend.backend_list:
        dist.Backend.register_backend(NAME, creator(), extended_api=True,
                                      devices=device_types())


register()
