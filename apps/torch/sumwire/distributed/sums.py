# sums.py - tensors that are summed on each machine first, on their way
# SPDX-License-Identifier: BSD-3-Clause
import collections

from sumwire import client
from sumwire.distributed.errors import SumwireError
from sumwire.distributed.local import DTYPES, GRACE_S, Stream


class Sum:
    """work: what torch does with flat; call: what sumwire does with this rank's
    part, None: there is one machine; error: why that failed; mark: behind the
    reduce-scatter."""
    __slots__ = ("flat", "scale", "on_end", "work", "call", "error", "mark")

    def __init__(self, flat, scale, on_end):
        self.flat, self.scale, self.on_end = flat, scale, on_end
        self.work = self.call = self.error = self.mark = None

    def ended(self, error):
        self.error = error
        return self.on_end(error)


class Sums:
    """Begun in one order at all ranks, and passed on in that order; gathered, in
    that order, too, by finish().  local: the ranks of this machine; cross: the
    group of this rank's place on all machines, None: there is one machine;
    place, device: where tensors lie, and what copies them.  look() is called while
    others of this machine are waited for, and may raise; go_on(is_done) before
    other machines are."""

    def __init__(self, calls, local, cross, place, device, look,
                 go_on=lambda is_done: None):
        self.calls, self.local, self.cross = calls, local, cross
        self.stream, self.place, self.device = Stream(place), place, device
        self.look, self.go_on = look, go_on
        self.scattered, self.passed = collections.deque(), []

    def begin(self, flat, mark=None, scale=None, on_end=lambda error: None):
        """Behind the mark of the stream that has filled it in.  A scale is for
        all inputs.  on_end(error or None): other machines are through with it.
        Returns its Sum."""
        each = Sum(flat, scale, on_end)
        self.stream.uses(flat)
        with self.stream.after(mark):
            each.work = self.local.scatter(flat)
        self.scattered.append(each)
        return each

    def move(self):
        """What can go on does; nobody waits."""
        while self.scattered and self.scattered[0].work.is_completed():
            self._pass_on()

    def _pass_on(self):
        """The next one's part goes to the other machines."""
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
        """All of them are there."""
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
        """What finish() has not waited for is there, or an error says why
        not."""

    def is_idle(self):
        """Has the device done all that it was given?"""
        return True

    def _wait_for(self, each):
        """Other machines are through with it."""
        if each.call:
            self.go_on(lambda: self.calls.is_done(each.call))
            self.calls.wait(each.call)
        if each.error:
            raise each.error

    def fail(self, error, rank):
        """Whoever waits for this rank, on this machine or others, is to know
        that it has failed.  Returns the error for all that comes."""
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
    """The device's streams wait, and no thread.  A gather waits for other
    machines, so gathers have a stream of their own: what is begun later is
    scattered, and goes to other machines, meanwhile."""

    def __init__(self, *how, **more):
        super().__init__(*how, **more)
        self.gathers = Stream(self.place)
        self.held = []

    def begin(self, *how, **more):
        each = super().begin(*how, **more)
        self._pass_on()
        return each

    def gather(self):
        """Those that were begun, which it returns."""
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
        """All of them are there for the current stream; this thread waits for
        what it was called for the last time."""
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
        except RuntimeError:  # of a device that has failed
            return False


def make(calls, local, cross, place, device, look, **more):
    """Who waits, streams or threads?  gloo's works are done by threads of the
    CPU: no stream waits for them."""
    can_wait = local.kind == "nccl" and device is not None and device.can_hold
    return (StreamSums if can_wait else Sums)(
        calls, local, cross, place, device, look, **more)
