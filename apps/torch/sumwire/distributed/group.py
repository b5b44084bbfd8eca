# group.py - sumwire's group as a ProcessGroup, for PyTorch 2.4 to 2.13
# SPDX-License-Identifier: BSD-3-Clause
"""These versions take a whole group from Python instead of a backend for one
device type. Therefore a group with several backends, such as
"cpu:gloo,cuda:sumwire", also has one of torch's groups, which holds the other
backends."""
import sys

import torch
from torch import distributed as dist

from sumwire.distributed import NAME, device_types
from sumwire.distributed.methods import Methods, by_gloo

CUSTOM = dist.ProcessGroup.BackendType.CUSTOM


class ProcessGroup(Methods, dist.ProcessGroup):
    """Be a group for torch.  Methods that are missing here are torch's, which
    call gloo."""
    supports_splitting = False  # 2.4 reads it from _get_backend's result

    def __init__(self, opts, devices):
        dist.ProcessGroup.__init__(self, opts.group_rank, opts.group_size)
        self.begin(opts)
        for device in devices:
            self._register_backend(torch.device(device), CUSTOM, self.gloo)

    # Avoid a deadlock: torch's methods hold the interpreter's lock while they
    # wait for gloo's, and gloo's threads take the locks in the other order.
    all_to_all_single = alltoall_base = by_gloo("alltoall_base")
    gather = by_gloo("gather")
    scatter = by_gloo("scatter")
    alltoall = by_gloo("alltoall")
    recv_anysource = by_gloo("recv_anysource")

    def _get_backend(self, device):
        """Return this object to Python callers, such as FSDP2, which allocates
        memory with it.  Before 2.7 torch shuts down only NCCL backends and
        calls this method to find them, so shut the group down here."""
        if sys._getframe(1).f_code.co_name == "_shutdown_backend":
            self.shutdown()
        return self

    def getBackendName(self):
        return NAME

    def getRank(self):
        return self.me

    def getSize(self):
        return self.n


class MixedGroup(ProcessGroup):
    """Pass tensors of some device types on to other backends.

    beside: torch's own group, with the other backends
    others: the names of the other backends, by device type"""

    def __init__(self, opts, beside, others, ours):
        super().__init__(opts, ours)
        self.beside, self.others = beside, others
        for device, name in others.items():
            self._register_backend(torch.device(device), kind_of(name),
                                   beside._get_backend(torch.device(device)))

    def _get_backend(self, device):
        if torch.device(device).type in self.others:
            return self.beside._get_backend(torch.device(device))
        return super()._get_backend(device)

    def shutdown(self):
        super().shutdown()
        if hasattr(self.beside, "shutdown"):  # before 2.6 torch does it
            self.beside.shutdown()

    def abort(self):
        super().abort()
        if hasattr(self.beside, "abort"):
            self.beside.abort()


def by_device(name):
    """Return a method that calls sumwire or another backend, by the device of
    its arguments."""
    ours = getattr(ProcessGroup, name)

    def method(self, *arguments, **more):
        if device_of([*arguments, *more.values()]) in self.others:
            return getattr(self.beside, name)(*arguments, **more)
        return ours(self, *arguments, **more)
    method.__name__ = name
    return method


def device_of(argument):
    """Return the device type of the first tensor in nested lists, or the device
    type in a barrier's options."""
    if isinstance(argument, torch.Tensor):
        return argument.device.type
    if isinstance(argument, (list, tuple)):
        return next(filter(None, map(device_of, argument)), None)
    device = getattr(argument, "device", None)
    return device.type if isinstance(device, torch.device) else None


for each in ("allreduce", "allreduce_coalesced", "reduce", "broadcast",
             "reduce_scatter", "reduce_scatter_single", "_reduce_scatter_base",
             "reduce_scatter_single_coalesced",
             "reduce_scatter_tensor_coalesced", "allgather",
             "allgather_coalesced", "all_gather_single", "_allgather_base",
             "all_gather_single_coalesced", "allgather_into_tensor_coalesced",
             "barrier", "gather", "scatter", "alltoall", "alltoall_base",
             "all_to_all_single", "send", "recv", "recv_anysource"):
    setattr(MixedGroup, each, by_device(each))


def kind_of(name):
    return dist.Backend.backend_type_map.get(name, CUSTOM)


def make_backend(name, device, opts, options):
    """Make one of the backends that torch would make after sumwire's."""
    store = dist.PrefixStore(f"{device}/", opts.store)
    if name == "gloo":
        return dist.ProcessGroupGloo(store, opts.group_rank, opts.group_size,
                                     timeout=opts.timeout)
    if name != "nccl" or not dist.is_nccl_available():
        raise ValueError(f"backend '{name}' for {device}: this PyTorch can "
                         f"create it only before sumwire: write "
                         f"'{device}:{name}' first")
    options = options or dist.ProcessGroupNCCL.Options()
    options._timeout = opts.timeout
    options.global_ranks_in_group = opts.global_ranks_in_group
    options.group_name = opts.group_id
    return dist.ProcessGroupNCCL(store, opts.group_rank, opts.group_size,
                                 options)


def create(opts, options):
    """Make a group.  torch calls it for each group.  Only the calling function
    of torch knows the group's backends, so read its local variables.  torch has
    made the backends listed before sumwire; make the later ones here."""
    caller = sys._getframe(1).f_locals
    config = caller.get("backend_config")
    named = config.get_device_backend_map() if config else dict.fromkeys(
        device_types(), NAME)
    ours = [device for device, name in named.items() if name == NAME]
    others = {device: str(name) for device, name in named.items()
              if name != NAME}
    if not others:
        return ProcessGroup(opts, ours)
    beside = caller["pg"]
    for device, name in others.items():
        if torch.device(device) not in beside._device_types:
            backend = make_backend(name, device, opts, options)
            backend._set_sequence_number_for_group()
            beside._register_backend(torch.device(device), kind_of(name),
                                     backend)
    return MixedGroup(opts, beside, others, ours)
