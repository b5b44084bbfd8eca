# gradients.py - the gradients of a model's parameters on their way
# SPDX-License-Identifier: BSD-3-Clause
"""What DistributedOptimizer and DistributedDataParallel share.

A hook on the AccumulateGrad node of each parameter copies its gradient, already
divided, into its bundle's shared memory; the last one of a bundle pushes that.
Once the sum is there, parameter.grad becomes that memory, so nothing is copied
back.  (Other types on the wire are copied back; the memory of a device's
gradients is its own, which staging.py sums.)"""
import itertools
import weakref

import torch

from sumwire.client import SumwireError
from sumwire.distributed.local import asked_for
from sumwire.torch import hierarchy, ops
from sumwire.torch.bundle import Slot, make_bundles
from sumwire.torch.channel import agree, broadcast_json, describe, not_ours
from sumwire.torch.compression import Compression, wire_dtype
from sumwire.torch.job import current, dtype_name
from sumwire.torch.order import ForwardOrder
from sumwire.torch.staging import find_stage

_n_sets = itertools.count()


def hook_of(gradients, slot):
    """The hook of a parameter; it keeps nothing alive but its slot."""
    def on_gradient(*_):
        me = gradients()
        if me is not None:
            me.count_pass(slot)
    return on_gradient


def check_order(order, n):
    """Rank 0's order: each of the n once."""
    if (isinstance(order, list) and len(order) == n and
            all(isinstance(i, int) for i in order) and
            set(order) == set(range(n))):
        return order
    raise SumwireError("SW_EPROTO", not_ours(0, "no order of use"))


class Gradients:
    """named: list of (name, parameter).  on_gradient(), if given, is called
    whenever a gradient has been computed, and returns whether it counts.
    hierarchical: as of DistributedOptimizer."""

    def __init__(self, named, compression=Compression.none, op=ops.Average,
                 passes=1, sparse_as_dense=False, on_gradient=None,
                 hierarchical=None):
        self.what = f"grad{next(_n_sets)}"
        self.job = current()
        wire_dtype(compression, torch.float32)  # an error now, not in backward()
        self.compression, self.op = compression, op
        self.passes = passes
        self.sparse_as_dense = sparse_as_dense
        self.on_gradient = on_gradient
        self.hierarchical, self.hierarchy = asked_for(hierarchical), None
        self.step = 0
        self.is_begun = False  # some of the next step's were filled in
        self.factor = 1 / self.job.size if op is ops.Average else 1
        # The same number; torch takes 3 us less for a tensor.  A 16-bit one
        # would be another number.
        self.factors = {t: torch.tensor(self.factor, dtype=t)
                        for t in (torch.float32, torch.float64)}
        self.slots, self.nodes, self.bundles = {}, [], []
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
        if slot.passes_left > 1:
            slot.passes_left -= 1
        elif slot.passes_left:
            self.push(slot)
        else:
            self.refuse(slot)

    def refuse(self, slot):
        """Its gradient of this step was on its way already."""
        if slot.late is not None:
            raise RuntimeError(
                f"'{slot.name}' was used before its update was done, since it "
                f"was not read through its module: do so, call "
                f"optimizer.synchronize() before, or train without "
                f"cross_barrier")
        raise RuntimeError(
            f"the gradient of '{slot.name}' was computed more than "
            f"{self.passes} times before step(): set "
            f"backward_passes_per_step to the number of backward passes")

    def declare(self):
        """Declare what is new, most urgent first: the order of use in rank 0's
        first forward pass."""
        slots = self.undeclared
        options = {"compression, op, backward_passes_per_step, hierarchical":
                   f"{wire_dtype(self.compression, torch.float32)}, "
                   f"{self.op.name}, {self.passes}, {self.hierarchical}"}
        agree(f"the parameters of {self.what}", {
            **{s.name: describe(s.parameter) for s in slots},
            **options})
        first = self.order.take()
        order = sorted(range(len(slots)), key=lambda i: first.get(
            slots[i].parameter, len(first)))
        order = check_order(broadcast_json(order, 0), len(slots))
        bundles = make_bundles([slots[i] for i in order], self.compression)
        by = self.who_sums([s.parameter for s in slots])
        made = (by.make if by else self.job.declare)([
            (f"{self.what}.{bundle.name}", bundle.n_elems, bundle.dtype,
             priority) for priority, bundle in enumerate(bundles)])
        for bundle, shared in zip(bundles, made):
            bundle.place(shared)
        self.bundles += bundles
        self.undeclared = []

    def who_sums(self, parameters):
        """Of which place their bundles are; None: the job's."""
        if self.hierarchical and not self.hierarchy:
            self.hierarchy = hierarchy.find(self.job, self.what, parameters,
                                            self.hierarchical)
        return self.hierarchy or find_stage(self.job, parameters)

    def push(self, slot):
        """Fill the gradient in, zeros if there is none; the last of a bundle
        sends it.  A parameter that was frozen keeps the gradient it has."""
        if self.undeclared:
            self.declare()
        p, bundle = slot.parameter, slot.bundle
        bundle.stream = bundle.shared.follow(bundle.stream)
        grad = p.grad
        if grad is slot.view:
            # Not forgotten since the last step, and added to.
            grad = p.grad = grad.clone()
        if grad is None or not p.requires_grad:
            slot.view.zero_()
        else:
            grad = self.fill(slot, grad)
        slot.local = grad
        slot.version = None if grad is None else grad._version
        slot.is_open = p.requires_grad
        slot.passes_left = 0
        self.is_begun = True
        bundle.n_missing -= 1
        if not bundle.n_missing:
            self.job.push(bundle.shared, self.step)

    def fill(self, slot, grad):
        """Copy the gradient into shared memory.  parameter.grad, returned,
        stays beside it: whoever reads or writes that meanwhile harms
        nothing."""
        if grad.is_sparse:
            if not self.sparse_as_dense:
                raise TypeError(
                    f"the gradient of '{slot.name}' is sparse: pass "
                    f"sparse_as_dense=True, or create its layer without "
                    f"sparse=True")
            grad = slot.parameter.grad = grad.to_dense()
        if grad.dtype is not slot.dtype:
            raise RuntimeError(
                f"the gradient of '{slot.name}' is of {grad.dtype}, but its "
                f"parameter was of {slot.dtype} when the distributed optimizer "
                f"or module was created: create it again after such a change")
        source = grad.detach() if grad.requires_grad else grad
        if self.factor == 1:
            slot.view.copy_(source)
        elif slot.is_direct:
            torch.mul(source, self.factors.get(source.dtype, self.factor),
                      out=slot.view)
        else:
            slot.view.copy_(source * self.factor)
        return grad

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

    def is_done(self, bundle):
        """Is its sum there?"""
        return self.job.is_done(bundle.shared)

    def finish(self, bundle):
        """Wait until the sum is there and make it the parameters' gradients."""
        self.job.wait(bundle.shared)
        for slot in bundle.slots:
            if slot.is_open:
                self.take(slot)
            slot.local, slot.passes_left = None, self.passes
        bundle.n_missing, bundle.stream = len(bundle.slots), None

    def take(self, slot):
        p, grad = slot.parameter, slot.view
        if not slot.is_direct:
            grad = (torch.empty_like(p, requires_grad=False)
                    if slot.local is None or self.is_written(slot)
                    else slot.local).copy_(slot.view)
        p.grad = grad
        slot.is_open = False

    def push_missing(self):
        """Send what this step has not sent: zeros where no gradient was
        computed, since the others wait for it."""
        if self.undeclared:
            self.declare()
        for bundle in self.bundles:
            if bundle.n_missing and any(s.parameter.requires_grad
                                        for s in bundle.slots):
                for slot in bundle.slots:
                    if slot.passes_left:
                        self.push(slot)
        self.step += 1
        self.is_begun = False

    def open_slots(self):
        return [s for s in self.slots.values() if s.is_open]

    def synchronize(self):
        """All gradients of this step are sums (or averages) afterwards."""
        self.push_missing()
        for slot in self.open_slots():
            self.check_unwritten(slot)
        for bundle in self.bundles:
            if not bundle.n_missing:
                self.finish(bundle)

    def set_passes(self, passes):
        if self.open_slots():
            raise RuntimeError("backward_passes_per_step can only be changed "
                               "between step() and the next backward()")
        self.passes = passes
        for slot in self.slots.values():
            slot.passes_left = passes
