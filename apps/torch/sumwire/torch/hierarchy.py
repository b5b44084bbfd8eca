# hierarchy.py - gradients summed on each machine first, then between machines
# SPDX-License-Identifier: BSD-3-Clause
"""Each bundle is reduce-scattered among the ranks of a machine, by torch's group;
each rank sums its part with the ranks of its place on the other machines, by
sumwire; then the machine's ranks gather the parts (distributed/local.py).

All ranks do all of that in one order, whichever gradients they have first: the
bundles of a model from the last used to the first, as backward() makes them, each
after those before it; what a step leaves out, all leave out.  When sums come
back differs from rank to rank, so the gathers begin when step() waits, after the
last bundle of the step was scattered.  Nothing waits for what comes later in
this order, so nothing waits in a circle.

With NCCL and a device whose streams can wait all of that is on two streams: the
current stream then waits for it, not the thread, which waits in step() for the
sums of the step before (sums.StreamSums)."""
import hashlib

import torch

from sumwire.client import SumwireError
from sumwire.distributed import agents, local, sums
from sumwire.torch.channel import broadcast_json, channel
from sumwire.torch.job import dtype_name
from sumwire.torch.staging import find_stage


class Parted:
    """A bundle's memory; as job.Shared.  is_pushed: it is filled in, and its sum
    not there; mark: of a device, behind that it is."""
    __slots__ = ("client", "name", "flat", "n_pushes", "is_pushed", "mark")

    def __init__(self, client, name, flat):
        self.client, self.name, self.flat = client, name, flat
        self.n_pushes, self.is_pushed, self.mark = 0, False, None

    @property
    def tensor(self):
        return self

    def part(self, first, count):
        """Some elements, a tensor by itself: .data counts its own changes."""
        return self.flat[first:first + count].data

    def follow(self, stream):
        device = self.client.sums.device
        return device and device.follow(stream)


class Hierarchy:
    """The bundles of a set of gradients.  Calls have the names of a client's."""

    def __init__(self, job, place, machine, cross, stage):
        self.job, self.place = job, place
        self.sums = sums.make(job.collectives, machine, cross, place, stage,
                              self.look, go_on=self.go_on)
        job.hierarchies.add(self)
        self.order = []  # Parted
        self.n_begun = 0  # of them, in this step
        self.error = None

    def make(self, descs):
        """Declare (name, elements, torch dtype, priority)..., in the order of
        use.  Between ranks nothing has a name: it goes by the order."""
        made = [Parted(self, name, self.memory(
            self.sums.local.padded(n), dtype_name(dtype, name) and dtype))
            for name, n, dtype, _ in descs]
        self.order += reversed(made)
        return made

    def memory(self, n, dtype):
        """Zeros; of the CPU, where the agent reads and writes."""
        if self.place.type == "cpu":
            block = self.job.memory.block(
                n * torch.empty(0, dtype=dtype).element_size())
            if block is not None:
                return torch.frombuffer(block, dtype=dtype, count=n).zero_()
        return torch.zeros(n, dtype=dtype, device=self.place)

    def push(self, parted, step):
        """It is filled in: begin what can begin."""
        parted.mark = self.sums.stream.mark()
        with self:
            parted.is_pushed = True
            self.begin(lambda each: each.is_pushed)
            self.sums.move()

    def is_done(self, parted):
        """Nobody needs to wait for a time to call wait()."""
        return True

    def wait(self, parted):
        """With the first of a step all of it ends."""
        if not parted.is_pushed:
            return
        with self:
            self.begin(lambda each: True)
            self.sums.finish()
            self.n_begun = 0
            for each in self.order:
                each.is_pushed = False

    def settle(self):
        """At the end of the job: how the last step went."""
        if not self.error:
            with self:
                self.sums.settle()

    def begin(self, is_next):
        """Those that were pushed, up to the first that is not next."""
        while (self.n_begun < len(self.order) and
               is_next(self.order[self.n_begun])):
            each = self.order[self.n_begun]
            self.n_begun += 1
            if each.is_pushed:
                self.sums.begin(each.flat, each.mark)

    def look(self):
        """What can go on does; and has the job failed?"""
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
    """An error at all ranks if one has a problem, in words."""
    have = channel().gather(int(problem is not None))
    if any(have):
        who = have.index(1)
        raise SumwireError("SW_EREFUSED", f"hierarchical: rank {who}: "
                           f"{broadcast_json(problem, who)}")


def problem_of(call):
    """(what it returns, None), or (None, why not)."""
    try:
        return call(), None
    except (OSError, RuntimeError, ValueError) as e:
        return None, str(e).partition("\n")[0]


def find(job, what, parameters, wanted):
    """A Hierarchy; None where each machine has one rank, to which it is the
    same.  All ranks call it."""
    digest = hashlib.sha256(agents.machine().encode()).digest()[:7]
    here, across = local.lay_out(
        channel().gather(int.from_bytes(digest, "little")), job.rank)
    if len(here) == 1:
        return None
    places = {p.device for p in parameters}
    place = next(iter(places))
    kind, problem = problem_of(lambda: local.choose_backend(wanted, place))
    if len(places) > 1:
        problem = "its parameters are not all of one device"
    refuse_together(problem)
    stage = find_stage(job, parameters)
    refuse_together("its device has no pinned memory" if place.type == "cuda"
                    and stage is None else None)
    machine = meet(job, kind, here)
    cross = job.collectives.group(
        f"{what}.place{here.index(job.rank)}", across,
        machine.limit_s) if len(across) > 1 else None
    return Hierarchy(job, place, machine, cross, stage)


def meet(job, kind, here):
    """The group of this machine's ranks."""
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
