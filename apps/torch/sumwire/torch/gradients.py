# gradients.py - sum the gradients of a model's parameters
# SPDX-License-Identifier: BSD-3-Clause
"""DistributedOptimizer and DistributedDataParallel share this code.

A hook on the AccumulateGrad node of each parameter copies its gradient, already
divided, into its bundle's shared memory.  The last gradient of a bundle pushes
the bundle.  When the sum has arrived, parameter.grad becomes that memory,
without a copy back.  If the dtype on the wire differs, the sum is copied back.
Gradients of a device stay in the device's memory, which staging.py sums."""
import itertools
import time
import weakref

import torch

from sumwire.client import SumwireError
from sumwire.distributed.local import asked_for
from sumwire.torch import hierarchy, ops
from sumwire.torch.bundle import (
    MAX_BUNDLES, MIN_BUNDLES, Slot, make_bundles)
from sumwire.torch.channel import agree, broadcast_json, describe, not_ours
from sumwire.torch.compression import Compression, check_compression, is_own
from sumwire.torch.gathers import sparse_allreduce_async
from sumwire.torch.job import current, dtype_name
from sumwire.torch.joining import serves
from sumwire.torch.order import ForwardOrder
from sumwire.torch.staging import find_stage

_n_sets = itertools.count()


def hook_of(gradients, slot):
    """Return the hook of a parameter.  It keeps only the slot alive."""
    def on_gradient(*_):
        me = gradients()
        if me is not None:
            me.count_pass(slot)
    return on_gradient


def name_of(compression):
    """Return a name of the compression, which must be equal on all ranks."""
    if is_own(compression):
        return getattr(compression, "__name__", type(compression).__name__)
    return str(compression.dtype or "none")


def check_order(told, n):
    """Return rank 0's order, which has each of n parameters once, and the list
    of sparse ones.  Raise SumwireError if the lists are malformed."""
    if (isinstance(told, list) and len(told) == 2 and
            all(isinstance(part, list) for part in told) and
            all(isinstance(i, int) for part in told for i in part) and
            len(told[0]) == n and set(told[0]) == set(range(n)) and
            set(told[1]) <= set(range(n))):
        return told
    raise SumwireError("SW_EPROTO", not_ours(0, "no order of use"))


class Gradients:
    """Sum the gradients of a set of parameters over all ranks.

    named        list of (name, parameter)
    passes       backward passes per step
    on_gradient  called for every computed gradient, if given; returns whether
                 the gradient counts
    is_sparse_only  the optimizer takes sparse gradients only: make dense sums
                 sparse again

    Other arguments are those of DistributedOptimizer."""

    def __init__(self, named, compression=Compression.none, op=ops.Average,
                 passes=1, sparse_as_dense=False, on_gradient=None,
                 hierarchical=None, process_set=None, is_sparse_only=False):
        self.what = f"grad{next(_n_sets)}"
        self.job = current()
        check_compression(compression)
        if op not in (ops.Average, ops.Sum):
            raise ValueError(f"op={op!r}: gradients have an Average or a Sum")
        self.compression, self.op = compression, op
        self.passes = passes
        self.sparse_as_dense = sparse_as_dense
        self.is_sparse_only = is_sparse_only
        self.on_gradient = on_gradient
        self.process_set = process_set
        self.hierarchical, self.hierarchy = asked_for(hierarchical), None
        self.step = 0
        self.number = None  # number of this step among the job's operations
        self.job.gradients[self.what] = self
        self.is_begun = False  # a gradient of the next step has been filled in
        self.factor = 1 / self.job.size if op is ops.Average else 1
        # A tensor factor saves torch 3 us.  A 16-bit tensor would round it.
        self.factors = {t: torch.tensor(self.factor, dtype=t)
                        for t in (torch.float32, torch.float64)}
        self.slots, self.nodes, self.bundles = {}, [], []
        self.sparse = []  # slots with sparse gradients, which have no bundle
        self.undeclared = []
        self.order = ForwardOrder()
        weakref.finalize(self, self.order.take)
        self.add(named)

    def add(self, named):
        """Add parameters, except those without gradients or elements."""
        for name, p in named:
            if not p.requires_grad or not p.numel():
                continue
            dtype_name(p.dtype, name)
            slot = Slot(name, p, self.passes, self.compression)
            # An AccumulateGrad node lives only while a reference exists.
            node = p.expand_as(p).grad_fn.next_functions[0][0]
            self.nodes.append(node)
            node.register_hook(hook_of(weakref.ref(self), slot))
            self.slots[p] = slot
            self.undeclared.append(slot)
            self.order.want(p)

    def count_pass(self, slot):
        """Count an accumulated gradient, and send it after the step's last
        pass. """
        if self.on_gradient is not None and not self.on_gradient():
            return
        if slot.passes_left > 1:
            slot.passes_left -= 1
        elif slot.passes_left:
            self.push(slot)
        else:
            self.refuse(slot)

    def refuse(self, slot):
        """Raise an error: the slot's gradient of this step is in flight
        already. """
        if slot.late is not None:
            raise RuntimeError(
                f"'{slot.name}' was used between step() and its update, "
                f"without a call of its module: call optimizer.synchronize() "
                f"before you use it, or train without cross_barrier")
        raise RuntimeError(
            f"the gradient of '{slot.name}' was computed more than "
            f"{self.passes} times before step(): set "
            f"backward_passes_per_step to the number of backward passes")

    def declare(self):
        """Declare new parameters, the most urgent first.  The order is the
        order of use in rank 0's first forward pass."""
        slots = self.undeclared
        options = {"compression, op, backward_passes_per_step, hierarchical":
                   f"{name_of(self.compression)}, "
                   f"{self.op.name}, {self.passes}, {self.hierarchical}"}
        agree(f"the parameters of {self.what}", {
            **{s.name: describe(s.parameter) for s in slots},
            **options})
        first = self.order.take()
        order = sorted(range(len(slots)), key=lambda i: first.get(
            slots[i].parameter, len(first)))
        sparse = [] if self.sparse_as_dense else [
            i for i in order if slots[i].parameter in self.order.sparse]
        order, sparse = check_order(broadcast_json([order, sparse], 0),
                                    len(slots))
        self.sparse += [slots[i] for i in sparse]
        order = [slots[i] for i in order if i not in set(sparse)]
        self.undeclared = []
        if order:
            self.declare_dense(order)

    def declare_dense(self, slots):
        """Declare the bundles of dense slots, in this order."""
        bundles = make_bundles(slots, max(MAX_BUNDLES - self.job.n_bundles,
                                          MIN_BUNDLES))
        self.job.n_bundles += len(bundles)
        by = self.who_sums([s.parameter for s in slots])
        made = (by.make if by else self.job.declare)([
            (f"{self.what}.{bundle.name}", bundle.n_elems, bundle.dtype,
             priority) for priority, bundle in enumerate(bundles)])
        for bundle, shared in zip(bundles, made):
            bundle.place(shared)
        self.bundles += bundles

    def who_sums(self, parameters):
        """Return the Hierarchy or Stage that sums the bundles; None: the
        job."""
        if self.hierarchical and not self.hierarchy:
            self.hierarchy = hierarchy.find(self.job, self.what, parameters,
                                            self.hierarchical)
        return self.hierarchy or find_stage(self.job, parameters)

    def push(self, slot):
        """Fill the gradient into its bundle, or zeros if there is no gradient.
        The last slot of a bundle sends the bundle.  A frozen parameter keeps
        its gradient."""
        self.begin_step()
        p, bundle = slot.parameter, slot.bundle
        if bundle is None:
            self.hold_sparse(slot)
            return
        bundle.stream = bundle.shared.follow(bundle.stream)
        grad = p.grad
        if grad is slot.view:
            # The gradient was not reset since the last step, and was added to.
            grad = p.grad = grad.clone()
        if grad is None or not p.requires_grad:
            slot.view.zero_()
        else:
            grad = self.fill(slot, grad)
        slot.local = grad
        slot.version = None if grad is None else grad._version
        slot.is_open = p.requires_grad
        slot.passes_left = 0
        bundle.n_missing -= 1
        if not bundle.n_missing:
            self.job.push(bundle.shared, self.step)

    def begin_step(self):
        """Note the step with the first of its gradients, for joined ranks, and
        declare new parameters."""
        if not self.is_begun:
            self.is_begun = True
            self.job.joins.ended(self.number)
            self.number = self.job.joins.note(self)
        if not self.undeclared:
            return
        try:
            with self.job.joins.quiet():
                self.declare()
        except BaseException:
            # The step fails.  Drop the job's reference to this object, whose
            # hooks would otherwise take the gradients of its successor.
            self.job.joins.ended(self.number)
            raise

    def describe(self):
        """Return the description for ranks that have joined."""
        return {"kind": "step", "what": self.what}

    def hold_sparse(self, slot):
        """Keep a sparse gradient until step(), which begins the sums in one
        order at all ranks."""
        grad = slot.parameter.grad
        slot.local = grad
        slot.version = None if grad is None else grad._version
        slot.is_open = slot.parameter.requires_grad
        slot.passes_left = 0

    def begin_sparse(self):
        """Begin the sums of sparse gradients, and return (slot, handle) of
        each. """
        begun = []
        for slot in self.sparse:
            p, grad = slot.parameter, slot.local
            if not slot.is_open:
                continue
            if grad is None:
                grad = p.detach().new_zeros(()).expand_as(p).to_sparse(1)
            elif not grad.is_sparse:
                grad = grad.to_sparse(1)
            begun.append((slot, sparse_allreduce_async(
                grad.coalesce(), None, self.op, self.process_set)))
        return begun

    def finish_sparse(self, begun):
        """Wait for the sums of sparse gradients, and assign them to the
        parameters."""
        for slot, handle in begun:
            slot.parameter.grad = handle()
            slot.is_open, slot.local = False, None
        for slot in self.sparse:
            slot.passes_left = self.passes

    def fill(self, slot, grad):
        """Copy the gradient into shared memory, and return parameter.grad,
        which stays a separate tensor.  Reading or writing it meanwhile is
        harmless."""
        if grad.is_sparse:
            if not self.sparse_as_dense:
                raise TypeError(
                    f"the gradient of '{slot.name}' is sparse, but the "
                    f"parameter is not the weight of an Embedding or "
                    f"EmbeddingBag with sparse=True that rank 0 has used: pass "
                    f"sparse_as_dense=True")
            grad = slot.parameter.grad = grad.to_dense()
        if grad.dtype is not slot.dtype:
            raise RuntimeError(
                f"the gradient of '{slot.name}' has {grad.dtype}, but its "
                f"parameter had {slot.dtype} when the distributed optimizer or "
                f"module was created: create it again after such a change")
        source = grad.detach() if grad.requires_grad else grad
        shared = slot.bundle.shared
        began_ns = shared.client.is_traced and time.monotonic_ns()
        if slot.compression:
            small, slot.ctx = slot.compression.compress(source)
            source = small.reshape(slot.view.shape)
        if self.factor == 1:
            slot.view.copy_(source)
        elif slot.is_direct:
            torch.mul(source, self.factors.get(source.dtype, self.factor),
                      out=slot.view)
        else:
            slot.view.copy_(source * self.factor)
        if began_ns:
            shared.client.copied(shared.tensor, False, began_ns,
                                 source.numel() * slot.view.element_size())
        return grad

    def is_written(self, slot):
        """Return True if parameter.grad has changed since it was sent."""
        p, local = slot.parameter, slot.local
        return p.grad is not local or (local is not None and
                                       local._version != slot.version)

    def check_unwritten(self, slot):
        """Raise RuntimeError if a gradient was written while it was in flight,
        because the write would be lost."""
        if self.is_written(slot):
            raise RuntimeError(
                f"the gradient of '{slot.name}' was written after its backward "
                f"pass, while it was being summed: call "
                f"optimizer.synchronize(), then change gradients, then step "
                f"inside optimizer.skip_synchronize()")

    def is_there(self, bundle):
        """Return True if the sum of a bundle has arrived."""
        return self.job.is_done(bundle.shared)

    def finish(self, bundle):
        """Wait for the sum of a bundle, and assign it to the parameters."""
        shared = bundle.shared
        self.job.wait(shared)
        began_ns = shared.client.is_traced and time.monotonic_ns()
        for slot in bundle.slots:
            if slot.is_open:
                self.take(slot)
            slot.local, slot.passes_left = None, self.passes
        if began_ns and not all(slot.is_direct for slot in bundle.slots):
            shared.client.copied(shared.tensor, True, began_ns)
        bundle.n_missing, bundle.stream = len(bundle.slots), None

    def take(self, slot):
        p, grad = slot.parameter, slot.view
        if slot.compression:
            shape = slot.compression.compress(torch.zeros_like(
                p, requires_grad=False))[0].shape
            grad = slot.compression.decompress(grad.clone().view(shape),
                                               slot.ctx).view(p.shape)
        elif not slot.is_direct:
            grad = (torch.empty_like(p, requires_grad=False)
                    if slot.local is None or self.is_written(slot)
                    else slot.local).copy_(slot.view)
        p.grad = grad.to_sparse(1) if self.is_sparse_only else grad
        slot.is_open = False

    def push_missing(self):
        """Send all gradients that this step has not sent.  Send zeros for
        missing gradients, because the other ranks wait for them."""
        self.begin_step()
        for slot in self.sparse:
            if slot.passes_left:
                self.hold_sparse(slot)
        for bundle in self.bundles:
            if bundle.n_missing and is_trained(bundle):
                for slot in bundle.slots:
                    if slot.passes_left:
                        self.push(slot)
        self.step += 1
        self.is_begun = False

    def open_slots(self):
        return [s for s in self.slots.values() if s.is_open]

    def synchronize(self):
        """Wait until all gradients of this step are sums or averages."""
        self.push_missing()
        for slot in self.open_slots():
            self.check_unwritten(slot)
        begun = self.begin_sparse()
        for bundle in self.bundles:
            if not bundle.n_missing:
                self.finish(bundle)
        self.finish_sparse(begun)
        self.job.joins.ended(self.number)

    # --- on a rank that has joined ---

    def add_zeros(self):
        """Take part in a step of the other ranks, with zeros."""
        if self.undeclared:
            self.declare()
        self.drop()
        for bundle in filter(is_trained, self.bundles):
            bundle.shared.flat.zero_()
            self.job.push(bundle.shared, self.step)
            bundle.n_missing = 0
        self.step += 1

    def is_done(self):
        return False  # join() drops it when all ranks have joined

    def drop(self):
        """Wait for the open sums of the other ranks, and ignore the results."""
        for bundle in self.bundles:
            if not bundle.n_missing:
                self.job.wait(bundle.shared)
                bundle.n_missing = len(bundle.slots)

    def set_passes(self, passes):
        if self.open_slots():
            raise RuntimeError("backward_passes_per_step can only be changed "
                               "between step() and the next backward()")
        self.passes = passes
        for slot in self.slots.values():
            slot.passes_left = passes


def is_trained(bundle):
    """Return True if a bundle is pushed: not all its parameters are frozen."""
    return any(s.parameter.requires_grad for s in bundle.slots)


@serves("step")
def step_along(told):
    gradients = current().gradients.get(told["what"])
    if gradients is None:
        raise SumwireError("SW_EMISMATCH", f"join: other ranks call step() of "
                           f"optimizer {told['what']}, but this rank has not "
                           f"created it: create the same optimizers at all "
                           f"ranks")
    gradients.add_zeros()
    return gradients
