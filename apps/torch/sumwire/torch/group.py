# group.py - sums of several tensors that travel as one tensor
# SPDX-License-Identifier: BSD-3-Clause
"""All tensors of one dtype lie one after the other in one declared tensor.
Therefore each small tensor costs only two copies."""
import torch

from sumwire.client import SumwireError
from sumwire.torch import ops
from sumwire.torch.channel import agree, describe, is_global
from sumwire.torch.compression import Compression, wire_dtype
from sumwire.torch.job import current
from sumwire.torch.members import checksum
from sumwire.torch.process_sets import global_process_set
from sumwire.torch.reductions import (
    Average, Sum, choose_op, divide, how, is_scaled_first, reduce_in, scaled)
from sumwire.torch.staging import stage_of
from sumwire.torch.unsupported import refuse


class Packed(ops.Call):
    """Sum the tensors of a group that have one dtype."""
    __slots__ = ("outputs", "dtype")

    def keep(self):
        self.source = [o if o is t else o.copy_(t.detach())
                       for o, t in zip(self.outputs, self.source)]

    def fill(self, source):
        self.view = self.shared.flat
        flat = [t.detach().reshape(-1) for t in source]
        if self.prescale == 1 and self.view.dtype == self.dtype:
            torch.cat(flat, out=self.view)
        else:
            self.view.copy_(scaled(torch.cat(flat), self.prescale))

    def take(self):
        """Write the result into outputs."""
        flat = self.view.to(self.dtype)
        divide(flat, self.op, self.factor)
        pieces = flat.split([output.numel() for output in self.outputs])
        for output, piece in zip(self.outputs, pieces):
            if output.requires_grad:
                output = output.detach()
            output.copy_(piece.view(output.shape))


class Group:
    """Hold the calls behind the handle of a group."""

    def __init__(self, outputs, parts):
        self.outputs, self.parts = outputs, parts

    def is_done(self):
        return all(part.is_done() for part in self.parts)

    def close(self):
        for part in self.parts:
            part.close()

    def finish(self):
        error = None
        for part in self.parts:
            try:
                part.finish()
            except SumwireError as e:
                error = error or e
        if error:
            raise error
        return self.outputs


def pack(name, content, tensors, outputs, op, priority, compression, prescale,
         factor):
    """Begin the sum of tensors of one dtype, and return its call."""
    dtype = tensors[0].dtype
    wire = wire_dtype(compression, dtype)
    words = ("allreduce of a group", None, dtype, op.name,
             *how(dtype, wire, prescale, factor), content)
    if op is Average and is_scaled_first(dtype):
        prescale /= current().size
    part = Packed(None, op, factor, prescale, stage_of(tensors))
    part.outputs, part.dtype = outputs, dtype
    n = sum(t.numel() for t in tensors)
    if n:
        part.start(name and f"{name}.{str(dtype)[6:]}", words,
                   (n, wire), priority, tensors)
    return part


def check_group(name, tensors):
    """Compare the content of a new group on all ranks, and raise ValueError
    where it differs.  Later calls are compared by their tags (ops.Place)."""
    for t in tensors:
        ops.check_tensor(t)
    content = {str(i): describe(t) for i, t in enumerate(tensors)}
    key = checksum(f"{name} {'' if name else content}")
    if key not in current().agreed:
        agree(f"the tensors of group {name or 'without a name'}", content,
              key=key)


def start(tensors, outputs, average, name, op, prescale_factor=1.0,
          postscale_factor=1.0, priority=0, compression=Compression.none,
          process_set=None, **more):
    refuse(more)
    op = choose_op(average, op)
    if op not in (Average, Sum) or not is_global(process_set):
        for t in tensors:
            ops.check_tensor(t)
        return ops.hold(Group(outputs, [
            reduce_in(process_set or global_process_set, t, out, op,
                      name and f"{name}.{i}", compression, prescale_factor,
                      postscale_factor)
            for i, (t, out) in enumerate(zip(tensors, outputs))]))
    check_group(name, tensors)
    content = f"of {', '.join(describe(t) for t in tensors)}"
    by_type = {}
    for pair in zip(tensors, outputs):
        by_type.setdefault(pair[0].dtype, []).append(pair)
    return ops.hold(Group(outputs, [
        pack(name and f"group.{name}", content, *zip(*pairs), op, priority,
             compression, prescale_factor, postscale_factor)
        for pairs in by_type.values()]))


def grouped_allreduce_async_(tensors, average=None, name=None, op=None, **rest):
    """Begin to replace tensors, a list, by their averages over all ranks, or by
    the results of op.  Return one handle; synchronize returns the list.  The
    tensors may differ in shape, dtype and device.  All ranks begin groups with
    a new name or content in the same order.  Other arguments are those of
    allreduce_async_."""
    return start(tensors, tensors, average, name, op, **rest)


def grouped_allreduce_async(tensors, average=None, name=None, op=None, **rest):
    """Begin a grouped allreduce as grouped_allreduce_async_ does, into new
    tensors.  synchronize returns them as a list."""
    outputs = [torch.empty_like(t, requires_grad=False) for t in tensors]
    return start(tensors, outputs, average, name, op, **rest)


def grouped_allreduce_(tensors, *args, **kwargs):
    """Replace tensors by their averages over all ranks, or by the results of
    op, and return them.  Arguments are those of grouped_allreduce_async_."""
    return ops.synchronize(grouped_allreduce_async_(tensors, *args, **kwargs))


class GroupedAllreduce(torch.autograd.Function):
    """Differentiate a grouped allreduce, for tensors that need a gradient."""

    @staticmethod
    def forward(ctx, options, *tensors):
        ctx.options = options
        outputs = ops.synchronize(grouped_allreduce_async(tensors, **options))
        ctx.mark_non_differentiable(*[y for x, y in zip(tensors, outputs)
                                      if not x.requires_grad])
        return tuple(outputs)

    @staticmethod
    def backward(ctx, *grads):
        ops.check_gradient(ctx.options)
        needed = ctx.needs_input_grad[1:]
        sums = iter(grouped_allreduce(
            [g for g, n in zip(grads, needed) if n], **ctx.options))
        return None, *[next(sums) if n else None for n in needed]


def grouped_allreduce(tensors, average=None, name=None, op=None, **rest):
    """Return the averages of tensors over all ranks, or the results of op, as a
    list of new tensors.  Arguments are those of grouped_allreduce_async_.
    Gradients flow through it if op is Average or Sum."""
    options = {"average": average, "name": name, "op": op, **rest}
    for t in tensors:
        ops.check_tensor(t)
    if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
        return list(GroupedAllreduce.apply(options, *tensors))
    return ops.synchronize(grouped_allreduce_async(tensors, **options))
