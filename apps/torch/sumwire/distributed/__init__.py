# __init__.py - the backend of torch.distributed that is called "sumwire"
# SPDX-License-Identifier: BSD-3-Clause
"""torch.distributed.init_process_group("sumwire"); before PyTorch 2.14 after
import sumwire.torch, from then on without: torch finds register() by its entry
point."""
import torch
from torch import distributed as dist

SINCE = (2, 4)  # earlier ones take no group from Python
NAME = "sumwire"
BACKENDS_SINCE = (2, 14)  # and a Backend, the part of a group


def version():
    """(2, 13) of "2.13.0+cpu"."""
    return tuple(int(part) for part in torch.__version__.split(".")[:2])


def device_types():
    """Return the types of devices whose tensors a group takes on this machine.
    torch takes a group with CUDA to be for CUDA's tensors first."""
    return ["cpu", "cuda"] if torch.cuda.device_count() else ["cpu"]


def register():
    """Make the name known to torch, where it takes such backends."""
    if version() < SINCE or not dist.is_available():
        return
    if NAME not in dist.Backend.backend_list:
        if version() >= BACKENDS_SINCE:
            from sumwire.distributed.backend import create
        else:
            from sumwire.distributed.group import create
        dist.Backend.register_backend(NAME, create, extended_api=True,
                                      devices=device_types())


register()
