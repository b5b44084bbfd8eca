# crossing.py - cross the barrier: step() returns before the sums arrive
# SPDX-License-Identifier: BSD-3-Clause
"""This module implements section 3.4 of ByteScheduler (SOSP'19), for optimizers
that update each parameter independently.

step() copies the options of all groups, because a scheduler may change them
before the sums arrive, and returns.  A bundle of parameters is updated when one
of them is needed: before the forward of a module that owns it, or when it is
read through a module.  A thread that must wait updates bundles whose sums have
arrived.  The update is the optimizer's own step() for these parameters."""
import weakref

import torch
from torch.nn.modules import module as nn_module


class Watched(dict):
    """Replace a module's _parameters.  Reading a parameter updates it first."""
    __slots__ = ("crossings",)

    def __getitem__(self, name):
        p = dict.__getitem__(self, name)
        for crossing in self.crossings:
            me = crossing()
            if me is not None and me.late:
                me.need(p)
        return p

    def get(self, name, default=None):
        return self[name] if name in self else default

    def values(self):
        self.need_all()
        return dict.values(self)

    def items(self):
        self.need_all()
        return dict.items(self)

    def copy(self):
        return dict(self.items())

    def need_all(self):
        for name in self:
            self[name]

    def __reduce_ex__(self, protocol):
        """Copy and pickle as an ordinary dict."""
        return dict, (list(self.items()),)


def uncompiled(function):
    """Exclude a function from torch.compile, which would compile updates into
    the model and round differently."""
    compiler = getattr(torch, "compiler", None)  # since PyTorch 2.1
    return compiler.disable(function) if compiler else function


def before_forward_of(crossing):
    """Return the hook.  It keeps nothing alive, and torch may call it after the
    Crossing has been destroyed."""
    def before_forward(module, _):
        me = crossing()
        if me is not None and me.late:
            me.before_forward(module)
    return uncompiled(before_forward)


def state_of(parameter):
    """Return a value that changes when a parameter is written."""
    return parameter._version, parameter.data_ptr()


def check_untouched(slot):
    """Raise RuntimeError if a parameter was written between step() and its
    update, because the update would change a value that the script has set."""
    if slot.late is not None and slot.seen != state_of(slot.parameter):
        raise RuntimeError(
            f"'{slot.name}' was written between step() and its update, "
            f"without a call of its module: call optimizer.synchronize() before "
            f"you write it, or train without cross_barrier")


class Crossing:
    """Hold the postponed updates of an optimizer, which owns this object.
    While there are postponed updates, the job keeps the optimizer alive."""

    def __init__(self, gradients, optimizer):
        self.gradients = gradients
        self.optimizer = weakref.ref(optimizer)
        self.late = {}  # keys: bundles to update, in the order of use
        # A global hook, so that copies and pickles of modules contain no hook.
        hook = nn_module.register_module_forward_pre_hook(
            before_forward_of(weakref.ref(self)))
        weakref.finalize(self, hook.remove)

    def watch(self, modules):
        """Watch the parameters of modules seen in a forward pass.  Updates of
        watched parameters can be postponed."""
        me = weakref.ref(self)
        for module in modules:
            watched = module._parameters
            if not isinstance(watched, Watched):
                watched = module._parameters = Watched(watched)
                watched.crossings = ()
            watched.crossings += (me,)
            for slot in self.slots_of(module):
                slot.is_watched = True

    def slots_of(self, module):
        """Return the slots of the module's own parameters."""
        found = map(self.gradients.slots.get, dict.values(module._parameters))
        return [s for s in found if s is not None]

    def before_forward(self, module):
        """Update the parameters that the module is about to use, all at
        once."""
        self.update([s.bundle for s in self.slots_of(module)
                     if s.bundle in self.late])

    def need(self, parameter):
        slot = self.gradients.slots.get(parameter)
        if slot is not None and slot.bundle in self.late:
            self.update([slot.bundle])

    def begin(self, param_groups):
        """Begin a step after all gradients were pushed.  Update bundles with
        unwatched parameters at once."""
        for slot in self.gradients.open_slots():
            self.gradients.check_unwritten(slot)
        for group in param_groups:
            options = {k: v.clone() if isinstance(v, torch.Tensor) else v
                       for k, v in group.items() if k != "params"}
            for p in group["params"]:
                slot = self.gradients.slots.get(p)
                if slot is not None:
                    slot.late, slot.seen = options, state_of(p)
        self.late.update(dict.fromkeys(self.gradients.bundles))
        self.gradients.job.to_finish.add(self.optimizer())
        self.update([b for b in self.late
                     if not all(s.is_watched for s in b.slots)])

    def update(self, bundles):
        """Update these bundles now, and others whose sums have arrived.  While
        the wanted sums are missing, update others: sums of the last layers
        arrive first."""
        if not bundles:
            return
        wanted = dict.fromkeys(bundles)
        while not all(map(self.gradients.is_there, wanted)):
            others = self.arrived(reversed(self.late), wanted)
            if not others:
                break
            self.apply(others)
        self.apply([*wanted, *self.arrived(self.late, wanted)])

    def arrived(self, order, wanted):
        """Return other bundles whose sums have arrived, up to the first in this
        order whose sum is missing.  One optimizer call for many bundles costs
        little more than for one."""
        found = []
        for bundle in order:
            if bundle in wanted:
                continue
            if not self.gradients.is_there(bundle):
                break
            found.append(bundle)
        return found

    def apply(self, bundles):
        groups, own = {}, []
        for bundle in bundles:
            for slot in bundle.slots:
                check_untouched(slot)
            # Since step() the gradients belong to the caller, who may have
            # reset them: restore the caller's afterwards.
            own += [(s.parameter, s.parameter.grad) for s in bundle.slots
                    if self.gradients.is_written(s)]
            self.gradients.finish(bundle)
            for slot in bundle.slots:
                if slot.late is not None:
                    groups.setdefault(id(slot.late), (slot.late, []))[1].append(
                        slot.parameter)
                    slot.late = None
            del self.late[bundle]
        optimizer = self.optimizer()
        optimizer.update_groups([{**options, "params": parameters}
                                 for options, parameters in groups.values()])
        for p, grad in own:
            p.grad = grad
        if not self.late:
            self.gradients.job.to_finish.discard(optimizer)

    def finish_all(self):
        self.update(list(self.late))
