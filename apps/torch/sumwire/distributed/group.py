# group.py - sumwire's group as PyTorch 2.4 to 2.13 takes it: a ProcessGroup
# SPDX-License-Identifier: BSD-3-Clause
import sys

import torch
from torch import distributed as dist

from sumwire.distributed import DEVICES
from sumwire.distributed.methods import Methods, by_gloo


class ProcessGroup(Methods, dist.ProcessGroup):
    """Methods that are not there are torch's own, which go to gloo."""
    supports_splitting = False  # 2.4 asks what _get_backend returns

    def __init__(self, opts):
        dist.ProcessGroup.__init__(self, opts.group_rank, opts.group_size)
        self.begin(opts)
        for device in DEVICES:
            self._register_backend(
                torch.device(device), dist.ProcessGroup.BackendType.CUSTOM,
                self.gloo)

    # torch's own keep the interpreter's lock while they wait for gloo's lock,
    # which gloo's threads hold while they want the interpreter's
    all_to_all_single = alltoall_base = by_gloo("alltoall_base")
    gather = by_gloo("gather")
    scatter = by_gloo("scatter")
    alltoall = by_gloo("alltoall")
    send = by_gloo("send")
    recv = by_gloo("recv")
    recv_anysource = by_gloo("recv_anysource")

    def _get_backend(self, device):
        """For those who ask it in Python, as FSDP2 for its memory.  Before
        2.7 the end of a group is told to NCCL's backends alone, and who has
        one is asked here."""
        if sys._getframe(1).f_code.co_name == "_shutdown_backend":
            self.shutdown()
        return self

    def getBackendName(self):
        return "sumwire"

    def getRank(self):
        return self.me

    def getSize(self):
        return self.n


def create(opts, _):
    """What torch calls for each group."""
    return ProcessGroup(opts)
