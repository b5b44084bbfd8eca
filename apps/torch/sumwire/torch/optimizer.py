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


# Environment variables that turn cross_barrier on.
SWITCHES = ("SUMWIRE_CROSS_BARRIER", "BYTEPS_CROSS_BARRIER")

# The caller that summed the gradients before step(): the user, or a reader of
# param_groups.
ASKED, SEEN = "synchronize()", "param_groups"


def check_names(optimizer, named):
    """Return a list of (name, parameter) for all parameters of the optimizer.
    Raise ValueError if names are missing or not unique."""
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
        raise ValueError(f"{unnamed} parameters of the optimizer are missing in "
                         f"named_parameters: pass the parameters of all its "
                         f"models")
    mine, first = set(all_parameters), {}
    for n, p in named:
        first.setdefault(p, n)  # a tied parameter may have several names
    return [(n, p) for p, n in first.items() if p in mine]


class Distributed:
    """Precede a class of torch.optim as a base class, and give its step() the
    gradients of all ranks."""

    def synchronize(self):
        """Wait until the gradients of this step are averages, or sums, over all
        ranks.  Then the caller may read and change them, and call step() inside
        skip_synchronize().  synchronize() also finishes all updates of the
        previous step."""
        self._sum()
        self._summed = ASKED

    def _sum(self):
        self.finish_updates()
        self._gradients.synchronize()

    @property
    def _parameter_names(self):
        """Return the name of each parameter, as Horovod's attribute does."""
        return {p: slot.name for p, slot in self._gradients.slots.items()}

    @property
    def param_groups(self):
        """Return the parameter groups.  If they are read between backward() and
        step(), the reader wants gradients and may change them, as GradScaler
        does.  Therefore sum the gradients first; step() then uses them
        unchanged."""
        if self._gradients.is_begun and not self._is_updating:
            self._sum()
            self._summed = SEEN
        return self.__dict__["param_groups"]

    @param_groups.setter
    def param_groups(self, groups):
        self.__dict__["param_groups"] = groups

    @contextlib.contextmanager
    def skip_synchronize(self):
        """Let step() use the gradients as they are, inside this context."""
        self._is_to_synchronize = False
        try:
            yield
        finally:
            self._is_to_synchronize = True

    def step(self, closure=None):
        if self._steps is not None:
            self._steps.ended()
        self.finish_updates()
        # If newer gradients have been sent, the earlier sum is stale.
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

    # Keep torch from wrapping it: the class's own step() runs torch's hooks.
    step.hooked = True

    def update_groups(self, groups):
        """Run the class's own step() with these parameter groups."""
        whole = self.__dict__["param_groups"]
        self.param_groups, self._is_updating = groups, True
        try:
            super().step()
        finally:
            self.param_groups, self._is_updating = whole, False

    def finish_updates(self):
        """Do all updates that step() has postponed."""
        if self._crossing is not None:
            self._crossing.finish_all()

    def _has_step_hooks(self):
        """Return True if step hooks are registered. torch 2 calls them once per
        step(), so updates cannot be done one by one."""
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
        """Reset the gradients.  By default they become None in every release of
        torch, which saves a pass over their memory.  Raise RuntimeError while
        gradients are being summed."""
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
        """Set how many times backward() runs before each step().  Call it
        between step() and the next backward()."""
        check_passes(passes)
        self._gradients.set_passes(passes)


def check_passes(passes):
    if not isinstance(passes, int) or passes < 1:
        raise ValueError(f"backward_passes_per_step={passes!r}: expected an int "
                         f"of at least 1")


def can_cross(base):
    """Return True if this class updates each parameter independently."""
    return (f"{base.__module__}.".startswith("torch.optim.") and
            base is not torch.optim.LBFGS)


def choose_crossing(base, wanted, hierarchical):
    """Return the argument cross_barrier; for None, return what the
    environment says, for classes that can."""
    if wanted and hierarchical:
        raise ValueError("cross_barrier=True updates each layer when its sum "
                         "arrives, but hierarchical sums arrive all at once: "
                         "leave one of the two out")
    if wanted and not can_cross(base):
        raise ValueError(
            f"cross_barrier=True: {base.__name__} is not one of torch.optim's "
            f"optimizers that update each parameter by itself: leave "
            f"cross_barrier out; then step() waits for all sums")
    if wanted is None:
        return can_cross(base) and not hierarchical and any(
            os.environ.get(name, "0") not in ("", "0") for name in SWITCHES)
    return wanted


def check_set(is_set, cross_barrier, hierarchical):
    """Raise ValueError for options that an optimizer of a process set does not
    support."""
    if is_set and (cross_barrier or hierarchical):
        raise ValueError("an optimizer with a process_set sums its gradients in "
                         "step(): leave cross_barrier and hierarchical out")


def DistributedOptimizer(optimizer, named_parameters=None,
                         compression=Compression.none,
                         backward_passes_per_step=1, op=ops.Average,
                         sparse_as_dense=False, cross_barrier=None,
                         asynchronous=None, tune=None, hierarchical=None,
                         process_set=None, **more):
    """Return a new optimizer, whose step() uses the gradients of all ranks.

    The new optimizer is an object of a subclass of the optimizer's class.  It
    shares groups and state with the old one; use only the new one.  Its
    backward hooks send gradients as soon as they are ready.  step() waits for
    the sums and raises SumwireError if one failed.  parameter.grad is then in
    shared memory, which the next step overwrites.  All ranks make optimizers
    with the same parameters and options, in the same order.

    named_parameters          model.named_parameters(), for the names in
                              messages
    compression               Compression.none, .fp16, .bf16, or a class derived
                              from Compressor
    backward_passes_per_step  number of backward passes whose gradients are
                              added up before they are sent
    op                        Average or Sum
    sparse_as_dense           sum sparse gradients as dense ones, instead of
                              gathering their indices and values.  SparseAdam
                              gets the sums as sparse gradients
    cross_barrier             False: step() waits for all sums.  True: step()
                              returns at once; each layer is updated when its
                              sum arrives or its next forward needs it.  Until
                              then, access parameters and gradients through
                              modules only, as CrossBarrier says.  None: use
                              SUMWIRE_CROSS_BARRIER or BYTEPS_CROSS_BARRIER, if
                              the optimizer's class allows it; off if neither
                              is set
    asynchronous              True: no rank waits for another.  step() uses this
                              rank's own gradients, adds its changes to the
                              parameters on the servers, and takes those.
                              Needs [job] mode = asynchronous.  None: use
                              BYTEPS_ENABLE_ASYNC
    tune                      True: rank 0 searches for the partition and credit
                              of the job that make its own steps shortest, and
                              prints each decision on stderr.  With several
                              optimizers, the steps of the first one count;
                              asynchronous optimizers are not tuned.  None: use
                              SUMWIRE_TUNE
    hierarchical              True: the ranks of a machine first sum their
                              gradients in a group of torch: "nccl" for CUDA
                              devices, "gloo" for the CPU, or the one that you
                              name instead of True.  Each rank then sums its
                              part with the ranks at the same place on the
                              other machines.  All machines need the same
                              number of ranks.  None: use SUMWIRE_HIERARCHICAL
    process_set               a ProcessSet: only its members sum their gradients,
                              in step(); other ranks step with their own

    Raise ValueError for options that exclude each other, TypeError for anything
    that is no optimizer."""
    refuse(more)
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f"expected a torch.optim.Optimizer, not a "
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
    # A learning rate scheduler may have put its wrapped step() there.
    new.__dict__.pop("step", None)
    new._is_to_synchronize, new._is_updating, new._summed = True, False, None
    new._crossing = None
    new._steps = tuning.steps(tune)
    new._gradients = (SetGradients if is_set else Gradients)(
        named, compression, ops.choose_op(None, op), backward_passes_per_step,
        sparse_as_dense, hierarchical=hierarchical, process_set=process_set,
        is_sparse_only=issubclass(base, torch.optim.SparseAdam))
    if is_crossing:
        new._crossing = Crossing(new._gradients, new)
    return new


def CrossBarrier(model, optimizer, named_parameters=None,
                 compression=Compression.none, backward_passes_per_step=1,
                 num_steps=None, **more):
    """Return DistributedOptimizer(cross_barrier=True), under BytePS's name.

    Use it for scripts that, after step(), access parameters through their
    modules only.  step() returns before the sums arrive.  A layer is updated
    when its next forward begins, or when its parameters are read through the
    module, as state_dict() does.  Before its update, a reference that bypasses
    the module (a list of parameters, a view) behaves differently:

    - Reading returns the parameter before its update, and the gradient of this
      rank alone.  Call optimizer.synchronize() first.
    - Writing causes an error when the update is due; the error names the
      parameter.  Writes through .data, or by a library outside PyTorch, are not
      detected.

    num_steps is accepted for BytePS and ignored.  Other arguments are those of
    DistributedOptimizer."""
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"the first argument must be a torch.nn.Module, not a "
                        f"{type(model).__name__}")
    return DistributedOptimizer(
        optimizer, named_parameters or model.named_parameters(), compression,
        backward_passes_per_step, cross_barrier=True, **more)
