# gradients.py - the gradients of a model's parameters on their way
# SPDX-License-Identifier: BSD-3-Clause
"""What DistributedOptimizer and DistributedDataParallel share.

A hook on the AccumulateGrad node of each parameter copies its gradient, already
divided, into shared memory and pushes it; once its sum is there, parameter.grad
becomes that memory, so nothing is copied back.  (Other types on the wire, and
tensors of a device, are copied back.)"""
import itertools
import warnings
import weakref

import torch

from sumwire.torch import ops
from sumwire.torch.channel import agree, broadcast_object, describe
from sumwire.torch.compression import Compression, wire_dtype
from sumwire.torch.job import current, dtype_name
from sumwire.torch.order import ForwardOrder

_n_sets = itertools.count()


class Slot:
    """One parameter.  is_open: its gradient was pushed and is not back.  late:
    what crossing.py keeps while its update is to be done."""
    __slots__ = ("name", "parameter", "passes_left", "shared", "view",
                 "is_direct", "is_open", "local", "version", "late")

    def __init__(self, name, parameter, passes):
        self.name, self.parameter = name, parameter
        self.passes_left = passes
        self.shared = self.view = self.local = self.late = None
        self.is_open = False


def hook_of(gradients, slot):
    """The hook of a parameter; it keeps nothing alive but its slot."""
    def on_gradient(*_):
        me = gradients()
        if me is not None:
            me.count_pass(slot)
    return on_gradient


class Gradients:
    """named: list of (name, parameter).  on_gradient(), if given, is called
    whenever a gradient has been computed, and returns whether it counts."""

    def __init__(self, named, compression=Compression.none, op=ops.Average,
                 passes=1, sparse_as_dense=False, on_gradient=None):
        self.what = f"grad{next(_n_sets)}"
        self.job = current()
        self.compression, self.op = compression, op
        self.passes = passes
        self.sparse_as_dense = sparse_as_dense
        self.on_gradient = on_gradient
        self.step = 0
        self.factor = 1 / self.job.size if op is ops.Average else 1
        # The same number; torch takes 3 us less for a tensor.  A 16-bit one
        # would be another number.
        self.factors = {t: torch.tensor(self.factor, dtype=t)
                        for t in (torch.float32, torch.float64)}
        self.slots, self.nodes = {}, []
        self.undeclared = []
        self.order = ForwardOrder()
        weakref.finalize(self, self.order.take)
        self.add(named)

    def add(self, named):
        """More parameters; those without gradient or elements are left out."""
        for name, p in named:
            if not p.requires_grad or not p.numel():
                continue
            dtype_name(p.dtype, name)
            slot = Slot(name, p, self.passes)
            # An AccumulateGrad node lives only as long as somebody holds it.
            node = p.expand_as(p).grad_fn.next_functions[0][0]
            self.nodes.append(node)
            node.register_hook(hook_of(weakref.ref(self), slot))
            self.slots[p] = slot
            self.undeclared.append(slot)
            self.order.want(p)

    def count_pass(self, slot):
        """A gradient has been accumulated; the last of a step is sent."""
        if self.on_gradient is not None and not self.on_gradient():
            return
        if slot.late is not None:
            raise RuntimeError(
                f"'{slot.name}' was used before its update was done, since it "
                f"was not read through its module: read it so, or give "
                f"DistributedOptimizer cross_barrier=False")
        if slot.passes_left == 0:
            raise RuntimeError(
                f"the gradient of '{slot.name}' was computed more than "
                f"{self.passes} times before step(): give "
                f"backward_passes_per_step the number of backward passes")
        slot.passes_left -= 1
        if slot.passes_left == 0:
            self.push(slot)

    def declare(self):
        """Declare what is new, most urgent first: the order of use in rank 0's
        first forward pass."""
        slots = self.undeclared
        options = {"compression, op, backward_passes_per_step":
                   f"{wire_dtype(self.compression, torch.float32)}, "
                   f"{self.op.name}, {self.passes}"}
        agree(f"the parameters of {self.what}", {
            **{s.name: describe(s.parameter) for s in slots},
            **options})
        first = self.order.take()
        order = sorted(range(len(slots)), key=lambda i: first.get(
            slots[i].parameter, len(first)))
        order = broadcast_object(order, 0)
        made = self.job.declare([
            (f"{self.what}.{slots[i].name}", slots[i].parameter.numel(),
             wire_dtype(self.compression, slots[i].parameter.dtype), priority)
            for priority, i in enumerate(order)])
        for i, shared in zip(order, made):
            self.place(slots[i], shared)
        self.undeclared = []

    def place(self, slot, shared):
        p = slot.parameter
        slot.shared = shared
        slot.is_direct = shared.flat.dtype == p.dtype and not p.is_cuda
        # The strides that a gradient has: the parameter's where it is dense.
        slot.view = shared.flat.as_strided(p.shape, torch.empty_like(p).stride())
        if p.is_cuda:
            warnings.warn("sumwire copies gradients of CUDA devices through "
                          "unpinned memory, one after the other: there is no "
                          "GPU stage yet", stacklevel=2)

    def push(self, slot):
        """Send the gradient; zeros if there is none."""
        if self.undeclared:
            self.declare()
        grad = slot.parameter.grad
        if grad is None:
            slot.view.zero_()
        else:
            self.fill(slot, grad)
        slot.passes_left = 0
        slot.local = slot.parameter.grad
        slot.version = None if grad is None else slot.local._version
        slot.is_open = True
        self.job.push(slot.shared, self.step)

    def fill(self, slot, grad):
        """Copy the gradient into shared memory.  parameter.grad stays beside
        it: whoever reads or writes that meanwhile harms nothing."""
        if grad.is_sparse:
            if not self.sparse_as_dense:
                raise TypeError(
                    f"the gradient of '{slot.name}' is sparse: give "
                    f"sparse_as_dense=True, or make its layer without "
                    f"sparse=True")
            grad = slot.parameter.grad = grad.to_dense()
        if grad is slot.view:
            # Not forgotten since the last step, and added to.
            grad = slot.parameter.grad = grad.clone()
        if grad.requires_grad:
            grad = grad.detach()
        if self.factor == 1:
            slot.view.copy_(grad)
        elif slot.is_direct:
            torch.mul(grad, self.factors.get(grad.dtype, self.factor),
                      out=slot.view)
        else:
            slot.view.copy_(grad * self.factor)

    def is_written(self, slot):
        """Has parameter.grad been changed since it was sent?"""
        p, local = slot.parameter, slot.local
        return p.grad is not local or (local is not None and
                                       local._version != slot.version)

    def check_unwritten(self, slot):
        """What was written to a gradient on its way would be lost."""
        if self.is_written(slot):
            raise RuntimeError(
                f"the gradient of '{slot.name}' was written after its backward "
                f"pass, while it was being summed: call "
                f"optimizer.synchronize(), then change gradients, then step "
                f"inside optimizer.skip_synchronize()")

    def is_done(self, slot):
        """Is its sum there?"""
        return self.job.is_done(slot.shared)

    def finish(self, slot):
        """Wait until the sum is there and make it the parameter's gradient."""
        self.job.wait(slot.shared)
        p, grad = slot.parameter, slot.view
        if not slot.is_direct:
            grad = (torch.empty_like(p, requires_grad=False)
                    if slot.local is None or self.is_written(slot)
                    else slot.local).copy_(slot.view)
        p.grad, slot.local = grad, None
        slot.is_open = False
        slot.passes_left = self.passes

    def push_missing(self):
        """Send what this step has not sent: zeros where no gradient was
        computed, since the others wait for it."""
        for slot in self.slots.values():
            if not slot.is_open and slot.parameter.requires_grad:
                self.push(slot)
        self.step += 1

    def open_slots(self):
        return [s for s in self.slots.values() if s.is_open]

    def synchronize(self):
        """All gradients of this step are sums (or averages) afterwards."""
        self.push_missing()
        for slot in self.open_slots():
            self.check_unwritten(slot)
            self.finish(slot)

    def set_passes(self, passes):
        if self.open_slots():
            raise RuntimeError("backward_passes_per_step can only be changed "
                               "between step() and the next backward()")
        self.passes = passes
        for slot in self.slots.values():
            slot.passes_left = passes
