# work.py - the works that torch.distributed's calls return
# SPDX-License-Identifier: BSD-3-Clause
import collections
import ctypes
import functools
import os
import time
import warnings

import torch
from torch import distributed as dist

from sumwire import locks
from sumwire.collectives import Ending
from sumwire.distributed import flight, layout
from sumwire.distributed.errors import SumwireError

# Works that Python has dropped while C++ still refers to them, as DDP does for
# its join.  A work without its Python half would answer C++ with the empty
# methods of the base class.
held = set()
KEPT = 1024
_recent = collections.deque(maxlen=KEPT)  # works dropped, if counts fail
_lock = locks.make()  # guards the state of all works; held briefly


def references(work):
    """Return the number of C++ references to a work, including the one of its
    Python half.  c10::intrusive_ptr_target keeps a 32-bit count after its
    vtable pointer, and pybind11 keeps the target's address after the object's
    header.  A work that Ctrl-C stopped before its C++ half was made has 0
    references."""
    address = count_address(work)
    return ctypes.c_uint32.from_address(address).value if address else 0


def count_address(work):
    """Return the address of the count, or 0 if the work has no C++ half."""
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
    warnings.warn(f"sumwire cannot read the reference counts of works in "
                  f"PyTorch {torch.__version__} (a new work has {found}, not "
                  f"1): it keeps the last {KEPT} works and their tensors alive")
    return False


def release():
    """Drop the works that C++ does not refer to."""
    for work in held.copy():
        if references(work) == 1:
            held.discard(work)


def seconds(timeout):
    """Return the seconds of a timedelta, or None for no timeout."""
    s = timeout.total_seconds() if timeout is not None else 0
    return s if s > 0 else None


class Kept(dist.Work):
    """Keep a work alive as long as C++ refers to it."""

    def __init__(self):
        super().__init__()
        if is_counted() and held:
            release()

    def __del__(self):
        if not is_counted():
            _recent.append(self)
        elif references(self) > 1:
            held.add(self)


class Future(Kept):
    """Provide torch with the end of a work, whose class has wait() and _join()."""
    error = _end = _future = None  # _end: completed at the end
    _is_ended = False

    def _finish(self):
        """Note the end.  Return a function that completes the future, or
        None."""
        with _lock:
            self._is_ended = True
            end = self._end
        return end and (lambda: end.set_result(None))

    def _value(self, _):
        """Return the value of the future; torch has set a current stream.
        Raise an error here: set_exception() reaches Python only, and DDP, which
        is C++, would take the error for results."""
        self._join()
        return self.results

    def synchronize(self):
        self.wait()

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
        elif not is_ended and self.calls:  # a group of one has no calls
            self.calls.watch()
        return self._future


class Ended(Future):
    """Be the work of a collective that has ended well."""
    calls, _is_ended = None, True

    def __init__(self, results):
        super().__init__()
        self.results = results

    def _join(self):
        pass

    def wait(self, timeout=None):
        return True

    def is_completed(self):
        return True


class One(Future, Ending):
    """Be both the work and the Call of one collective of host tensors that needs
    nothing to finish its result.  Calls.begin() starts it."""
    device = followers = _event = None
    is_ended = False

    def __init__(self, owner, kind, kept, limit_s, record):
        dist.Work.__init__(self)
        if held:
            release()
        self.owner, self.calls, self.group = owner, owner.calls, owner.group
        self.kind, self.results, self.record = kind, kept, record
        self.limit_s, self.until = limit_s, time.monotonic() + limit_s
        self.box = ctypes.c_uint64()  # the library writes it

    def on_end(self, error):
        """Keep the error.  Ending.end() calls it, once."""
        self.error = error
        if self.record:
            flight.ended((self.record,), error)
        if error:
            self.owner.failed(error)
        self.owner = None
        return self._finish()

    def _join(self):
        if self.error:
            raise self.error

    def wait(self, timeout=None):
        limit_s = timeout and seconds(timeout)
        if not self.is_ended and not self.calls.wait(self, limit_s):
            raise late(self, limit_s)
        if self.error:
            raise self.error
        return True

    def is_completed(self):
        return self.calls.is_done(self)


def late(call, limit_s):
    return SumwireError("SW_ETIMEDOUT", f"{call.what} timed out after "
                        f"{limit_s:g} s")


class Work(Future):
    """Join several collectives into one work.

    When the last collective ends, the thread that sees the end calls after(),
    once, to finish the results.  Until then the work keeps the tensors that a
    device reads and writes, so that their memory is not reused.  Device work
    that completes the results has a mark (follow)."""

    # Used once a call needs other devices.
    device = None  # devices.Place
    blocks = False  # wait() blocks this thread, never a stream
    marks = ()  # local.Marks
    copies = ()  # (Call, is_out, begin, end, bytes), for a trace

    def __init__(self, calls, results, after, on_error, shown=None):
        super().__init__()
        self.calls, self.results, self.after = calls, results, after
        self.on_error = on_error  # (error)
        self.shown = shown  # range of PyTorch's profiler
        self.records = []  # flight.Records
        self.parts = []  # Calls
        self._kept = []  # tensors that the library reads and writes
        self._n_open = 1  # open parts; one more until seal()

    # --- by the group that makes it ---

    def add(self, group, kind, dtype, count, send, recv, **more):
        """Add a collective between tensors."""
        self.device = more.get("device")
        self._open((send, recv))
        try:
            parts = next((ctypes.addressof(t.addresses) for t in (send, recv)
                          if isinstance(t, layout.Rows)), None)
            self.parts.append(self.calls.start(
                group, kind, dtype, count, address(send), address(recv),
                parts=parts, on_end=self._end_of_part, **more))
            copied = getattr(send, "copied", None)
            if copied and not self.device:
                self.copies += (self.parts[-1], False, *copied),
        except SumwireError as e:
            self._end_of_part(e)
        except Exception:
            self._end_of_part(None)
            raise

    def _open(self, kept):
        self._kept.append(kept)
        with _lock:
            self._n_open += 1

    def begin(self, kept, start):
        """Add a part.  start(on_end) begins it and returns its Call, or None if
        it has ended.  Keep the objects in kept until the work ends."""
        self._open(kept)
        try:
            call = start(self._end_of_part)
        except Exception:
            self._end_of_part(None)
            raise  # not for Ctrl-C: the part may have begun
        if call:
            self.parts.append(call)

    def follow(self, mark):
        """Complete the results only after a mark of a stream."""
        self.marks = (*self.marks, mark)

    def fail(self, error):
        """Record the error of a part that could not begin."""
        with _lock:
            self.error = self.error or error

    def seal(self):
        """Close the list of parts, and return the work."""
        if self.shown:
            self.shown._call_end_callbacks_on_future(self.get_future())
        self._end_of_part(None)
        return self

    def _end_of_part(self, error):
        """Count the end of a part.  After the last part return a function that
        completes the future, or None."""
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
                    self._copy_back()
            except Exception as e:  # wait() raises it
                self.error = e
        flight.ended(self.records, self.error)
        if self.error:
            self.on_error(self.error)
        if self.copies:
            self.calls.note_copies(self.copies)
            self.copies = ()
        self.after, self._kept, self.on_error = None, [], None
        if not self.device:  # a stream may still have to wait for it
            self.parts = ()  # a part may hold tensors of its own
        return self._finish()

    def _copy_back(self):
        began_ns = time.monotonic_ns()
        self.after()
        if self.parts:
            self.copies += (self.parts[-1], True, began_ns, time.monotonic_ns(),
                            self.after.n_bytes),

    def _join(self):
        """Make the current stream wait for all marks.  If the work has failed,
        raise its error instead, because its marks may never be reached."""
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
                raise late(call, limit_s)
        self._join()
        return True

    def _is_for_stream(self, call):
        """Return True if the current stream waits for the call instead of this
        thread.  The group's next collective reports an error that occurs
        later."""
        return call.device and call.device.can_hold and not (
            self.after or self.blocks)

    def is_completed(self):
        return all([self.calls.is_done(call) for call in self.parts]) and (
            self.error is not None or
            all(mark.is_reached() for mark in self.marks))


def cuda_devices(results):
    """Return the CUDA devices of all tensors in nested lists, or None if no
    tensor is on a CUDA device."""
    if isinstance(results, torch.Tensor):
        return [results.device] if results.is_cuda else None
    found = {d for each in results for d in cuda_devices(each) or ()}
    return list(found) or None


def address(tensor):
    if tensor is None or isinstance(tensor, layout.Rows):
        return None
    return tensor.data_ptr()
