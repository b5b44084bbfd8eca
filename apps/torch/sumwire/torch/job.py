# job.py - this process's place in the job, and tensors of it as torch sees them
# SPDX-License-Identifier: BSD-3-Clause
import atexit
import functools
import sys
import time
import weakref

import torch

from sumwire.client import Client, SumwireError
from sumwire.collectives import Calls
from sumwire.distributed.local import DTYPES
from sumwire.memory import Memory
from sumwire.torch import environment
from sumwire.torch.joining import Joins
from sumwire.torch.unsupported import refuse

PAUSE_S = 100e-6  # between two looks at sums that others go on after

_job = None


class Shared:
    """A declared tensor; flat is a torch view of its shared memory, shaped the
    one that was asked for last."""
    __slots__ = ("tensor", "client", "flat", "shaped", "n_pushes")

    def __init__(self, client, tensor, dtype):
        self.client, self.tensor = client, tensor
        self.flat = self.shaped = torch.frombuffer(tensor.memory, dtype=dtype)
        self.n_pushes = 0

    @property
    def name(self):
        return self.tensor.name

    def part(self, first, count):
        """Some elements, a tensor by itself: autograd counts changes by
        tensor."""
        return torch.frombuffer(
            self.tensor.memory, dtype=self.flat.dtype, count=count,
            offset=first * self.flat.element_size())

    def follow(self, stream):
        """Of a device alone (staging.py)."""
        return None

    def view(self, shape):
        if self.shaped.shape != shape:
            self.shaped = self.flat.view(shape)
        return self.shaped


class Job:
    """The attachment of this process."""

    def __init__(self, client):
        self.client = client
        self.rank, self.size = client.rank, client.size
        self.to_finish = set()  # optimizers with updates to be done
        self.new = []  # of declare_later
        self.changing = []  # calls that wait for all to agree (ops.py)
        self.buckets = []  # open ones of allreduce_hook (parallel.py)
        self.stages = {}  # of staging.py, by device; None: there can be none
        self.hierarchies = weakref.WeakSet()  # of hierarchy.py
        self.sets = set()  # of members.py
        self.agreed = set()  # keys of what all ranks have compared
        self.n_bundles = 0  # that are declared
        self.gradients = weakref.WeakValueDictionary()  # by Gradients.what
        self.joins = Joins(self)
        client.idle = self.joins.look

    @functools.cached_property
    def collectives(self):
        """Calls of groups of its ranks."""
        return Calls(self.client)

    @functools.cached_property
    def memory(self):
        """Blocks beside those of declared tensors."""
        return Memory(self.client)

    def leave(self):
        """Others may still wait for what this process has pushed."""
        try:
            for each in list(self.to_finish):
                each.finish_updates()
            for stage in filter(None, self.stages.values()):
                stage.finish()
            for each in list(self.hierarchies):
                each.settle()
            for each in list(self.sets):
                each.close()
        finally:
            self.client.leave()

    def declare(self, descs, is_async=False):
        """Declare (name, elements, torch dtype, priority)...; one batch."""
        tensors = self.client.declare(
            [(short(name), n, dtype_name(dtype, name), priority)
             for name, n, dtype, priority in descs], is_async)
        return [Shared(self.client, t, d[2]) for t, d in zip(tensors, descs)]

    def declare_later(self, call):
        """Declare call.desc and then call.begin(), when anybody waits: so names
        that are new share one declaration, since each takes a round trip."""
        self.new.append(call)

    def declare_new(self):
        new, self.new = self.new, []
        for stage in dict.fromkeys(c.stage for c in new):
            calls = [c for c in new if c.stage is stage]
            made = (stage.make if stage else self.declare)(
                [c.desc for c in calls])
            for call, shared in zip(calls, made):
                call.begin(shared)

    def push(self, shared, step=None):
        """Start to sum; step defaults to the number of pushes so far."""
        step = shared.n_pushes if step is None else step
        shared.client.push(shared.tensor, step)
        shared.n_pushes += 1

    def broadcast(self, shared, root, step=None):
        """Start to replace it by the root's."""
        step = shared.n_pushes if step is None else step
        shared.client.broadcast(shared.tensor, root, step)
        shared.n_pushes += 1

    def progress(self):
        """Calls that can go on do.  All that wait call it, whatever for: ranks
        may wait for their calls in different orders."""
        self.joins.look()
        for call in list(self.changing):
            try:
                if not call.shared.client.is_done(call.shared.tensor):
                    continue
            except SumwireError as e:
                call.error = e
            self.changing.remove(call)
            if call.error is None:
                call.go_on()
        if self.new:
            self.declare_new()

    def progress_until(self, is_done):
        """While there are such calls, and for as long as a sum may take."""
        until = time.monotonic() + self.client.wait_timeout_s
        self.progress()
        while (self.changing and not is_done() and
               time.monotonic() < until):
            time.sleep(PAUSE_S)
            self.progress()

    def is_done(self, shared):
        self.progress()
        return shared.client.is_done(shared.tensor)

    def wait(self, shared):
        if self.new or self.changing:
            self.progress_until(lambda: shared.client.is_done(shared.tensor))
        self.joins.settle(lambda: shared.client.is_done(shared.tensor))
        shared.client.wait(shared.tensor)


def short(name):
    """A name of at most 127 bytes, the same on all ranks."""
    if len(name.encode()) <= 127:
        return name
    # Only for parameters of very deep modules; their ends differ.
    import hashlib
    digest = hashlib.sha256(name.encode()).hexdigest()[:16]
    tail = name.encode()[-100:].decode(errors="ignore")
    return f"{digest}..{tail}"


def dtype_name(dtype, what):
    name = DTYPES.get(dtype)
    if name is None:
        raise TypeError(f"'{what}' is of {dtype}, which sumwire cannot sum; it "
                        f"sums {', '.join(str(d) for d in DTYPES)}: convert it "
                        f"first")
    return name


def current():
    """The job; an error when there is none."""
    if _job is None:
        raise SumwireError("SW_ECLOSED", "this process has not joined a job: "
                           "call sumwire.torch.init() first")
    return _job


def init(agent=None, process_sets=None, **more):
    """Join the job over the agent of this machine; returns when all ranks
    have joined.  agent: its socket; default $SUMWIRE_AGENT, else
    agent.sock, where agents put it.  process_sets: a list of ProcessSets to add.
    A second call does nothing."""
    global _job
    refuse(more)
    if _job is None:
        _job = Job(Client(agent))
        if _job.rank == 0:
            environment.warn()
        if process_sets:
            from sumwire.torch.process_sets import add_all
            add_all(process_sets)


def shutdown():
    """Finish updates that are still on their way and leave the job.  Gradients
    that lie in shared memory stay readable."""
    global _job
    if _job is not None:
        job, _job = _job, None
        job.leave()


@atexit.register
def end():
    """The end of the program.  Who ends by an exception does not leave: so the
    others are told at once that this process failed."""
    if getattr(sys, "last_type", None) is None:
        shutdown()


def is_initialized():
    return _job is not None


def rank():
    """Which of all ranks this is, from 0."""
    return current().rank


def size():
    """Number of all ranks."""
    return current().size


def local_rank():
    """Which of the ranks of this machine this is, from 0, as the launcher
    says; without a launcher, which of those at this agent."""
    return current().client.local_rank


def local_size():
    """Number of the ranks of this machine, as local_rank()."""
    return current().client.local_size
