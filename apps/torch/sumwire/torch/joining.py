# joining.py - join(), as in Horovod, for ranks that have run out of data
# SPDX-License-Identifier: BSD-3-Clause
"""A rank that has joined adds zeros to the sums of the other ranks.

All ranks number their operations in the same way.  A rank that has joined does
not know the operations of the other ranks, so they tell it, by collectives in a
separate group:

- *Reports*: all ranks gather the list of joined ranks.  A rank takes part when
  it has joined, and when it has waited for an operation for LOOK_S.  Otherwise
  it takes part with its operations, once per REPORT_S.  Thus reports complete
  soon, and agents do not warn of a stall.

- *Turns*: once a report shows a joined rank, the leader broadcasts each of its
  operations, from the first one that the joined rank has not called.  The
  leader is the lowest rank that has not joined.  Each rank takes part when it
  has called the operation itself, or has joined.  When the leader joins, it
  says so, and the next rank leads.  After the last leader, all ranks have
  joined."""
import json
import math
import threading
import time

import torch

from sumwire.client import SumwireError

LOOK_S = 1.0  # a rank that waits for longer asks for a report
REPORT_S = 0.5  # shortest time between two reports of a rank
PAUSE_S = 1e-3  # period of polling a turn
TURN_BYTES = 1024  # size of a leader's broadcast

SERVE = {}  # functions with which joined ranks take part, by kind of operation


def serves(kind):
    """Register function(told), with which a joined rank takes part in an
    operation of that kind.  It returns None, or an object with is_done() and
    drop()."""
    def register(function):
        SERVE[kind] = function
        return function
    return register


class Exchange:
    """Run a collective of all ranks, and hold its buffers."""

    def __init__(self, joins, kind, send, recv, limit_s, root=0):
        self.kept, self.recv, self.error = send, recv, None
        self.calls = joins.job.collectives
        self.call = self.calls.start(
            joins.group(), kind, "u8", send.numel(), send.data_ptr(),
            recv.data_ptr(), root=root, limit_s=limit_s, on_end=self._ended)

    def _ended(self, error):
        self.error = error

    def is_done(self):
        if not self.calls.is_done(self.call):
            return False
        if self.error:
            raise self.error
        return True


class Turns:
    """Exchange the operations of the leader, after a rank has joined."""

    def __init__(self, joins, first, joined):
        self.joins, self.next = joins, first
        self.joined = set(joined)
        self.turn = None
        self._find_leader()

    def _find_leader(self):
        """Find the lowest rank that has not joined; None: all have joined."""
        self.leader = next((r for r in range(self.joins.job.size)
                            if r not in self.joined), None)

    def is_behind(self):
        """Return True if there is a turn in which this rank must take part."""
        return self.leader is not None and (
            self.joins.has_joined or self.next <= self.joins.n_called)

    def advance(self):
        """Take part in turns as far as possible without waiting."""
        while self.is_behind() or self.turn is not None:
            if self.turn is None:
                self.turn = self._begin()
            if not self.turn.is_done():
                return
            text, self.turn = self.turn.recv, None
            self._take(json.loads(text.numpy().tobytes().rstrip(b"\0")))

    def _begin(self):
        joins = self.joins
        buffer = torch.zeros(TURN_BYTES, dtype=torch.uint8)
        if joins.job.rank == self.leader:
            told = None
            if self.next <= joins.n_called:
                told = joins.log[self.next].describe()
            text = json.dumps(told).encode()
            if len(text) > TURN_BYTES:
                text = json.dumps({"kind": "long"}).encode()
            buffer[:len(text)] = torch.frombuffer(bytearray(text),
                                                  dtype=torch.uint8)
        return Exchange(joins, "broadcast", buffer, buffer, joins.limit_s(),
                        self.leader)

    def _take(self, told):
        if told is None:
            self.joined.add(self.leader)
            self._find_leader()
            return
        number = self.next
        self.next += 1
        if self.joins.has_joined and number > self.joins.n_called:
            self.joins.serve(told)


class Joins:
    """Hold the operations of this process, and the joined ranks."""

    def __init__(self, job):
        self.job = job
        self.lock = threading.RLock()
        self.n_called, self.log = 0, {}  # log: open operations by number
        self.local = threading.local()  # quiet: inside an operation
        self.has_joined = False
        self.report = self.turns = self._group = None
        self.next_look = math.inf
        self.next_report = time.monotonic() + REPORT_S
        self.served = []
        self.failure = None  # error of the exchange: no rank can join

    def group(self):
        if self._group is None:
            self._group = self.job.collectives.group(
                "hvd.join", range(self.job.size))
        return self._group

    def limit_s(self):
        """Return the limit of an exchange.  Only a joined rank gives up."""
        return self.job.client.wait_timeout_s if self.has_joined else math.inf

    def refuse(self, text):
        """Make every join() of this job fail, and send no reports."""
        self.failure = SumwireError("SW_EINVAL", f"join: {text}")

    def note(self, operation):
        """Note that this rank calls an operation of all ranks, and return its
        number.  operation.describe() has the data that joined ranks need."""
        if self.job.size == 1 or getattr(self.local, "quiet", False):
            return None
        with self.lock:
            self.n_called += 1
            self.log[self.n_called] = operation
            self.next_look = time.monotonic() + LOOK_S
            self._move()
            return self.n_called

    def ended(self, number):
        """Note the end of an operation."""
        if self.log.pop(number, None) is None:
            return
        with self.lock:
            if not self.log:
                self.next_look = math.inf
            self._move()

    def words(self):
        """Return a text for errors that names the joined ranks, or ""."""
        if self.turns is None or self.has_joined:
            return ""
        who = ", ".join(map(str, sorted(self.turns.joined)))
        return (f"; rank {who} has called join(): only allreduce works without "
                f"it")

    def quiet(self):
        """Return a context in which operations are not noted, because they are
        part of a noted one."""
        joins = self

        class Quiet:
            def __enter__(self):
                self.was = getattr(joins.local, "quiet", False)
                joins.local.quiet = True

            def __exit__(self, *_):
                joins.local.quiet = self.was
        return Quiet()

    def look(self):
        """Ask for a report if this rank has waited for LOOK_S. Every wait calls
        it."""
        if (time.monotonic() < self.next_look or self.has_joined or
                not self.lock.acquire(blocking=False)):
            return
        try:
            self._move()
            self.next_look = time.monotonic() + LOOK_S
        finally:
            self.lock.release()

    def settle(self, is_done):
        """Take part in all due turns before this rank blocks."""
        while self.turns and not is_done():
            with self.lock:
                self._move()
                if not self.turns or not (self.turns.is_behind() or
                                          self.turns.turn):
                    return
            time.sleep(PAUSE_S)

    def _ask(self):
        self.next_report = time.monotonic() + REPORT_S
        mine = torch.tensor([int(self.has_joined), self.n_called],
                            dtype=torch.int64).view(torch.uint8)
        table = torch.empty(self.job.size * 16, dtype=torch.uint8)
        self.report = Exchange(self, "all_gather", mine, table, self.limit_s())

    def _move(self):
        """Advance the exchange as far as possible without waiting."""
        try:
            if not self.failure:
                self._exchange()
        except SumwireError as e:  # for example, a rank has left the job
            self.failure, self.report = e, None
        if self.failure and (self.has_joined or self.turns):
            raise self.failure

    def _exchange(self):
        if self.turns is None and self.report is None and (
                self.has_joined or
                not self.job.client.is_async and
                time.monotonic() > self.next_report):
            self._ask()
        if self.report is not None and self.report.is_done():
            table, self.report = self.report.recv, None
            rows = table.view(torch.int64).view(-1, 2).tolist()
            joined = [r for r, row in enumerate(rows) if row[0]]
            if joined:
                first = 1 + min(rows[r][1] for r in joined)
                self.turns = Turns(self, first, joined)
        if self.turns is not None:
            self.turns.advance()

    # --- on a rank that has joined ---

    def join(self):
        """Add zeros to the sums of the other ranks until all have joined."""
        self.has_joined, self.local.quiet = True, True
        try:
            while self.turns is None or self.turns.leader is not None:
                with self.lock:
                    self._move()
                self.job.progress()
                self.drop_done()
                time.sleep(PAUSE_S)
            for each in self.served:
                each.drop()
            return self._finish()
        finally:
            self.has_joined, self.local.quiet, self.served = False, False, []

    def drop_done(self):
        done = [each for each in self.served if each.is_done()]
        self.served = [each for each in self.served if each not in done]
        for each in done:
            each.drop()

    def _finish(self):
        """Reset the numbers after all ranks have joined.  Return the rank that
        joined last."""
        mine = torch.tensor([self.n_called], dtype=torch.int64).view(torch.uint8)
        table = torch.empty(self.job.size * 8, dtype=torch.uint8)
        exchange = Exchange(self, "all_gather", mine, table, self.limit_s())
        while not exchange.is_done():
            time.sleep(PAUSE_S)
        numbers = table.view(torch.int64).tolist()
        self.n_called = self.turns.next - 1
        self.turns = None
        return max(range(self.job.size), key=lambda r: (numbers[r], r))

    def serve(self, told):
        """Take part in an operation of the other ranks."""
        kind = told["kind"]
        if kind not in SERVE:
            raise SumwireError("SW_EPROTO", f"join: rank {self.turns.leader} "
                               f"calls an operation that a joined rank cannot "
                               f"take part in ({kind}): use shorter names, and "
                               f"one release of sumwire on all ranks")
        each = SERVE[kind](told)
        if each is not None and each not in self.served:
            self.served.append(each)


def join(device=None):
    """Declare that this rank has run out of data, wait until all ranks have
    called join(), and return the rank that joined last.  Until then this rank
    adds zeros to the sums of the other ranks.  They can call allreduce, with
    Average or Sum, and step() of a DistributedOptimizer; other operations raise
    SumwireError.  Averages are over all ranks, including joined ones.  device
    is accepted for Horovod and ignored."""
    del device
    from sumwire.torch.job import current
    job = current()
    if job.size == 1:
        return job.rank
    return job.joins.join()
