# crossing.py - past the barrier: step() does not wait for the sums
# SPDX-License-Identifier: BSD-3-Clause
"""ByteScheduler (SOSP'19) section 3.4, for any optimizer that updates each
parameter by itself.

step() notes the options of all groups (a scheduler may change them before the
sums are there) and returns.  A parameter is updated when it is needed: before
the forward of a module that owns it, and whenever it is read through a module.
Who must wait meanwhile updates others whose sums have come.  The update is the
optimizer's own step(), for these parameters alone."""
import weakref

import torch
from torch.nn.modules import module as nn_module


class Watched(dict):
    """A module's _parameters; looking at one of them makes it current."""
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
        """Copies and pickles are ordinary."""
        return dict, (list(self.items()),)


def before_forward_of(crossing):
    """The hook; it keeps nothing alive, and torch may call it after its end."""
    def before_forward(module, _):
        me = crossing()
        if me is not None and me.late:
            me.before_forward(module)
    return before_forward


class Crossing:
    """The updates of an optimizer that are still to be done.  The optimizer
    owns it; while there are some, the job keeps the optimizer alive."""

    def __init__(self, gradients, optimizer):
        self.gradients = gradients
        self.optimizer = weakref.ref(optimizer)
        self.late = {}  # slot: the options of its group at its step()
        self.watched = set()  # parameters that a module gives out
        # One hook for all modules: copies and pickles of a module have none.
        hook = nn_module.register_module_forward_pre_hook(
            before_forward_of(weakref.ref(self)))
        weakref.finalize(self, hook.remove)

    def watch(self, modules):
        """Parameters of modules that were seen in a forward pass can wait."""
        me = weakref.ref(self)
        for module in modules:
            watched = module._parameters
            if not isinstance(watched, Watched):
                watched = module._parameters = Watched(watched)
                watched.crossings = ()
            watched.crossings += (me,)
            self.watched.update(p for p in dict.values(watched)
                                if p in self.gradients.slots)

    def before_forward(self, module):
        """Update what the module is about to use, all in one."""
        mine = map(self.gradients.slots.get, dict.values(module._parameters))
        self.need_slots([s for s in mine if s in self.late])

    def need(self, parameter):
        slot = self.gradients.slots.get(parameter)
        if slot in self.late:
            self.need_slots([slot])

    def begin(self, param_groups):
        """A step: all gradients were pushed.  Updates at once what no module
        gives out."""
        for group in param_groups:
            options = {k: v.clone() if isinstance(v, torch.Tensor) else v
                       for k, v in group.items() if k != "params"}
            for p in group["params"]:
                slot = self.gradients.slots.get(p)
                if slot is not None and slot.is_open:
                    self.gradients.check_unwritten(slot)
                    self.late[slot] = slot.late = options
        self.gradients.job.to_finish.add(self.optimizer())
        self.need_slots([s for s in self.late
                         if s.parameter not in self.watched])

    def need_slots(self, slots):
        """Update these now, and what has arrived beside them.  While their
        sums are not there, update others: the last layers' come first."""
        if not slots:
            return
        wanted = set(slots)
        while not all(map(self.gradients.is_done, slots)):
            others = self.arrived(reversed(self.late), wanted)
            if not others:
                break
            self.apply(others)
        self.apply(slots + self.arrived(self.late, wanted))

    def arrived(self, order, wanted):
        """Others whose sums are there, up to the first in this order whose is
        not.  One call of an optimizer for many costs little more than for
        one."""
        found = []
        for slot in order:
            if slot in wanted:
                continue
            if not self.gradients.is_done(slot):
                break
            found.append(slot)
        return found

    def apply(self, slots):
        groups, own = {}, []
        for slot in slots:
            p = slot.parameter
            # Since step() its gradient is the caller's again, to be forgotten.
            if self.gradients.is_written(slot):
                own.append((p, p.grad))
            self.gradients.finish(slot)
            options, slot.late = self.late.pop(slot), None
            groups.setdefault(id(options), {**options, "params": []})[
                "params"].append(p)
        optimizer = self.optimizer()
        optimizer.update_groups(list(groups.values()))
        for p, grad in own:
            p.grad = grad
        if not self.late:
            self.gradients.job.to_finish.discard(optimizer)

    def finish_all(self):
        self.need_slots(list(self.late))
