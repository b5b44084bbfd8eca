# job.py - this process's place in the job, and tensors of it as torch sees them
# SPDX-License-Identifier: BSD-3-Clause
import atexit
import functools
import sys
import time
import weakref

import torch

from sumwire import timeline
from sumwire.client import Client, SumwireError
from sumwire.collectives import Calls
from sumwire.distributed.local import DTYPES
from sumwire.memory import Memory
from sumwire.torch import environment
from sumwire.torch.joining import Joins
from sumwire.torch.unsupported import refuse

PAUSE_S = 100e-6  # between two polls of the sums that other calls wait for

_job = None


class Shared:
    """Hold a declared tensor.  flat is a torch view of its shared memory;
    shaped is the view with the shape that was asked for last."""
    __slots__ = ("tensor", "client", "flat", "shaped", "n_pushes")

    def __init__(self, client, tensor, dtype):
        self.client, self.tensor = client, tensor
        self.flat = self.shaped = torch.frombuffer(tensor.memory, dtype=dtype)
        self.n_pushes = 0

    @property
    def name(self):
        return self.tensor.name

    def part(self, first, count):
        """Return some elements as a tensor of its own, because autograd counts
        changes per tensor."""
        return torch.frombuffer(
            self.tensor.memory, dtype=self.flat.dtype, count=count,
            offset=first * self.flat.element_size())

    def follow(self, stream):
        """Do nothing: only tensors of a device follow streams (staging.py)."""
        return None

    def view(self, shape):
        if self.shaped.shape != shape:
            self.shaped = self.flat.view(shape)
        return self.shaped


class Job:
    """Hold the attachment of this process to its job."""

    def __init__(self, client):
        self.client = client
        self.rank, self.size = client.rank, client.size
        self.to_finish = set()  # optimizers with postponed updates
        self.new = []  # calls of declare_later() to be declared
        self.changing = []  # calls that compare tags first (ops.Place)
        self.buckets = []  # open ones of allreduce_hook (parallel.py)
        self.stages = {}  # Stages by device; None: the device has no stage
        self.hierarchies = weakref.WeakSet()  # Hierarchy objects
        self.sets = set()  # open Members objects
        self.agreed = set()  # keys that agree() has compared on all ranks
        self.n_bundles = 0  # number of declared bundles
        self.gradients = weakref.WeakValueDictionary()  # by Gradients.what
        self.joins = Joins(self)
        client.idle = self.joins.look

    @functools.cached_property
    def collectives(self):
        """Return the object that calls collectives of groups of ranks."""
        return Calls(self.client)

    @functools.cached_property
    def memory(self):
        """Return the allocator of shared memory outside declared tensors."""
        return Memory(self.client)

    def leave(self):
        """Leave the job.  First finish everything that other ranks may still
        wait for."""
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
        """Declare (name, elements, torch dtype, priority)... in one batch, and
        return a Shared for each."""
        tensors = self.client.declare(
            [(short(name), n, dtype_name(dtype, name), priority)
             for name, n, dtype, priority in descs], is_async)
        return [Shared(self.client, t, d[2]) for t, d in zip(tensors, descs)]

    def declare_later(self, call):
        """Queue a call, to declare call.desc and run call.begin() when a caller
        waits.  A declaration takes a round trip, so new names share one."""
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
        """Start to sum a tensor over all ranks.  step must be equal on
        all ranks; it defaults to the number of pushes so far."""
        step = shared.n_pushes if step is None else step
        shared.client.push(shared.tensor, step)
        shared.n_pushes += 1

    def broadcast(self, shared, root, step=None):
        """Start to replace a tensor by the root's."""
        step = shared.n_pushes if step is None else step
        shared.client.broadcast(shared.tensor, root, step)
        shared.n_pushes += 1

    def progress(self):
        """Advance every call that can continue.  Every wait must call it, because
        ranks may wait for their calls in different orders."""
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
        """Advance calls until is_done() is true, until none of them compares
        tags, or until the time limit of a sum has passed."""
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
    """Return a name of at most 127 bytes; equal names give equal results on all
    ranks."""
    if len(name.encode()) <= 127:
        return name
    # Only parameters of very deep modules have such names; their ends differ.
    import hashlib
    digest = hashlib.sha256(name.encode()).hexdigest()[:16]
    tail = name.encode()[-100:].decode(errors="ignore")
    return f"{digest}..{tail}"


def dtype_name(dtype, what):
    name = DTYPES.get(dtype)
    if name is None:
        raise TypeError(f"sumwire cannot sum '{what}' of {dtype}: convert it to "
                        f"one of {', '.join(str(d) for d in DTYPES)}")
    return name


def current():
    """Return the job of this process.  Raise SumwireError before init()."""
    if _job is None:
        raise SumwireError("SW_ECLOSED", "this process has not joined a job: "
                           "call sumwire.torch.init() first")
    return _job


def init(agent=None, process_sets=None, **more):
    """Join the job through the agent of this machine, and return when all ranks
    have joined.  A second call does nothing.  Raise SumwireError if no agent
    listens, or if ranks are missing after SUMWIRE_OPEN_TIMEOUT seconds (60).

    agent         path of the agent's socket; default $SUMWIRE_AGENT, otherwise
                  agent.sock in the directory where agents put it
    process_sets  a list of ProcessSets to add, equal on all ranks; or "dynamic"
                  as in Horovod, which adds none"""
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
    """Finish all postponed updates, and leave the job.  Gradients in shared
    memory stay readable.  Without a job, do nothing.  The end of the program
    calls it, unless an exception ends the program."""
    global _job
    if _job is not None:
        job, _job = _job, None
        job.leave()


@atexit.register
def end():
    """Leave the job at the end of the program.  If an exception ends the
    program, do not leave: the other ranks then learn at once that this process
    has failed."""
    if getattr(sys, "last_type", None) is None:
        shutdown()


def is_initialized():
    """Return True between init() and shutdown()."""
    return _job is not None


def start_timeline(file_path, mark_cycles=False):
    """Write a Chrome trace of this process's sums to file_path, until
    stop_timeline().  As in Horovod, only rank 0 writes, unless the path contains
    %r, which stands for the rank.  Raise ValueError if a trace is being written.
    mark_cycles changes nothing: sumwire has no cycles."""
    client = current().client
    if client.timeline:
        raise ValueError(f"a timeline is written to {client.timeline.path}: call "
                         f"stop_timeline() first")
    client.trace(timeline.for_rank(file_path, client.rank))


def stop_timeline():
    """Finish the trace of start_timeline(), or of HOROVOD_TIMELINE."""
    current().client.trace(None)


def rank():
    """Return the rank of this process in the job, from 0."""
    return current().rank


def size():
    """Return the number of ranks in the job."""
    return current().size


def local_rank():
    """Return the rank of this process on its machine, from 0, as the launcher
    says.  Without a launcher, return its rank at its agent."""
    return current().client.local_rank


def local_size():
    """Return the number of ranks on this machine, as the launcher says.
    Without a launcher, return the number of ranks at this agent."""
    return current().client.local_size
