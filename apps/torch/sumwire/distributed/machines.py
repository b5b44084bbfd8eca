# machines.py - all_reduce of a group's large tensors, each machine first
# SPDX-License-Identifier: BSD-3-Clause
"""With SUMWIRE_HIERARCHICAL, in pieces, and in the order of the group's calls,
which is that of what the ranks of a machine do among themselves, too.  Where a
device's streams can wait the caller gives all of it to them (sums.StreamSums);
else a thread does one tensor after the other."""
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
        self.lock = locks.make()  # threads that call take turns
        self.queue, self.thread = queue.SimpleQueue(), None
        self.last = None  # Call that the thread ends last

    def takes(self, tensor, op):
        """The same at all ranks, as their tensors are."""
        return (op in ("sum", "avg", "premul_sum") and
                tensor.dtype in DTYPES and
                tensor.numel() * tensor.element_size() >= LARGE_BYTES and
                (tensor.is_cuda or self.local.kind == "gloo"))

    def start(self, work, tensor, how):
        """Replace it by the sum, as a part of the work."""
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
        """begin(piece, mark) for each of its pieces.  Returns its last elements,
        and what their sums come to."""
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
        """All of it to the streams: nobody waits."""
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
        """What has failed meanwhile, here or elsewhere?"""
        if self.error:
            raise self.error
        self.local.hear(lambda: None)

    def _telling(self, way, on_end):
        """Tells others of an error, too."""
        return lambda error: on_end(error and self._fail(way, error))

    # --- by a thread ---

    def _put(self, work, *more):
        def start(on_end):
            call = Call(None, self.group.group, "all_reduce of machines",
                        math.inf, on_end, None)
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
        """The group ends at all of its ranks.  What ends by that has the same
        error."""
        if not self.error:
            self.error = error
            self.local.keep()
            self.error = way.fail(error, self.rank)
            with contextlib.suppress(SumwireError):
                self.calls.abort_group(self.group.group, self.error.text)
        return self.error

    def abort(self, text):
        """What is open ends at all members."""
        self.local.bell.ring(f"rank {self.rank} aborted the group: {text}")
        if self.cross:
            self.calls.abort_group(self.cross, text)

    def close(self):
        """What is open ends with an error.  May be called while an end is
        told."""
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
    """It may wait for what is behind in the queue."""
    threading.Thread(target=then, daemon=True, name="sumwire-then").start()


def choose(wanted):
    """The local backend of a group whose tensors nobody has seen."""
    if wanted is True:
        wanted = "nccl" if (torch.cuda.is_available() and
                            dist.is_nccl_available()) else "gloo"
    return local.choose_backend(wanted, torch.device(
        "cuda" if torch.cuda.is_available() else "cpu"))


def find(group, meeting, home):
    """Return a function that makes a Machines, if rank 0's variable asks for
    it.  Return None where a machine has one rank, or where the group is a part
    of the job and machines have different numbers of its ranks.  All ranks of
    the group call it, and the function."""
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
