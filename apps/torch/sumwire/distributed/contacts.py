# contacts.py - sends and receives over gloo before two ranks are connected
# SPDX-License-Identifier: BSD-3-Clause
"""gloo connects two ranks when both have called it for each other (gloo.py),
and the first call of each rank waits for the connection.  The peer may be in a
sum that waits for this rank.  To avoid that deadlock, a thread makes the first
calls for each peer, so isend() and irecv() return at once."""
import collections
import datetime
import threading
import time

from sumwire import locks
from sumwire.distributed import gloo
from sumwire.distributed.errors import SumwireError
from sumwire.distributed.work import Kept, seconds

LEAST_S = 0.001  # shortest timeout; 0 would mean the group's timeout


class Contacts:
    """Hold the peers of a group, by their rank in the group.  connected: peers
    that need no thread; waiting: queued calls of each other peer's thread."""

    def __init__(self, group, n):
        self.group = group
        self.connected = set() if gloo.is_lazy() else set(range(n))
        self.waiting = {}
        self._lock = locks.make()

    def call(self, name, peer, arguments):
        """Call gloo's method, or queue the call, and return a work."""
        with self._lock:
            if peer not in self.connected:
                return self._queue(peer, name, arguments)
        return getattr(self.group, name)(*arguments)

    def _queue(self, peer, name, arguments):
        work = Transfer(f"{name} {'to' if name == 'send' else 'from'} place "
                        f"{peer} of the group", peer, arguments[0])
        calls = self.waiting.setdefault(peer, collections.deque())
        calls.append((work, name, arguments))
        if len(calls) == 1:
            threading.Thread(target=self._make, args=[peer, calls], daemon=True,
                             name="sumwire-contact").start()
        return work

    def _make(self, peer, calls):
        """Make the queued calls in their order.  The first call returns when
        the ranks are connected, or fails after the group's timeout."""
        while True:
            work, name, arguments = calls[0]
            try:
                work.begin(getattr(self.group, name)(*arguments))
            except RuntimeError as e:
                work.fail(e)
            with self._lock:
                calls.popleft()
                if not calls:
                    self.connected.add(peer)
                    del self.waiting[peer]
                    return


class Transfer(Kept):
    """Represent a work of gloo that begins later."""

    def __init__(self, what, peer, tensors):
        super().__init__()
        self.what, self.peer, self.tensors = what, peer, tensors
        self.work = self.error = None
        self._has_begun = threading.Event()

    # --- by the thread that makes the call ---

    def begin(self, work):
        self.work = work
        self._has_begun.set()

    def fail(self, error):
        self.error = error
        self._has_begun.set()

    # --- by torch ---

    def wait(self, timeout=None):
        limit_s, began = seconds(timeout), time.monotonic()
        if not self._has_begun.wait(limit_s):
            raise SumwireError("SW_ETIMEDOUT", f"{self.what} timed out: that "
                               f"rank has not connected through gloo in "
                               f"{limit_s:g} s")
        if self.error:
            raise self.error
        if not limit_s:
            return self.work.wait()
        left_s = max(limit_s - (time.monotonic() - began), LEAST_S)
        return self.work.wait(datetime.timedelta(seconds=left_s))

    def synchronize(self):
        self.wait()

    def is_completed(self):
        return self._has_begun.is_set() and (
            self.error is not None or self.work.is_completed())

    def is_success(self):
        return self.is_completed() and not self.error and (
            self.work.is_success())

    def exception(self):
        return self.error

    def result(self):
        return self.tensors

    def source_rank(self):
        return self.peer
