# machines.py - all_reduce of a group's large tensors, each machine first
# SPDX-License-Identifier: BSD-3-Clause
"""With SUMWIRE_HIERARCHICAL.  A thread does one after the other, in the order of
the group's calls, and in pieces; so what is done among the ranks of a machine is
in one order at all of them, whenever sums come back from other machines."""
import contextlib
import math
import os
import queue
import threading

import torch
from torch import distributed as dist

from sumwire.client import SumwireError
from sumwire.collectives import Call
from sumwire.distributed import agents, local
from sumwire.distributed.sums import Sums

LARGE_BYTES = 1 << 20  # a smaller one is a round trip whatever way it goes
PIECE_BYTES = 8 << 20  # which are on different parts of the way at a time
DTYPES = {torch.float32, torch.float64, torch.float16, torch.bfloat16,
          torch.int32, torch.int64, torch.int8, torch.uint8}


class Machines:
    """group: Methods; machine, cross: as of Sums."""

    def __init__(self, group, machine, cross):
        self.group, self.calls = group, group.calls
        self.rank = group.attachment.rank
        self.local, self.cross = machine, cross
        self.sums = {}  # by device
        self.error, self.is_over, self.pid = None, False, os.getpid()
        self.queue = queue.SimpleQueue()
        self.thread = threading.Thread(target=self._run, daemon=True,
                                       name="sumwire-machines")
        self.thread.start()

    def takes(self, tensor, op):
        """The same at all ranks, as their tensors are."""
        return (op in ("sum", "avg", "premul_sum") and
                tensor.dtype in DTYPES and
                tensor.numel() * tensor.element_size() >= LARGE_BYTES and
                (tensor.is_cuda or self.local.kind == "gloo"))

    def start(self, tensor, how, on_end):
        """Replace it by the sum; a Call that ends by the thread."""
        if self.is_over or os.getpid() != self.pid:
            raise SumwireError("SW_ECLOSED", "this process has closed the group")
        call = Call(None, self.group.group, "all_reduce of machines", math.inf,
                    on_end, None)
        scale = how.get("scale")
        if how["op"] == "avg":
            scale = 1 / self.group.n
        sums = self._sums_at(tensor)
        self.queue.put((call, sums, tensor.view(-1), sums.stream.mark(), scale))
        return call

    def _sums_at(self, tensor):
        if tensor.device not in self.sums:
            self.sums[tensor.device] = Sums(
                self.calls, self.local, self.cross, tensor.device,
                self.group.attachment.places.of(tensor), self._look)
        return self.sums[tensor.device]

    def _look(self):
        if self.is_over:
            raise SumwireError("SW_ECLOSED", "this process has closed the group")
        self.calls.client.check()

    def _run(self):
        for call, *more in iter(self.queue.get, None):
            try:
                if self.error:
                    raise self.error
                self._sum(*more)
                error = None
            except Exception as e:
                error = self.error = self._fail(more[0], e)
            call.end(error)

    def _sum(self, sums, flat, mark, scale):
        whole = flat.numel() // self.local.padded(1) * self.local.padded(1)
        size = self.local.padded(PIECE_BYTES // flat.element_size())
        for piece in flat[:whole].split(size):
            sums.begin(piece, mark, scale)
        rest = flat[whole:]
        with sums.stream.after(mark):
            padded = torch.zeros(self.local.padded(1), dtype=flat.dtype,
                                 device=flat.device)
            padded[:len(rest)] = rest
        if len(rest):
            sums.begin(padded, sums.stream.done(), scale)
        sums.finish()
        with sums.stream.after(None):
            rest.copy_(padded[:len(rest)])
        sums.stream.wait()

    def _fail(self, sums, error):
        """The group ends at all of its ranks."""
        if self.error:
            return self.error
        self.local.keep()
        error = sums.fail(error, self.rank)
        with contextlib.suppress(SumwireError):
            self.calls.abort_group(self.group.group, error.text)
        return error

    def abort(self, text):
        """What is open ends at all members."""
        self.local.bell.ring(f"rank {self.rank} aborted the group: {text}")
        if self.cross:
            self.calls.abort_group(self.cross, text)

    def close(self):
        """What is open ends with an error."""
        self.is_over = True
        if self.cross:
            self.calls.close_group(self.cross)
        self.queue.put(None)
        if os.getpid() == self.pid:
            self.thread.join()


def choose(wanted):
    """The local backend of a group whose tensors nobody has seen."""
    if wanted is True:
        wanted = "nccl" if (torch.cuda.is_available() and
                            dist.is_nccl_available()) else "gloo"
    return local.choose_backend(wanted, torch.device(
        "cuda" if torch.cuda.is_available() else "cpu"))


def find(group, meeting):
    """A Machines, if rank 0's variable asks for it; None where a machine has one
    rank, or where the group is a part of the job and machines have different
    numbers of it.  All of its ranks call it."""
    me = meeting.me
    if me == 0:
        meeting.tell("hierarchical", agents.safely(
            lambda: local.asked_for(None)))
    wanted = agents.answer(meeting, "hierarchical", 0)
    if not wanted:
        return None
    bell = local.Bell()
    meeting.tell("place", agents.safely(lambda: [
        agents.machine(), bell.number, choose(wanted)]))
    said = [agents.answer(meeting, "place", r) for r in range(meeting.n)]
    try:
        here, across = local.lay_out([s[0] for s in said], me)
    except SumwireError:
        if meeting.n == group.attachment.size:
            raise
        return None
    if len(here) == 1:
        return None
    bell.meet(group.ranks[me], {group.ranks[r]: said[r][1] for r in here})
    machine = local.Local(
        said[here[0]][2], dist.PrefixStore(f"local{here[0]}/", meeting.store),
        here.index(me), len(here), group.limit_s, bell)
    cross = group.attachment.open_group(
        f"{group.opts.group_id}.place{here.index(me)}",
        [group.ranks[r] for r in across],
        group.limit_s) if len(across) > 1 else None
    return Machines(group, machine, cross)
