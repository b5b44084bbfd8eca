# machines.py - hierarchical all_reduce of a group's large tensors
# SPDX-License-Identifier: BSD-3-Clause
"""SUMWIRE_HIERARCHICAL turns it on.  Tensors are summed in pieces, in the order
of the group's calls, so the ranks of a machine use the same order.  If a
device's streams can wait, the caller gives all work to streams
(sums.StreamSums).  Otherwise a thread sums one tensor after the other."""
import contextlib
import math
import os
import queue
import threading

import torch
from torch import distributed as dist

from sumwire import locks
from sumwire.collectives import Call
from sumwire.distributed import local, sums
from sumwire.distributed.errors import SumwireError
from sumwire.distributed.meeting import opened

LARGE_BYTES = 1 << 20  # smaller tensors cost a round trip on either way
PIECE_BYTES = 8 << 20  # pieces overlap: each can be in another step
DTYPES = {torch.float32, torch.float64, torch.float16, torch.bfloat16,
          torch.int32, torch.int64, torch.int8, torch.uint8}


class Machines:
    """Sum large tensors of a group.  group: its Methods; machine, cross: local
    and cross of Sums."""

    def __init__(self, group, machine, cross):
        self.group, self.calls = group, group.calls
        self.rank = group.attachment.rank
        self.local, self.cross = machine, cross
        self.sums = {}  # Sums by device
        self.error, self.is_over, self.pid = None, False, os.getpid()
        self.lock = locks.make()  # serializes callers
        self.queue, self.thread = queue.SimpleQueue(), None
        self.last = None  # the latest Call in the queue

    def takes(self, tensor, op):
        """Return True if this object sums the tensor.  The result is the same
        at all ranks, because their tensors are alike."""
        return (op in ("sum", "avg", "premul_sum") and
                tensor.dtype in DTYPES and
                tensor.numel() * tensor.element_size() >= LARGE_BYTES and
                (tensor.is_cuda or self.local.kind == "gloo"))

    def start(self, work, tensor, how):
        """Start to replace the tensor by its sum, as a part of the work."""
        if self.is_over or os.getpid() != self.pid:
            work.fail(self._closed())
            return
        scale = how.get("scale")
        if how["op"] == "avg":
            scale = 1 / self.group.n
        with self.lock:
            way = self._sums_at(tensor)
            start = (self._give if isinstance(way, sums.StreamSums) else
                     self._put)
            start(work, way, tensor.view(-1), way.stream.mark(), scale)

    def _closed(self):
        return SumwireError("SW_ECLOSED", "this process has closed the group")

    def _sums_at(self, tensor):
        if tensor.device not in self.sums:
            self.sums[tensor.device] = sums.make(
                self.calls, self.local, self.cross, tensor.device,
                self.group.attachment.places.of(tensor), self._look)
        return self.sums[tensor.device]

    def _look(self):
        if self.is_over:
            raise self._closed()
        self.calls.client.check()

    def _begin(self, way, flat, mark, begin):
        """Call begin(piece, mark) for each piece of flat.  The last elements,
        which do not fill a part, travel in a padded tensor.  Return them, and
        their place in that tensor."""
        whole = flat.numel() // self.local.padded(1) * self.local.padded(1)
        size = self.local.padded(PIECE_BYTES // flat.element_size())
        for piece in flat[:whole].split(size):
            begin(piece, mark)
        rest = flat[whole:]
        with way.stream.after(mark):
            padded = torch.zeros(self.local.padded(1), dtype=flat.dtype,
                                 device=flat.device)
            padded[:len(rest)] = rest
        if len(rest):
            begin(padded, way.stream.done())
        return rest, padded[:len(rest)]

    # --- by streams ---

    def _give(self, work, way, flat, mark, scale):
        """Give all work to the streams, without waiting."""
        def begin(piece, mark):
            work.begin(piece, lambda on_end: way.begin(
                piece, mark, scale, self._telling(way, on_end)).call)
        try:
            self._hear()
            rest, total = self._begin(way, flat, mark, begin)
            way.gather()
            with way.gathers.after(None):
                rest.copy_(total)
            work.follow(way.gathers.done())
        except Exception as e:
            work.fail(self._fail(way, e))

    def _hear(self):
        """Raise an error that has occurred here or at another rank."""
        if self.error:
            raise self.error
        self.local.hear(lambda: None)

    def _telling(self, way, on_end):
        """Return an on_end that also tells other ranks of an error."""
        return lambda error: on_end(error and self._fail(way, error))

    # --- by a thread ---

    def _put(self, work, *more):
        def start(on_end):
            call = Call(self.group.group, "all_reduce of machines", math.inf,
                        on_end, None)
            self.queue.put((call, *more))
            self.last = call
            return call
        work.begin(None, start)
        if not self.thread:
            self.thread = threading.Thread(target=self._run, daemon=True,
                                           name="sumwire-machines")
            self.thread.start()

    def _run(self):
        for call, *more in iter(self.queue.get, None):
            try:
                if self.error:
                    raise self.error
                self._sum(*more)
                error = None
            except Exception as e:
                error = self._fail(more[0], e)
            call.end(error, in_thread)

    def _sum(self, way, flat, mark, scale):
        rest, total = self._begin(way, flat, mark, lambda piece, mark: way.begin(
            piece, mark, scale))
        way.finish()
        with way.stream.after(None):
            rest.copy_(total)
        way.stream.wait()

    # --- ends ---

    def _fail(self, way, error):
        """Abort the group at all its ranks, and return the error for everything
        that ends with it."""
        if not self.error:
            self.error = error
            self.local.keep()
            self.error = way.fail(error, self.rank)
            with contextlib.suppress(SumwireError):
                self.calls.abort_group(self.group.group, self.error.text)
        return self.error

    def abort(self, text):
        """Abort open sums at all members."""
        self.local.bell.ring(f"rank {self.rank} aborted the group: {text}")
        if self.cross:
            self.calls.abort_group(self.cross, text)

    def close(self):
        """Close this object; open sums end with an error.  An on_end may call
        it. """
        self.is_over = True
        if self.cross:
            self.calls.close_group(self.cross)
        if os.getpid() != self.pid:
            return
        if self.thread:
            self.queue.put(None)
            self.thread.join()
        if not all(way.is_idle() for way in self.sums.values()):
            self.local.keep()


def in_thread(then):
    """Run a function in a thread of its own, because it may wait for later
    calls in the queue."""
    threading.Thread(target=then, daemon=True, name="sumwire-then").start()


def choose(wanted):
    """Return the local backend of a group before its first tensor is known."""
    if wanted is True:
        wanted = "nccl" if (torch.cuda.is_available() and
                            dist.is_nccl_available()) else "gloo"
    return local.choose_backend(wanted, torch.device(
        "cuda" if torch.cuda.is_available() else "cpu"))


def find(group, meeting, home):
    """Return a function that makes a Machines, if rank 0's variable asks for
    it.  Return None if each machine has one rank, or if the group is a part of
    the job and its machines have different numbers of ranks.  All ranks of the
    group call find(), and then the function."""
    wanted = opened(home.hierarchical)
    if not wanted:
        return None
    me, bell = meeting.me, local.Bell()
    said = meeting.exchange(lambda: [bell.number, choose(wanted)])
    try:
        here, across = local.lay_out(home.machines, me)
    except SumwireError:
        if meeting.n == group.attachment.size:
            raise
        return None
    if len(here) == 1:
        return None
    bell.meet(group.ranks[me], {group.ranks[r]: said[r][0] for r in here})

    def make():
        machine = local.Local(
            said[here[0]][1],
            dist.PrefixStore(f"local{here[0]}/", meeting.store),
            here.index(me), len(here), group.limit_s, bell)
        cross = group.attachment.open_group(
            f"{group.opts.group_id}.place{here.index(me)}",
            [group.ranks[r] for r in across],
            group.limit_s) if len(across) > 1 else None
        return Machines(group, machine, cross)
    return make
