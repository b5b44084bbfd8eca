# stream_rig.py - simulate the GPU streams of hierarchical sums, without a GPU
# SPDX-License-Identifier: BSD-3-Clause
"""A stream is a thread that runs its tasks in order, over real gloo and real
collectives. A stream waits for them as NCCL's works and sw_coll_hold make it
wait on a GPU. The gate of a stream holds up all its tasks. The package gets
these streams when it asks torch.cuda for streams."""
import concurrent.futures
import contextlib
import queue
import threading
import time

import torch
from torch.overrides import TorchFunctionMode

from sumwire import collectives
from sumwire.client import SumwireError
from sumwire.distributed import local, sums

LIMIT_S = 60  # until things end


class Event:
    def __init__(self, future):
        self.future = future

    def query(self):
        return self.future.done()


class Stream:
    """Replaces torch.cuda.Stream."""
    device = None

    def __init__(self):
        self.gate = threading.Event()
        self.gate.set()
        self.used = []  # tensors whose memory the stream uses
        self.awaited = []  # events
        self.queue = queue.SimpleQueue()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while True:
            future, what = self.queue.get()
            self.gate.wait()
            try:
                future.set_result(what())
            except Exception as e:
                future.set_exception(e)

    def do(self, what):
        future = concurrent.futures.Future()
        self.queue.put((future, what))
        return future

    def drain(self):
        self.do(lambda: None).result(LIMIT_S)

    def record_event(self):
        return Event(self.do(lambda: None))

    def wait_event(self, event):
        self.awaited.append(event)
        self.do(event.future.result)


of_threads = []  # the initial current stream of each thread


class Current(threading.local):
    """The current stream of each thread."""

    def __init__(self):
        self.stream = Stream()
        of_threads.append(self.stream)


_current = Current()


def current(device=None):
    return _current.stream


class Written(TorchFunctionMode):
    """Assigns calls that write to tensors to the current stream."""
    KINDS = (torch.Tensor.copy_, torch.Tensor.__setitem__, torch.Tensor.mul_)

    def __torch_function__(self, what, types, args=(), kwargs=None):
        if what in self.KINDS:
            return current().do(lambda: what(*args))
        return what(*args, **(kwargs or {}))


@contextlib.contextmanager
def made_current(stream):
    before, _current.stream = _current.stream, stream
    try:
        with Written():
            yield
    finally:
        _current.stream = before


class Ours(local.Stream):
    """A local.Stream of the package, over one of these."""

    def __init__(self):
        self.stream = Stream()

    def uses(self, tensor):
        self.stream.used.append(tensor)


class Work:
    def __init__(self, future):
        self.future = future

    def is_completed(self):
        return self.future.done()


def finish(work):
    """Do nothing: nobody else waits for ends here."""
    until = time.monotonic() + LIMIT_S
    while not work.is_completed() and time.monotonic() < until:
        time.sleep(local.PAUSE_S)


class Local:
    """Wraps a local.Local of gloo; the current stream waits for it."""

    def __init__(self, real):
        self.real = real

    def __getattr__(self, name):
        return getattr(self.real, name)

    def _begin(self, what, flat):
        return Work(current().do(lambda: finish(what(flat))))

    def scatter(self, flat):
        return self._begin(self.real.scatter, flat)

    def gather(self, flat):
        return self._begin(self.real.gather, flat)

    def check(self, work, look):
        """Check in the stream, in its order."""

    def wait(self, work, look):
        work.future.result(LIMIT_S)


class Device:
    can_hold = True

    @staticmethod
    def follow(stream):
        """Follow a stream as on the CPU: the thread itself fills in gradients."""


class Call:
    """A work that a stream begins. future: the real one's, None: it failed."""
    what = "all_reduce of a stream"
    device = Device

    def __init__(self, future):
        self.future = future


class Calls:
    """Wraps Calls, which handles calls without a stream; a call with one begins
    when the stream reaches it."""

    def __init__(self, real):
        self.real = real
        self.n_waits = 0

    def __getattr__(self, name):
        return getattr(self.real, name)

    def start(self, *args, device=None, on_end, **how):
        if device is not Device:
            return self.real.start(*args, device=device, on_end=on_end, **how)

        def begin():
            try:
                return self.real.start(*args, on_end=on_end, **how)
            except SumwireError as e:
                collectives.Call(None, "", 0, on_end, None).end(e)
                return None
        return Call(current().do(begin))

    def hold(self, call):
        current().do(lambda: self._wait(call))

    def _wait(self, call, limit_s=None):
        try:
            real = call.future.result(limit_s)
        except concurrent.futures.TimeoutError:
            return False
        return real is None or self.real.wait(real, limit_s)

    def is_done(self, call):
        if not isinstance(call, Call):
            return self.real.is_done(call)
        return call.future.done() and (
            call.future.result() is None or
            self.real.is_done(call.future.result()))

    def wait(self, call, limit_s=None):
        if not isinstance(call, Call):
            return self.real.wait(call, limit_s)
        self.n_waits += 1
        return self._wait(call, limit_s)


def put_under(way):
    """Use StreamSums in place of Sums; replace torch's streams from now on."""
    torch.cuda.current_stream = current
    torch.cuda.stream = made_current
    torch.cuda.is_current_stream_capturing = lambda: False
    under = sums.StreamSums(Calls(way.calls), Local(way.local), way.cross,
                            way.place, Device, way.look, way.go_on)
    under.stream, under.gathers = Ours(), Ours()
    return under
