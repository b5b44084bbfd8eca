# work.py - what torch.distributed's calls return: collectives under way
# SPDX-License-Identifier: BSD-3-Clause
import threading

import torch
from torch import distributed as dist

from sumwire.client import SumwireError
from sumwire.distributed import version


# Before 2.8 torch does not keep the Python half of a work that only its C++ half
# has, as DDP's, which waits for ever then: until it is waited for, it is here.
IS_TO_BE_HELD = version() < (2, 8)
_held = set()


def seconds(timeout):
    """Of a timedelta; None where it says none."""
    s = timeout.total_seconds() if timeout is not None else 0
    return s if s > 0 else None


class Work(dist.Work):
    """Several collectives that end as one.  after() then finishes the results:
    it runs once, in the thread that sees the last one end.  What a device reads
    and writes is kept until then, so that nothing else gets its memory."""

    def __init__(self, calls, results, after, on_error):
        super().__init__()
        self.calls, self.results, self.after = calls, results, after
        self.on_error = on_error  # (error)
        self.parts = []  # Calls
        self.error = None
        self.device = None  # devices.Place
        self._kept = []  # what the library reads and writes
        self._n_open = 1  # until seal()
        self._lock = threading.Lock()
        self._end = self._future = None  # set when it ends; what follows it
        self._is_ended = False
        if IS_TO_BE_HELD:
            _held.add(self)

    # --- by the group that makes it ---

    def add(self, group, kind, dtype, count, send, recv, **more):
        """One more collective, between tensors."""
        self.device = more.get("device")
        self.begin((send, recv), lambda on_end: self.calls.start(
            group, kind, dtype, count, address(send), address(recv),
            on_end=on_end, **more))

    def begin(self, kept, start):
        """One more, that start(on_end) begins and returns; it needs what is
        kept."""
        self._kept.append(kept)
        with self._lock:
            self._n_open += 1
        try:
            self.parts.append(start(self._end_of_part))
        except SumwireError as e:
            self._end_of_part(e)

    def seal(self):
        """There are no more."""
        self._end_of_part(None)
        return self

    def _end_of_part(self, error):
        with self._lock:
            self.error = self.error or error
            self._n_open -= 1
            if self._n_open:
                return
        if not self.error and self.after:
            try:
                if self.device:
                    self.device.finish(self.after)
                else:
                    self.after()
            except Exception as e:  # goes to whoever waits
                self.error = e
        if self.error:
            self.on_error(self.error)
        self.after, self._kept, self.on_error = None, [], None
        with self._lock:
            self._is_ended = True
            end = self._end
        if end:
            end.set_result(None)

    def _value(self, _):
        """Of the future.  An error is to be raised here: what set_exception()
        says reaches Python alone, and DDP, which is C++, takes it for results."""
        if self.error:
            raise self.error
        return self.results

    # --- by torch ---

    def wait(self, timeout=None):
        try:
            return self._wait(seconds(timeout))
        finally:
            _held.discard(self)

    def _wait(self, limit_s):
        if self.device and self.device.can_hold and not self.after \
                and not limit_s:
            return self._hold()
        for call in self.parts:
            if not self.calls.wait(call, limit_s):
                raise SumwireError("SW_ETIMEDOUT", f"{call.what} has not ended "
                                   f"in {limit_s:g} s")
        if self.error:
            raise self.error
        return True

    def _hold(self):
        """The current stream waits instead.  An error that comes later is that
        of the group's next collective."""
        for call in self.parts:
            self.calls.hold(call)
        if self.error:
            raise self.error
        return True

    def synchronize(self):
        self.wait()

    def is_completed(self):
        return all([self.calls.is_done(call) for call in self.parts])

    def is_success(self):
        return self.is_completed() and not self.error

    def exception(self):
        return self.error

    def result(self):
        return self.results

    def source_rank(self):
        return 0

    def get_future(self):
        _held.discard(self)
        with self._lock:
            is_new = self._future is None
            if is_new:
                self._end = torch.futures.Future(
                    devices=cuda_devices(self.results))
                self._future = self._end.then(self._value)
            is_ended = self._is_ended
        if is_new and is_ended:
            self._end.set_result(None)
        elif not is_ended:
            self.calls.watch()
        return self._future


def cuda_devices(results):
    """Of all tensors in lists of lists; None: there are none."""
    if isinstance(results, torch.Tensor):
        return [results.device] if results.is_cuda else None
    found = {d for each in results for d in cuda_devices(each) or ()}
    return list(found) or None


def address(tensor):
    return None if tensor is None else tensor.data_ptr()
