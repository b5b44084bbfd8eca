# asynchronous.py - DistributedOptimizer without waiting for other ranks
# SPDX-License-Identifier: BSD-3-Clause
"""The servers keep the parameters, as in section 5 of BytePS (OSDI'20).  step()
updates the local parameters with this rank's own gradients, pushes the
difference, and takes the servers' parameters, which include the changes of all
ranks.  Shared memory holds the parameters that arrived last.  step() computes
the difference there, so it keeps no other copy."""
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
    """Return the argument asynchronous; for None, return what
    BYTEPS_ENABLE_ASYNC says."""
    if asynchronous is None:
        return os.environ.get("BYTEPS_ENABLE_ASYNC", "0") not in ("", "0")
    return asynchronous


class Asynchronous:
    """Precede a class of torch.optim as a base class."""

    def start(self):
        """Declare all parameters, and give rank 0's to the servers."""
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
        """Replace the parameters by the servers'."""
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

    # Keep torch from wrapping it: the class's own step() runs torch's hooks.
    step.hooked = True

    def synchronize(self):
        """Do nothing: gradients are this rank's own and are not summed."""

    @contextlib.contextmanager
    def skip_synchronize(self):
        yield

    def set_backward_passes_per_step(self, passes):
        """Do nothing: step() uses the gradients of any number of passes."""

    __reduce_ex__ = refuse_copy

    def add_param_group(self, group):
        if self._started:
            raise RuntimeError("cannot add parameters to an asynchronous "
                               "optimizer after its first step(): add them "
                               "before")
        g = len(self.param_groups)
        super().add_param_group(group)
        self._named += trained([(f"group{g}.{i}", p) for i, p in enumerate(
            self.param_groups[g]["params"])])


def trained(named):
    return [(n, p) for n, p in named if p.requires_grad and p.numel()]


def check_options(compression, cross_barrier, hierarchical):
    if compression is not Compression.none:
        raise ValueError("asynchronous=True sends changes in the parameters' "
                         "own dtype: leave compression out")
    if cross_barrier:
        raise ValueError("asynchronous=True waits for no other rank, so it has "
                         "no barrier: leave cross_barrier out")
    if hierarchical:
        raise ValueError("asynchronous=True sends each rank's changes to the "
                         "servers by themselves: leave hierarchical out")


def make(optimizer, named):
    """Return an optimizer of a subclass, which shares groups and state with the
    given one."""
    current().joins.refuse("ranks of an asynchronous job do not wait for each "
                           "other; leave join() out")
    base = optimizer.__class__
    cls = type(base.__name__, (Asynchronous, base), {})
    new = cls.__new__(cls)
    new.__dict__.update(optimizer.__dict__)
    new.__dict__.pop("step", None)  # a learning rate scheduler's wrapper
    new._started = False
    new._named = trained(named)
    return new
