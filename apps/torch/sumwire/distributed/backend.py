# backend.py - sumwire's group as PyTorch 2.14 and later take it: a Backend
# SPDX-License-Identifier: BSD-3-Clause
from torch._C._distributed_c10d import Backend as Base

from sumwire.distributed.methods import Methods, by_gloo


class Backend(Methods, Base):
    def __init__(self, opts):
        Base.__init__(self, opts.group_rank, opts.group_size)
        self.begin(opts)

    def getBackendName(self):
        return "sumwire"

    gather = by_gloo("gather")
    scatter = by_gloo("scatter")
    all_to_all_single = by_gloo("all_to_all_single")
    alltoall = by_gloo("alltoall")
    send = by_gloo("send")
    recv = by_gloo("recv")
    recv_anysource = by_gloo("recv_anysource")
    monitored_barrier = by_gloo("monitored_barrier")


def create(opts, _):
    """What torch calls for each group."""
    return Backend(opts)
