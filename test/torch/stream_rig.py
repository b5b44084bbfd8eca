# stream_rig.py - what streams of a GPU do for hierarchical sums, without a GPU
# SPDX-License-Identifier: BSD-3-Clause
"""One stream is a thread that does what it was given, in order.  Real gloo and
real collectives are under it; that it waits for them is what NCCL's works and
sw_coll_hold do on a GPU.  The gate holds up all that it has."""
import concurrent.futures
import contextlib
import threading


class Stream:
    """As local.Stream."""

    def __init__(self):
        self.thread = concurrent.futures.ThreadPoolExecutor(1)
        self.gate, self.n_joins = threading.Event(), 0
        self.gate.set()

    def do(self, what):
        def job():
            self.gate.wait()
            return what()
        return self.thread.submit(job)

    def drain(self):
        self.do(lambda: None).result()

    def mark(self):
        return None

    def after(self, mark):
        return contextlib.nullcontext()

    def join(self):
        self.n_joins += 1


class Work:
    def __init__(self, future):
        self.future = future

    def is_completed(self):
        return self.future.done()


class Local:
    """Over a local.Local of gloo, which the stream waits for."""

    def __init__(self, real, stream):
        self.real, self.stream = real, stream

    def __getattr__(self, name):
        return getattr(self.real, name)

    def _begin(self, what, flat):
        return Work(self.stream.do(lambda: self.real.wait(
            what(flat), lambda: None)))

    def scatter(self, flat):
        return self._begin(self.real.scatter, flat)

    def gather(self, flat):
        return self._begin(self.real.gather, flat)

    def check(self, work, look):
        """The stream does, in its order."""

    def wait(self, work, look):
        work.future.result()


class Calls:
    """Over Calls: one begins when the stream is there."""

    def __init__(self, real, stream):
        self.real, self.stream = real, stream
        self.n_waits = 0

    def __getattr__(self, name):
        return getattr(self.real, name)

    def start(self, *args, device=None, **how):
        return self.stream.do(lambda: self.real.start(*args, **how))

    def hold(self, call):
        self.stream.do(lambda: self.real.wait(call.result()))

    def is_done(self, call):
        return call.done() and self.real.is_done(call.result())

    def wait(self, call):
        self.n_waits += 1
        self.real.wait(call.result())


def put_under(sums):
    """sums are by a stream from now on, which is returned."""
    stream = Stream()
    sums.local = Local(sums.local, stream)
    sums.calls = Calls(sums.calls, stream)
    sums.stream, sums.by_stream = stream, True
    return stream
