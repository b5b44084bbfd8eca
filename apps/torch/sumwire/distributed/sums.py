# sums.py - tensors that are summed on each machine first, on their way
# SPDX-License-Identifier: BSD-3-Clause
import collections

from sumwire.client import SumwireError
from sumwire.distributed.local import DTYPES, GRACE_S, Stream


class Sum:
    """work: what torch does with flat; call: what sumwire does with this rank's
    part; error: why that failed."""
    __slots__ = ("flat", "scale", "work", "call", "error")

    def __init__(self, flat, scale):
        self.flat, self.scale = flat, scale
        self.work = self.call = self.error = None

    def ended(self, error):
        self.error = error


class Sums:
    """Begun in one order at all ranks, and passed on in that order; gathered, in
    that order, too, by finish().  local: the ranks of this machine; cross: the
    group of this rank's place on all machines, None: there is one machine;
    place, device: where tensors lie, and what copies them.  look() is called while
    others of this machine are waited for, and may raise; go_on(is_done) before
    other machines are.  by_stream: where streams can wait they do, instead of
    this thread; then finish() waits for what it was called for the last time."""

    def __init__(self, calls, local, cross, place, device, look,
                 go_on=lambda is_done: None, by_stream=False):
        self.calls, self.local, self.cross = calls, local, cross
        self.stream, self.device = Stream(place), device
        self.look, self.go_on = look, go_on
        self.by_stream = by_stream and self.can_wait_by_stream()
        self.scattered = collections.deque()
        self.passed, self.held = [], []

    def can_wait_by_stream(self):
        """gloo's works are done by threads of the CPU: no stream waits for
        them."""
        return (self.local.kind == "nccl" and self.device is not None and
                self.device.can_hold)

    def begin(self, flat, mark=None, scale=None):
        """Behind the mark of the stream that has filled it in.  A scale is for
        all inputs."""
        each = Sum(flat, scale)
        with self.stream.after(mark):
            each.work = self.local.scatter(flat)
        self.scattered.append(each)
        if self.by_stream:
            self._pass_on()

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
            elif each.scale is not None:
                part.mul_(each.scale)
        self.passed.append(each)

    def finish(self):
        """All of them are there: for the current stream, if this one's waits."""
        if self.by_stream:
            self._finish_by_stream()
            return
        while self.scattered:
            self.local.wait(self.scattered[0].work, self.look)
            self._pass_on()
        for each in self.passed:
            if each.call:
                self._wait_for(each)
            with self.stream.after(None):
                each.work = self.local.gather(each.flat)
        for each in self.passed:
            self.local.wait(each.work, self.look)
        self.passed = []

    def _finish_by_stream(self):
        self.settle()
        with self.stream.after(None):
            for each in self.passed:
                if each.call:  # who cannot be held back by a stream waits here
                    self.go_on(lambda: self.calls.is_done(each.call))
                    self.calls.hold(each.call)
                each.work = self.local.gather(each.flat)
                self.local.check(each.work, self.look)
        self.stream.join()
        self.held, self.passed = self.passed, []

    def settle(self):
        """Those that streams wait for are there, or an error says why not."""
        for each in self.held:
            if each.call:
                self._wait_for(each)
            self.local.wait(each.work, self.look)
        self.held = []

    def _wait_for(self, each):
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
        return error if isinstance(error, SumwireError) else SumwireError(
            "SW_EABORTED", text)
