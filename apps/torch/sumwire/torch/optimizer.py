# optimizer.py - DistributedOptimizer: step() with the gradients of all workers
# SPDX-License-Identifier: BSD-3-Clause
import contextlib

import torch

from sumwire.torch import ops
from sumwire.torch.compression import Compression
from sumwire.torch.gradients import Gradients


def check_names(optimizer, named):
    """A list of (name, parameter) for all parameters of the optimizer."""
    groups = optimizer.param_groups
    all_parameters = [p for g in groups for p in g["params"]]
    if named is None:
        return [(f"unnamed.{i}", p) for i, p in enumerate(all_parameters)]
    named = list(named)
    if any(not (isinstance(n, tuple) and len(n) == 2) for n in named):
        raise ValueError("named_parameters must be pairs of name and "
                         "parameter, as from model.named_parameters()")
    names = [n for n, _ in named]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise ValueError(f"names must be used once; used twice: "
                         f"{', '.join(twice)}")
    unnamed = len(set(all_parameters) - {p for _, p in named})
    if unnamed:
        raise ValueError(f"{unnamed} parameters of the optimizer are not in "
                         f"named_parameters: give those of all its models")
    mine = set(all_parameters)
    return [(n, p) for n, p in named if p in mine]


class Distributed:
    """Goes before a class of torch.optim and gives its step the gradients of
    all workers."""

    def synchronize(self):
        """Wait until the gradients of this step are averages over all workers;
        then they may be read and changed, and step() be called inside
        skip_synchronize()."""
        self._gradients.synchronize()

    @contextlib.contextmanager
    def skip_synchronize(self):
        """Inside, step() uses the gradients as they are."""
        self._is_to_synchronize = False
        try:
            yield
        finally:
            self._is_to_synchronize = True

    def step(self, closure=None):
        if not self._is_to_synchronize:
            return super().step(closure)
        if closure is not None:
            return super().step(self._summing(closure))
        self._check_frozen()
        self.synchronize()
        return super().step()

    # torch would wrap it again: the class's own step has torch's hooks.
    step.hooked = True

    def _summing(self, closure):
        def compute():
            with torch.enable_grad():
                loss = closure()
            self.synchronize()
            return loss
        return compute

    def _check_frozen(self):
        slots = self._gradients.slots
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None and p not in slots and p.numel():
                    raise RuntimeError(
                        f"a parameter of shape {tuple(p.shape)} has a "
                        f"gradient, but had requires_grad=False when "
                        f"DistributedOptimizer was made: make that again")

    def zero_grad(self, set_to_none=True):
        """Forget the gradients.  By default they become None in every release
        of torch, which saves a pass over their memory."""
        if self._gradients.open_slots():
            raise RuntimeError("zero_grad() between backward() and step() "
                               "would lose gradients that are being summed: "
                               "call step() or synchronize() first")
        super().zero_grad(set_to_none=set_to_none)

    def add_param_group(self, group):
        super().add_param_group(group)
        if hasattr(self, "_gradients"):
            g = len(self.param_groups) - 1
            self._gradients.add([
                (f"group{g}.{i}", p)
                for i, p in enumerate(self.param_groups[g]["params"])])

    def set_backward_passes_per_step(self, passes):
        """How often backward() is called before step()."""
        check_passes(passes)
        self._gradients.set_passes(passes)


def check_passes(passes):
    if not isinstance(passes, int) or passes < 1:
        raise ValueError(f"backward_passes_per_step={passes!r}: a number of at "
                         f"least 1 was expected")


def DistributedOptimizer(optimizer, named_parameters=None,
                         compression=Compression.none,
                         backward_passes_per_step=1, op=ops.Average,
                         sparse_as_dense=False):
    """The optimizer, stepping with the gradients of all workers.

    It is a new object of a subclass of the optimizer's class which shares
    groups and state with it: use only the new one.

    named_parameters          model.named_parameters(): the names in messages
    compression               Compression.none, .fp16 or .bf16
    backward_passes_per_step  gradients are added up over that many backward
                              passes before they are sent
    op                        Average or Sum
    sparse_as_dense           make sparse gradients dense instead of refusing
    """
    if isinstance(optimizer, Distributed):
        raise ValueError("the optimizer is distributed already")
    check_passes(backward_passes_per_step)
    named = check_names(optimizer, named_parameters)
    base = optimizer.__class__
    cls = type(base.__name__, (Distributed, base), {})
    new = cls.__new__(cls)
    new.__dict__.update(optimizer.__dict__)
    # A learning rate scheduler may have put its own step there.
    new.__dict__.pop("step", None)
    new._is_to_synchronize = True
    new._gradients = Gradients(named, compression, ops.choose_op(None, op),
                               backward_passes_per_step, sparse_as_dense)
    return new
