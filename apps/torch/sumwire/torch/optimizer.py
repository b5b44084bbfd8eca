# optimizer.py - DistributedOptimizer: step() with the gradients of all ranks
# SPDX-License-Identifier: BSD-3-Clause
import contextlib
import os
import warnings

import torch

from sumwire.distributed.local import asked_for
from sumwire.torch import asynchronous as asynchronous_step
from sumwire.torch import ops, tuning
from sumwire.torch.channel import is_global
from sumwire.torch.compression import Compression
from sumwire.torch.crossing import Crossing
from sumwire.torch.gradients import Gradients
from sumwire.torch.set_gradients import SetGradients
from sumwire.torch.unsupported import refuse, refuse_copy


# Variables that ask for cross_barrier.
SWITCHES = ("SUMWIRE_CROSS_BARRIER", "BYTEPS_CROSS_BARRIER")

# Who has summed the gradients before step(): the user, or a look at them.
ASKED, SEEN = "synchronize()", "param_groups"


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
        raise ValueError(f"names must be unique; used twice: "
                         f"{', '.join(twice)}")
    unnamed = len(set(all_parameters) - {p for _, p in named})
    if unnamed:
        raise ValueError(f"{unnamed} parameters of the optimizer are not in "
                         f"named_parameters: pass those of all its models")
    mine, first = set(all_parameters), {}
    for n, p in named:
        first.setdefault(p, n)  # one that is tied may have several names
    return [(n, p) for p, n in first.items() if p in mine]


class Distributed:
    """Goes before a class of torch.optim and gives its step the gradients of
    all ranks."""

    def synchronize(self):
        """Wait until the gradients of this step are averages over all ranks;
        then they may be read and changed, and step() be called inside
        skip_synchronize().  Also ends all updates of the step before."""
        self._sum()
        self._summed = ASKED

    def _sum(self):
        self.finish_updates()
        self._gradients.synchronize()

    @property
    def _parameter_names(self):
        """Horovod's: the name of each parameter."""
        return {p: slot.name for p, slot in self._gradients.slots.items()}

    @property
    def param_groups(self):
        """Who looks here between backward() and step() looks for gradients, as
        GradScaler does, which changes them unseen: so they are sums then, and
        step() takes them as they are."""
        if self._gradients.is_begun and not self._is_updating:
            self._sum()
            self._summed = SEEN
        return self.__dict__["param_groups"]

    @param_groups.setter
    def param_groups(self, groups):
        self.__dict__["param_groups"] = groups

    @contextlib.contextmanager
    def skip_synchronize(self):
        """Inside, step() uses the gradients as they are."""
        self._is_to_synchronize = False
        try:
            yield
        finally:
            self._is_to_synchronize = True

    def step(self, closure=None):
        if self._steps is not None:
            self._steps.ended()
        self.finish_updates()
        # Gradients that are newer count, not those.
        summed = None if self._gradients.is_begun else self._summed
        self._summed = None
        if not self._is_to_synchronize or (summed is SEEN and closure is None):
            return super().step(closure)
        if closure is not None:
            return super().step(self._summing(closure))
        if summed is ASKED:
            warnings.warn("optimizer.step() called without "
                          "optimizer.skip_synchronize() after "
                          "optimizer.synchronize(): the gradients are summed a "
                          "second time", stacklevel=2)
        self._check_frozen()
        if self._crossing is None or self._has_step_hooks() or \
                self._gradients.sparse:
            self._gradients.synchronize()
            return super().step()
        self._gradients.push_missing()
        self._crossing.watch(self._gradients.order.new_modules())
        self._crossing.begin(self.__dict__["param_groups"])
        return None

    # torch would wrap it again: the class's own step has torch's hooks.
    step.hooked = True

    def update_groups(self, groups):
        """The class's own step, with these groups."""
        whole = self.__dict__["param_groups"]
        self.param_groups, self._is_updating = groups, True
        try:
            super().step()
        finally:
            self.param_groups, self._is_updating = whole, False

    def finish_updates(self):
        """Do all updates that step() has left to be done."""
        if self._crossing is not None:
            self._crossing.finish_all()

    def _has_step_hooks(self):
        """Hooks of torch 2 expect one call a step."""
        return (getattr(self, "_optimizer_step_pre_hooks", None) or
                getattr(self, "_optimizer_step_post_hooks", None))

    def _summing(self, closure):
        def compute():
            with torch.enable_grad():
                loss = closure()
            self._sum()
            return loss
        return compute

    def _check_frozen(self):
        slots = self._gradients.slots
        for group in self.__dict__["param_groups"]:
            for p in group["params"]:
                if p.grad is not None and p not in slots and p.numel():
                    raise RuntimeError(
                        f"a parameter of shape {tuple(p.shape)} has a "
                        f"gradient, but had requires_grad=False when "
                        f"DistributedOptimizer was created: create it again")

    def zero_grad(self, set_to_none=True):
        """Forget the gradients.  By default they become None in every release
        of torch, which saves a pass over their memory."""
        if any(s.late is None for s in self._gradients.open_slots()):
            raise RuntimeError("zero_grad() between backward() and step() "
                               "would lose gradients that are being summed: "
                               "call step() or synchronize() first")
        self._summed = None
        super().zero_grad(set_to_none=set_to_none)

    def state_dict(self):
        self.finish_updates()
        return super().state_dict()

    def load_state_dict(self, state_dict):
        self.finish_updates()
        super().load_state_dict(state_dict)

    def add_param_group(self, group):
        super().add_param_group(group)
        g = len(self.param_groups) - 1
        self._gradients.add([
            (f"group{g}.{i}", p)
            for i, p in enumerate(self.param_groups[g]["params"])])

    __reduce_ex__ = refuse_copy

    def set_backward_passes_per_step(self, passes):
        """How often backward() is called before step()."""
        check_passes(passes)
        self._gradients.set_passes(passes)


def check_passes(passes):
    if not isinstance(passes, int) or passes < 1:
        raise ValueError(f"backward_passes_per_step={passes!r}: a number of at "
                         f"least 1 was expected")


def can_cross(base):
    """Does this class update each parameter by itself?"""
    return (f"{base.__module__}.".startswith("torch.optim.") and
            base is not torch.optim.LBFGS)


def choose_crossing(base, wanted, hierarchical):
    """The argument; without one, the variables, for who can."""
    if wanted and hierarchical:
        raise ValueError("cross_barrier=True updates layers as their sums come "
                         "back, which hierarchical sums do all at once: leave "
                         "one of the two out")
    if wanted and not can_cross(base):
        raise ValueError(
            f"cross_barrier=True: {base.__name__} is not one of torch.optim's "
            f"optimizers that update each parameter by itself; leave "
            f"cross_barrier out, and step() waits for all sums")
    if wanted is None:
        return can_cross(base) and not hierarchical and any(
            os.environ.get(name, "0") not in ("", "0") for name in SWITCHES)
    return wanted


def check_set(is_set, cross_barrier, hierarchical):
    """Raise an error for what an optimizer of a process set cannot do."""
    if is_set and (cross_barrier or hierarchical):
        raise ValueError("process_set: its gradients are summed in step(), after "
                         "the barrier and not machine by machine; leave "
                         "cross_barrier and hierarchical out")


def DistributedOptimizer(optimizer, named_parameters=None,
                         compression=Compression.none,
                         backward_passes_per_step=1, op=ops.Average,
                         sparse_as_dense=False, cross_barrier=None,
                         asynchronous=None, tune=None, hierarchical=None,
                         process_set=None, **more):
    """The optimizer, stepping with the gradients of all ranks.

    It is a new object of a subclass of the optimizer's class which shares
    groups and state with it: use only the new one.

    named_parameters          model.named_parameters(): the names in messages
    compression               Compression.none, .fp16, .bf16, or a class derived
                              from Compressor
    backward_passes_per_step  gradients are added up over that many backward
                              passes before they are sent
    op                        Average or Sum
    sparse_as_dense           make sparse gradients dense instead of gathering
                              their indices and values
    cross_barrier             False: step() waits for all sums.  True: it
                              returns at once, and a layer is updated when its
                              sum is there or its next forward needs it; until
                              then parameters and gradients may only be read
                              and written through modules, as CrossBarrier
                              says.  None: as SUMWIRE_CROSS_BARRIER or
                              BYTEPS_CROSS_BARRIER say, where it can be; off
                              if neither is set
    asynchronous              True: nobody waits for others.  step() uses this
                              rank's own gradients, adds what it changed to the
                              parameters that the servers keep, and takes those.
                              In a job of [job] mode asynchronous only.  None:
                              as BYTEPS_ENABLE_ASYNC says
    tune                      True: rank 0 searches for the partition and credit
                              of the job with which steps are shortest, by the
                              time of its own, and says on stderr what it
                              decides.  Of several optimizers the first one's
                              steps count; asynchronous ones have none.  None:
                              as SUMWIRE_TUNE says
    hierarchical              True: the ranks of a machine first add up their
                              gradients among themselves, by a group of torch's
                              own: "nccl" for CUDA devices, "gloo" for the CPU;
                              one of these names: by that.  Each then sums its
                              part with those of its place on the other
                              machines.  All machines have the same number of
                              ranks.  None: as SUMWIRE_HIERARCHICAL says
    process_set               a ProcessSet: only its members sum their gradients,
                              in step(); other ranks step with their own
    """
    refuse(more)
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f"an optimizer of torch.optim, or of a subclass of its "
                        f"Optimizer, is needed, not a "
                        f"{type(optimizer).__name__}")
    if isinstance(optimizer, (Distributed, asynchronous_step.Asynchronous)):
        raise ValueError("the optimizer is already distributed")
    check_passes(backward_passes_per_step)
    named = check_names(optimizer, named_parameters)
    if asynchronous_step.is_asked_for(asynchronous):
        asynchronous_step.check_options(compression, cross_barrier,
                                        hierarchical)
        return asynchronous_step.make(optimizer, named)
    base = optimizer.__class__
    hierarchical = asked_for(hierarchical)
    is_set = not is_global(process_set)
    check_set(is_set, cross_barrier, hierarchical)
    is_crossing = not is_set and choose_crossing(base, cross_barrier,
                                                 hierarchical)
    cls = type(base.__name__, (Distributed, base), {})
    new = cls.__new__(cls)
    new.__dict__.update(optimizer.__dict__)
    # A learning rate scheduler may have put its own step there.
    new.__dict__.pop("step", None)
    new._is_to_synchronize, new._is_updating, new._summed = True, False, None
    new._crossing = None
    new._steps = tuning.steps(tune)
    new._gradients = (SetGradients if is_set else Gradients)(
        named, compression, ops.choose_op(None, op), backward_passes_per_step,
        sparse_as_dense, hierarchical=hierarchical, process_set=process_set)
    if is_crossing:
        new._crossing = Crossing(new._gradients, new)
    return new


def CrossBarrier(model, optimizer, named_parameters=None,
                 compression=Compression.none, backward_passes_per_step=1,
                 num_steps=None, **more):
    """For scripts that reach parameters through their modules only, after step().

    BytePS's name for DistributedOptimizer(cross_barrier=True).  step() returns
    before the sums are there; a layer is updated when its next forward begins,
    or when somebody looks at it through its module, as state_dict() does.
    Through a reference that was kept (a list of parameters, views of them)
    until then

    - reading gives the parameter before its update, and the gradient of this
      rank alone: call optimizer.synchronize() before;
    - writing is an error that names the parameter, when its update is due; but
      what is written through .data, or by a library past PyTorch, is not seen.

    num_steps is BytePS's; it is not needed.  Other arguments are those of
    DistributedOptimizer."""
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"a torch.nn.Module is needed first, not a "
                        f"{type(model).__name__}")
    return DistributedOptimizer(
        optimizer, named_parameters or model.named_parameters(), compression,
        backward_passes_per_step, cross_barrier=True, **more)
