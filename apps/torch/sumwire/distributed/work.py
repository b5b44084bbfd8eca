# work.py - what torch.distributed's calls return: collectives under way
# SPDX-License-Identifier: BSD-3-Clause
import collections
import ctypes
import functools
import os
import warnings

import torch
from torch import distributed as dist

from sumwire import locks
from sumwire.distributed.errors import SumwireError

# Works that Python has dropped while torch's C++ half still refers to them, as
# DDP's does to that of its join: asked then, a work whose Python half is gone
# answers with the empty methods of its base class.
_held = set()
KEPT = 1024
_recent = collections.deque(maxlen=KEPT)  # all that Python has dropped: no counts
_lock = locks.make()  # of all works, for a moment


def references(work):
    """Return how many references C++ has to a work, its Python half's own one
    included: c10::intrusive_ptr_target counts them in 32 bits behind its table of
    functions, and pybind11 has the address of that behind its object's header.
    A work that Ctrl-C stopped before its C++ half was made has 0."""
    address = count_address(work)
    return ctypes.c_uint32.from_address(address).value if address else 0


def count_address(work):
    """Return where the count lies; 0 if the work has no C++ half."""
    half = ctypes.c_size_t.from_address(id(work) + object.__basicsize__).value
    return half and half + ctypes.sizeof(ctypes.c_void_p)


@functools.lru_cache(maxsize=None)
def is_counted():
    """Check once per process that references() reads 1 for a new work.  If not,
    this PyTorch lays out works differently: warn."""
    work = dist.Work()
    try:
        # Reading a wrong address this way is an error, not a signal.
        with open("/proc/self/mem", "rb", buffering=0) as memory:
            os.pread(memory.fileno(), 4, count_address(work))
        found = references(work)
    except (OSError, OverflowError) as e:
        found = e
    if found == 1:
        return True
    warnings.warn(f"sumwire reads no reference counts of works in PyTorch "
                  f"{torch.__version__} (a new work has {found}, not 1): it "
                  f"keeps the last {KEPT} works, with their tensors")
    return False


def release():
    """Drop the works that C++ does not refer to."""
    for work in _held.copy():
        if references(work) == 1:
            _held.discard(work)


def seconds(timeout):
    """Of a timedelta; None where it says none."""
    s = timeout.total_seconds() if timeout is not None else 0
    return s if s > 0 else None


class Kept(dist.Work):
    """A work that lives as long as C++ refers to it."""

    def __init__(self):
        super().__init__()
        if is_counted() and _held:
            release()

    def __del__(self):
        if not is_counted():
            _recent.append(self)
        elif references(self) > 1:
            _held.add(self)


class Work(Kept):
    """Several collectives that end as one.  after() then finishes the results:
    it runs once, in the thread that sees the last one end.  What a device reads
    and writes is kept until then, so that nothing else gets its memory.  What
    a device does behind them has a mark (follow)."""

    def __init__(self, calls, results, after, on_error):
        super().__init__()
        self.calls, self.results, self.after = calls, results, after
        self.on_error = on_error  # (error)
        self.parts, self.marks = [], []  # Calls; local.Marks
        self.error = None
        self.device = None  # devices.Place
        self.blocks = False  # wait() is this thread's, never a stream's
        self._kept = []  # what the library reads and writes
        self._n_open = 1  # until seal()
        self._end = self._future = None  # set when it ends; what follows it
        self._is_ended = False

    # --- by the group that makes it ---

    def add(self, group, kind, dtype, count, send, recv, **more):
        """One more collective, between tensors."""
        self.device = more.get("device")
        try:
            self.begin((send, recv), lambda on_end: self.calls.start(
                group, kind, dtype, count, address(send), address(recv),
                on_end=on_end, **more))
        except SumwireError as e:
            self.fail(e)

    def begin(self, kept, start):
        """One more, that start(on_end) begins and returns, None: it has ended;
        it needs what is kept."""
        self._kept.append(kept)
        with _lock:
            self._n_open += 1
        try:
            call = start(self._end_of_part)
        except Exception:
            self._end_of_part(None)
            raise  # else it is Ctrl-C, and the part may be under way
        if call:
            self.parts.append(call)

    def follow(self, mark):
        """The results are there behind it."""
        self.marks.append(mark)

    def fail(self, error):
        """One more could not begin."""
        with _lock:
            self.error = self.error or error

    def seal(self):
        """There are no more."""
        self._end_of_part(None)
        return self

    def _end_of_part(self, error):
        """Returns what follows the last of them, or None."""
        with _lock:
            self.error = self.error or error
            self._n_open -= 1
            if self._n_open:
                return None
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
        with _lock:
            self._is_ended = True
            end = self._end
        return end and (lambda: end.set_result(None))

    def _value(self, _):
        """Of the future, for whom torch has a stream here.  An error is to be
        raised here: what set_exception() says reaches Python alone, and DDP,
        which is C++, takes it for results."""
        self._join()
        return self.results

    def _join(self):
        """The current stream comes behind all of it; of what has failed it may
        never be done."""
        if self.error:
            raise self.error
        for mark in self.marks:
            mark.join()

    # --- by torch ---

    def wait(self, timeout=None):
        limit_s = seconds(timeout)
        for call in self.parts:
            if self._is_for_stream(call) and not limit_s:
                self.calls.hold(call)
            elif not self.calls.wait(call, limit_s):
                raise SumwireError("SW_ETIMEDOUT", f"{call.what} timed out: it "
                                   f"has not ended in {limit_s:g} s")
        self._join()
        return True

    def _is_for_stream(self, call):
        """The current stream waits for it, instead of this thread.  An error
        that comes later is that of the group's next collective."""
        return call.device and call.device.can_hold and not (
            self.after or self.blocks)

    def synchronize(self):
        self.wait()

    def is_completed(self):
        return all([self.calls.is_done(call) for call in self.parts]) and (
            self.error is not None or
            all(mark.is_reached() for mark in self.marks))

    def is_success(self):
        return self.is_completed() and not self.error

    def exception(self):
        return self.error

    def result(self):
        return self.results

    def source_rank(self):
        return 0

    def get_future(self):
        with _lock:
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
