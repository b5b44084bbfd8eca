# backend.py - sumwire's group as a Backend, for PyTorch 2.14 and later
# SPDX-License-Identifier: BSD-3-Clause
from types import SimpleNamespace

from torch._C._distributed_c10d import Backend as Base, ErrorType

from sumwire.distributed.methods import Methods, by_gloo
from sumwire.distributed.work import Ended

ERRORS = {"SW_ETIMEDOUT": ErrorType.TIMEOUT,
          "SW_EABORTED": ErrorType.REMOTE_ERROR,
          "SW_EPEER": ErrorType.REMOTE_ERROR,
          "SW_EMISMATCH": ErrorType.REMOTE_ERROR}


class Backend(Methods, Base):
    ended = Ended  # torch's C++ takes a work from Python
    supports_splitting = True
    # Without these attributes, 2.14.1 recurses without end.
    supports_coalescing = supports_reconfigure = supports_shrinking = False
    supports_time_estimate = supports_window = False

    def __init__(self, opts):
        Base.__init__(self, opts.group_rank, opts.group_size)
        self.begin(opts)

    def getBackendName(self):
        return "sumwire"

    def get_error(self):
        """Return torch's error type of the first collective that failed."""
        if self.error is None:
            return ErrorType.SUCCESS
        return ERRORS.get(getattr(self.error, "name", None),
                          ErrorType.COMM_ERROR)

    gather = by_gloo("gather")
    scatter = by_gloo("scatter")
    all_to_all_single = by_gloo("all_to_all_single")
    alltoall = by_gloo("alltoall")
    recv_anysource = by_gloo("recv_anysource")

    @property
    def options(self):
        return Base.Options("sumwire", self.opts.timeout)

    def split(self, store, ranks, opts):
        """Return a backend of some of the ranks, in the given order."""
        members = list(self.opts.global_ranks_in_group) or range(self.n)
        return Backend(SimpleNamespace(
            store=store, group_rank=list(ranks).index(self.me),
            group_size=len(ranks), timeout=opts._timeout,
            group_id=opts.group_name,
            global_ranks_in_group=[members[r] for r in ranks]))


def create(opts, _):
    """Make a group.  torch calls it for each group."""
    return Backend(opts)
