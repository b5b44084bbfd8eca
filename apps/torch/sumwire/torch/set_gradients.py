# set_gradients.py - gradients of an optimizer of a process set
# SPDX-License-Identifier: BSD-3-Clause
"""step() sums the members' gradients, all gradients of one dtype together.  On
a rank that is not a member, step() uses the rank's own gradients, as in
Horovod."""
import torch

from sumwire.torch import ops
from sumwire.torch.gradients import Gradients


class SetGradients(Gradients):
    """Sum gradients as Gradients does, among the members of a process set."""

    def begin_step(self):
        self.is_begun = True
        if self.undeclared:
            sparse = () if self.sparse_as_dense else self.order.sparse
            self.order.take()
            self.sparse += [s for s in self.undeclared if s.parameter in sparse]
            self.undeclared = []

    def push(self, slot):
        self.begin_step()
        self.hold_sparse(slot)

    def push_missing(self):
        self.begin_step()
        for slot in self.slots.values():
            if slot.passes_left:
                self.hold_sparse(slot)
        self.step += 1
        self.is_begun = False

    def synchronize(self):
        self.push_missing()
        for slot in self.open_slots():
            self.check_unwritten(slot)
        if self.process_set.included():
            self.finish_sparse(self.begin_sparse())
            self.reduce_dense()
        for slot in self.slots.values():
            slot.is_open, slot.local, slot.passes_left = False, None, self.passes

    def reduce_dense(self):
        by_type = {}
        for slot in self.open_slots():
            by_type.setdefault(slot.dtype, []).append(slot.parameter)
        for parameters in by_type.values():
            for p in parameters:
                if p.grad is None:
                    p.grad = torch.zeros_like(p, requires_grad=False)
                elif p.grad.is_sparse:
                    p.grad = p.grad.to_dense()
            flat = ops.allreduce(
                torch.cat([p.grad.detach().reshape(-1) for p in parameters]),
                op=self.op, process_set=self.process_set,
                compression=self.compression)
            for p, part in zip(parameters,
                               flat.split([p.numel() for p in parameters])):
                p.grad.copy_(part.view(p.shape))
                if self.is_sparse_only:
                    p.grad = p.grad.to_sparse(1)
