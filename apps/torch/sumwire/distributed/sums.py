# sums.py - sums in flight of tensors that each machine reduces first
# SPDX-License-Identifier: BSD-3-Clause
import collections

from sumwire import client
from sumwire.distributed.errors import SumwireError
from sumwire.distributed.local import DTYPES, GRACE_S, Stream


class Sum:
    """Hold one tensor during its three steps.

    work   torch's work on flat: the reduce-scatter, later the gather
    call   sumwire's Call for this rank's part; None: there is one machine
    error  the error of that call
    mark   mark of the stream after the reduce-scatter"""
    __slots__ = ("flat", "scale", "on_end", "work", "call", "error", "mark")

    def __init__(self, flat, scale, on_end):
        self.flat, self.scale, self.on_end = flat, scale, on_end
        self.work = self.call = self.error = self.mark = None

    def ended(self, error):
        self.error = error
        return self.on_end(error)


class Sums:
    """Sum tensors in three steps.  All ranks begin the tensors in one order,
    and each step keeps this order: scatter on the machine, sum between
    machines, and gather on the machine, which finish() does.

    local   Local: the ranks of this machine
    cross   group of the ranks at this rank's place on all machines; None: there
            is one machine
    place   torch.device of the tensors
    device  Device that copies them, or None
    look    look() runs during waits for ranks of this machine, and may raise
    go_on   go_on(is_done) runs before waits for other machines"""

    def __init__(self, calls, local, cross, place, device, look,
                 go_on=lambda is_done: None):
        self.calls, self.local, self.cross = calls, local, cross
        self.stream, self.place, self.device = Stream(place), place, device
        self.look, self.go_on = look, go_on
        self.scattered, self.passed = collections.deque(), []

    def begin(self, flat, mark=None, scale=None, on_end=lambda error: None):
        """Begin to sum flat after the mark, and return its Sum.  scale
        multiplies all inputs.  on_end(error or None) runs when the sum between
        machines has ended."""
        each = Sum(flat, scale, on_end)
        self.stream.uses(flat)
        with self.stream.after(mark):
            each.work = self.local.scatter(flat)
        self.scattered.append(each)
        return each

    def move(self):
        """Start the next step of every tensor whose scatter has ended, without
        waiting."""
        while self.scattered and self.scattered[0].work.is_completed():
            self._pass_on()

    def _pass_on(self):
        """Start the sum between machines of the next tensor's part."""
        each = self.scattered.popleft()
        part = self.local.part(each.flat)
        with self.stream.after(None):
            self.local.check(each.work, self.look)
            if self.cross:
                how = {} if each.scale is None else {
                    "op": "premul_sum", "scale": each.scale}
                each.call = self.calls.start(
                    self.cross, "all_reduce", DTYPES[part.dtype],
                    part.numel(), part.data_ptr(), part.data_ptr(),
                    on_end=each.ended, device=self.device,
                    limit_s=self.local.limit_s + GRACE_S, **how)
            else:
                if each.scale is not None:
                    part.mul_(each.scale)
                each.ended(None)
            each.mark = self.stream.done()
        self.passed.append(each)

    def finish(self):
        """Wait until all sums are complete in their tensors."""
        while self.scattered:
            self.local.wait(self.scattered[0].work, self.look)
            self._pass_on()
        for each in self.passed:
            self._wait_for(each)
            with self.stream.after(None):
                each.work = self.local.gather(each.flat)
        for each in self.passed:
            self.local.wait(each.work, self.look)
        self.passed = []

    def settle(self):
        """Wait for everything that finish() has left to streams, and raise its
        error.  Without streams there is nothing left."""

    def is_idle(self):
        """Return True if the device has done all its work."""
        return True

    def _wait_for(self, each):
        """Wait for the sum between machines, and raise its error."""
        if each.call:
            self.go_on(lambda: self.calls.is_done(each.call))
            self.calls.wait(each.call)
        if each.error:
            raise each.error

    def fail(self, error, rank):
        """Tell all ranks that wait for this one, on this machine and on others,
        that it has failed.  Return the error for all later calls."""
        text = getattr(error, "text", None) or (
            f"{type(error).__name__}: {error}")
        if not text.startswith("rank "):
            text = f"rank {rank}: {text}"
        self.local.bell.ring(text)
        if self.cross:
            self.calls.abort_group(self.cross, text)
        return error if isinstance(error, client.SumwireError) else SumwireError(
            "SW_EABORTED", text)


class StreamSums(Sums):
    """Let the device's streams wait instead of threads. A gather waits for
    other machines, so gathers run on a stream of their own, while later tensors
    are scattered and sent."""

    def __init__(self, *how, **more):
        super().__init__(*how, **more)
        self.gathers = Stream(self.place)
        self.held = []

    def begin(self, *how, **more):
        each = super().begin(*how, **more)
        self._pass_on()
        return each

    def gather(self):
        """Begin the gathers of all tensors that have begun, and return their
        Sums."""
        for each in self.passed:
            self.gathers.uses(each.flat)
            with self.gathers.after(each.mark):
                if each.call:
                    self.calls.hold(each.call)
                each.work = self.local.gather(each.flat)
                self.local.check(each.work, self.look)
        gathered, self.passed = self.passed, []
        return gathered

    def finish(self):
        """Make the current stream wait for all sums.  The thread waits only for
        the sums of the previous finish()."""
        self.settle()
        self.held = self.gather()
        self.gathers.done().join()

    def settle(self):
        for each in self.held:
            self._wait_for(each)
            self.local.wait(each.work, self.look)
        self.held = []

    def is_idle(self):
        try:
            return self.gathers.done().is_reached()
        except RuntimeError:  # the device has failed
            return False


def make(calls, local, cross, place, device, look, **more):
    """Return StreamSums if streams can wait, otherwise Sums. gloo uses CPU
    threads, for which no stream can wait."""
    can_wait = local.kind == "nccl" and device is not None and device.can_hold
    return (StreamSums if can_wait else Sums)(
        calls, local, cross, place, device, look, **more)
