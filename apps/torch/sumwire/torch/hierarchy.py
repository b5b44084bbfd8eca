# hierarchy.py - gradients summed on each machine first, then between machines
# SPDX-License-Identifier: BSD-3-Clause
"""The ranks of a machine reduce-scatter each bundle with a group of torch.
Each rank sums its part, by sumwire, with the ranks at its place on the other
machines.  Then the ranks of a machine gather the parts (distributed/local.py).

All ranks do this in one order, even if their gradients are computed in
different orders: from the last used bundle of a model to the first, as
backward() computes them.  If a step leaves a bundle out, all ranks leave it
out.  Sums return at different times on different ranks, so the gathers begin
when step() waits, after the last bundle of the step was scattered.  No
operation waits for a later one in this order, so there is no deadlock.

With NCCL, and a device whose streams can wait, two streams do all of it.  Then
the current stream waits, and the thread waits in step() only for the sums of
the previous step (sums.StreamSums)."""
import hashlib
import time

import torch

from sumwire.client import SumwireError
from sumwire.distributed import agents, local, sums
from sumwire.torch.channel import broadcast_json, channel
from sumwire.torch.job import dtype_name
from sumwire.torch.staging import find_stage


class Parted:
    """Hold a bundle's memory, with the interface of job.Shared.  is_pushed: it
    is filled in, and its sum has not arrived; mark: mark of the stream that has
    filled it in; sum: its last sums.Sum; copies: those that a trace lacks."""
    __slots__ = ("client", "name", "flat", "n_pushes", "is_pushed", "mark", "sum",
                 "copies")

    def __init__(self, client, name, flat):
        self.client, self.name, self.flat = client, name, flat
        self.n_pushes, self.is_pushed, self.mark = 0, False, None
        self.sum, self.copies = None, []

    @property
    def tensor(self):
        return self

    def part(self, first, count):
        """Return some elements as a tensor of its own: .data counts its changes
        separately."""
        return self.flat[first:first + count].data

    def follow(self, stream):
        device = self.client.sums.device
        return device and device.follow(stream)


class Hierarchy:
    """Sum the bundles of a set of gradients.  Methods have the names of a
    client's.  is_traced: at the last push, did a trace want copies made here?
    Those of a device libsumwire itself notes."""
    is_traced = 0

    def __init__(self, job, place, machine, cross, stage):
        self.job, self.place = job, place
        self.sums = sums.make(job.collectives, machine, cross, place, stage,
                              self.look, go_on=self.go_on)
        job.hierarchies.add(self)
        self.order = []  # Parted bundles, in the order of their sums
        self.n_begun = 0  # number of bundles passed in this step
        self.error = None

    def make(self, descs):
        """Declare (name, elements, torch dtype, priority)..., in the order of
        use.  Ranks match bundles by their order; the names are local."""
        made = [Parted(self, name, self.memory(
            self.sums.local.padded(n), dtype_name(dtype, name) and dtype))
            for name, n, dtype, _ in descs]
        self.order += reversed(made)
        return made

    def memory(self, n, dtype):
        """Return zeros.  On the CPU they lie in memory that the agent shares,
        if it has room."""
        if self.place.type == "cpu":
            block = self.job.memory.block(
                n * torch.empty(0, dtype=dtype).element_size())
            if block is not None:
                return torch.frombuffer(block, dtype=dtype, count=n).zero_()
        return torch.zeros(n, dtype=dtype, device=self.place)

    def push(self, parted, step):
        """Note that a bundle is filled in, and begin all sums that can
        begin."""
        client = self.job.client
        self.is_traced = not self.sums.device and client.lib.sw_is_traced(client.pointer)
        parted.mark = self.sums.stream.mark()
        with self:
            parted.is_pushed = True
            self.begin(lambda each: each.is_pushed)
            self.sums.move()

    def is_done(self, parted):
        """Return True: wait() may be called at any time."""
        return True

    def wait(self, parted):
        """Wait for all sums of the step, with the step's first wait()."""
        if not parted.is_pushed:
            return
        with self:
            self.begin(lambda each: True)
            self.sums.finish()
            self.n_begun = 0
            for each in self.order:
                each.is_pushed = False
                self.note(each)

    def copied(self, parted, is_out, began_ns, n_bytes=None):
        """Note for a trace that a copy of a bundle, or of n_bytes of it, ends
        now."""
        parted.copies.append((is_out, began_ns, time.monotonic_ns(),
                              n_bytes or parted.flat.nbytes))
        if is_out:
            self.note(parted)

    def note(self, parted):
        """Give a bundle's copies to the call of its sum between machines."""
        copies, parted.copies = parted.copies, []
        if copies and parted.sum and parted.sum.call:
            self.job.collectives.note_copies(
                [(parted.sum.call, *copy) for copy in copies])

    def settle(self):
        """Wait for the last step at the end of the job, and raise its error."""
        if not self.error:
            with self:
                self.sums.settle()

    def begin(self, is_next):
        """Begin the sums of pushed bundles in order, up to the first bundle for
        which is_next is false."""
        while (self.n_begun < len(self.order) and
               is_next(self.order[self.n_begun])):
            each = self.order[self.n_begun]
            self.n_begun += 1
            if each.is_pushed:
                each.sum = self.sums.begin(each.flat, each.mark)

    def look(self):
        """Advance the job's calls, and raise an error if the job has failed."""
        self.job.progress()
        self.job.client.check()

    def go_on(self, is_done):
        if self.job.new or self.job.changing:
            self.job.progress_until(is_done)

    def __enter__(self):
        if self.error:
            raise self.error

    def __exit__(self, kind, error, trace):
        if error is not None:
            self.error = self.sums.fail(error, self.job.rank)


def refuse_together(problem):
    """Raise SumwireError at all ranks if one rank has a problem, given in
    words. """
    have = channel().gather(int(problem is not None))
    if any(have):
        who = have.index(1)
        raise SumwireError("SW_EREFUSED", f"hierarchical: rank {who}: "
                           f"{broadcast_json(problem, who)}")


def problem_of(call):
    """Return (result of call(), None), or (None, first line of its error)."""
    try:
        return call(), None
    except (OSError, RuntimeError, ValueError) as e:
        return None, str(e).partition("\n")[0]


def find(job, what, parameters, wanted):
    """Return a Hierarchy, or None if each machine has one rank.  All ranks call
    it."""
    digest = hashlib.sha256(agents.machine().encode()).digest()[:7]
    here, across = local.lay_out(
        channel().gather(int.from_bytes(digest, "little")), job.rank)
    if len(here) == 1:
        return None
    places = {p.device for p in parameters}
    place = next(iter(places))
    kind, problem = problem_of(lambda: local.choose_backend(wanted, place))
    if len(places) > 1:
        problem = "its parameters are on several devices: move them to one"
    refuse_together(problem)
    stage = find_stage(job, parameters)
    refuse_together("it has no pinned memory for its device"
                    if place.type == "cuda" and stage is None else None)
    machine = meet(job, kind, here)
    cross = job.collectives.group(
        f"{what}.place{here.index(job.rank)}", across,
        machine.limit_s) if len(across) > 1 else None
    return Hierarchy(job, place, machine, cross, stage)


def meet(job, kind, here):
    """Return the Local of this machine's ranks."""
    me, limit_s = here.index(job.rank), job.client.wait_timeout_s
    bell = local.Bell()
    numbers = channel().gather(bell.number)
    bell.meet(job.rank, {r: numbers[r] for r in here})
    store, problem = problem_of(lambda: local.store_of(0, True, limit_s)
                                if me == 0 else None)
    refuse_together(problem)
    port = channel().gather(store.port if me == 0 else 0)[here[0]]
    machine, problem = problem_of(lambda: local.Local(
        kind, store or local.store_of(port, False, limit_s), me, len(here),
        limit_s, bell))
    refuse_together(problem)
    return machine
