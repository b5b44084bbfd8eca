# asynchronous.py - DistributedOptimizer where nobody waits for others
# SPDX-License-Identifier: BSD-3-Clause
"""BytePS (OSDI'20) section 5: the servers keep the parameters.  step() updates
them here with this rank's own gradients, pushes what changed, and takes what the
servers have by then, with the changes of all.  Shared memory holds what came
last, so the delta is made there and no copy of the parameters is kept."""
import contextlib
import itertools
import os

import torch

from sumwire.torch.channel import agree, describe
from sumwire.torch.compression import Compression
from sumwire.torch.job import current
from sumwire.torch.unsupported import refuse_copy

_n_sets = itertools.count()


def is_asked_for(asynchronous):
    """The argument; without one, BytePS's variable."""
    if asynchronous is None:
        return os.environ.get("BYTEPS_ENABLE_ASYNC", "0") not in ("", "0")
    return asynchronous


class Asynchronous:
    """Goes before a class of torch.optim."""

    def start(self):
        """Declare all parameters; the servers keep rank 0's."""
        self._started = True
        agree("the parameters of an asynchronous optimizer",
              {n: describe(p) for n, p in self._named})
        what = f"async{next(_n_sets)}"
        self._kept = list(zip(
            (p for _, p in self._named),
            current().declare([(f"{what}.{n}", p.numel(), p.dtype, i)
                               for i, (n, p) in enumerate(self._named)],
                              is_async=True)))
        self._views = [shared.flat.as_strided(p.shape,
                                              torch.empty_like(p).stride())
                       for p, shared in self._kept]
        with torch.no_grad():
            for (p, shared), view in zip(self._kept, self._views):
                view.copy_(p)
                current().broadcast(shared, 0)
            self.take_all()

    def take_all(self):
        """The parameters become what the servers have."""
        for (p, shared), view in zip(self._kept, self._views):
            current().wait(shared)
            p.copy_(view)

    def step(self, closure=None):
        if not self._started:
            self.start()
        loss = super().step(closure)
        with torch.no_grad():
            for (p, shared), view in zip(self._kept, self._views):
                if p.is_cuda:
                    view.copy_(p.cpu().sub_(view))
                else:
                    torch.sub(p, view, out=view)
                current().push(shared)
            self.take_all()
        return loss

    # torch would wrap it again: the class's own step has torch's hooks.
    step.hooked = True

    def synchronize(self):
        """Gradients are this rank's own: there is nothing to wait for."""

    @contextlib.contextmanager
    def skip_synchronize(self):
        yield

    def set_backward_passes_per_step(self, passes):
        """step() takes what backward() has added up, however often."""

    __reduce_ex__ = refuse_copy

    def add_param_group(self, group):
        if self._started:
            raise RuntimeError("an asynchronous optimizer takes no more "
                               "parameters after its first step()")
        g = len(self.param_groups)
        super().add_param_group(group)
        self._named += trained([(f"group{g}.{i}", p) for i, p in enumerate(
            self.param_groups[g]["params"])])


def trained(named):
    return [(n, p) for n, p in named if p.requires_grad and p.numel()]


def check_options(compression, cross_barrier, hierarchical):
    if compression is not Compression.none:
        raise ValueError("asynchronous=True: deltas travel in the parameters' "
                         "own type; leave compression out")
    if cross_barrier:
        raise ValueError("asynchronous=True waits for no other rank, so "
                         "there is no barrier to cross; leave cross_barrier "
                         "out")
    if hierarchical:
        raise ValueError("asynchronous=True: the servers keep what each rank "
                         "changes; leave hierarchical out")


def make(optimizer, named):
    """A new object of a subclass, which shares groups and state."""
    current().joins.refuse("an asynchronous job has no end that ranks wait for")
    base = optimizer.__class__
    cls = type(base.__name__, (Asynchronous, base), {})
    new = cls.__new__(cls)
    new.__dict__.update(optimizer.__dict__)
    new.__dict__.pop("step", None)  # of a learning rate scheduler
    new._started = False
    new._named = trained(named)
    return new
