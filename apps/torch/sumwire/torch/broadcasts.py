# broadcasts.py - one rank's tensors, models and optimizers, to all
# SPDX-License-Identifier: BSD-3-Clause
import torch

from sumwire.client import SumwireError
from sumwire.torch import ops
from sumwire.torch.channel import (
    BLOCK_BYTES, N_BLOCKS, agree, as_bytes, broadcast_json, check_root, describe,
    is_global, not_ours, way)
from sumwire.torch.job import DTYPES, current
from sumwire.torch.reductions import broadcast_in
from sumwire.torch.staging import stage_of
from sumwire.torch.state import from_tree, to_tree
from sumwire.torch.unsupported import refuse


def broadcast_async_(tensor, root_rank, name=None, process_set=None, **more):
    """Begin to replace tensor by the root's.  Return a handle for poll and
    synchronize.  Do not read or write the tensor until synchronize returns.

    tensor       dense, of any dtype; the same shape and dtype on all ranks
    root_rank    a rank of the job, even with a process set
    name         as in allreduce_async_
    process_set  as in allreduce_async_

    Raise ValueError if the root does not exist."""
    refuse(more)
    check_root(root_rank, process_set)
    return start(tensor, tensor, root_rank, name, process_set)


def broadcast_async(tensor, root_rank, name=None, process_set=None, **more):
    """Begin a broadcast as broadcast_async_ does, into a new tensor, which
    synchronize returns.  tensor gives its shape, dtype and device, and at the
    root its content."""
    refuse(more)
    check_root(root_rank, process_set)
    check_dense(tensor)
    return start(tensor, torch.empty_like(tensor, requires_grad=False),
                 root_rank, name, process_set)


def check_dense(tensor):
    """Raise TypeError unless tensor is a dense torch.Tensor.  Its dtype is not
    checked, because a broadcast also copies types that cannot be summed."""
    if not isinstance(tensor, torch.Tensor) or tensor.is_sparse:
        ops.check_tensor(tensor)


class Copy(ops.Call):
    """Broadcast the root's tensor; other ranks have no source."""
    __slots__ = ("root",)
    can_join = False

    def fill(self, source):
        flat = self.shared.flat.view(self.output.dtype)
        self.view = flat.view(self.output.shape)
        if source is not None:
            self.view.copy_(source.detach())

    def push(self, shared):
        current().broadcast(shared, self.root, self.tag)


def start(tensor, output, root_rank, name, process_set):
    check_dense(tensor)
    if not is_global(process_set):
        return ops.hold(broadcast_in(process_set, tensor, output, root_rank,
                                     name))
    call = Copy(output, ops.Sum, 1, stage=stage_of([tensor]))
    call.root = root_rank
    words = ("broadcast", tensor.shape, tensor.dtype, f"root {root_rank}")
    n, wire = tensor.numel(), tensor.dtype
    if wire not in DTYPES:
        n, wire = n * tensor.element_size(), torch.uint8
    if n:
        call.start(f"broadcast.{name}" if name else None, words, (n, wire), 0,
                   tensor if current().rank == root_rank else None)
    return ops.hold(call)


def broadcast_(tensor, root_rank, name=None, process_set=None, **more):
    """Replace tensor by the root's, and return it."""
    return ops.synchronize(broadcast_async_(tensor, root_rank, name, process_set,
                                            **more))


class Broadcast(torch.autograd.Function):
    """Differentiate a broadcast: the root gets the average of the gradients, as
    in Horovod."""

    @staticmethod
    def forward(ctx, tensor, root_rank, name, process_set):
        ctx.root_rank, ctx.name, ctx.process_set = root_rank, name, process_set
        return ops.synchronize(broadcast_async(tensor, root_rank, name,
                                               process_set))

    @staticmethod
    def backward(ctx, grad):
        mean = ops.allreduce(grad, name=ctx.name and f"{ctx.name}.gradient",
                             process_set=ctx.process_set)
        if current().rank != ctx.root_rank:
            mean.zero_()
        return mean, None, None, None


def broadcast(tensor, root_rank, name=None, process_set=None, **more):
    """Return the root's tensor as a new tensor.  Arguments are those of
    broadcast_async.  Gradients flow through it: the root gets their average."""
    refuse(more)
    check_dense(tensor)
    if tensor.requires_grad and torch.is_grad_enabled():
        return Broadcast.apply(tensor, root_rank, name, process_set)
    return ops.synchronize(broadcast_async(tensor, root_rank, name, process_set))


def named_tensors(params):
    """Return a list of (name, tensor) from a state_dict() or from
    named_parameters().  Raise ValueError for anything without names."""
    is_module = isinstance(params, torch.nn.Module)
    params = list(params.items() if isinstance(params, dict) else
                  () if is_module else params)
    if is_module or any(not (isinstance(p, tuple) and len(p) == 2) for p in params):
        raise ValueError("expected a state_dict() or named_parameters(): each "
                         "value needs a name")
    return [(n, p) for n, p in params if isinstance(p, torch.Tensor)]


def broadcast_together(tensors, root_rank, process_set=None):
    """Replace the tensors by the root's.  All ranks pass tensors of the same
    shapes and dtypes in the same order."""
    with torch.no_grad():
        for batch in batches([t for t in tensors if t.numel()]):
            data = torch.cat([as_bytes(t.detach().cpu().contiguous())
                              for t in batch])
            way(process_set).stream(data, root_rank)
            if current().rank != root_rank:
                unpack(data, batch)


def batches(tensors):
    """Split the tensors into batches that fill the blocks.  Then many small
    tensors cost little, and at most one batch is copied at a time."""
    batch, n = [], 0
    for t in tensors:
        batch.append(t)
        n += t.numel() * t.element_size()
        if n >= N_BLOCKS * BLOCK_BYTES:
            yield batch
            batch, n = [], 0
    if batch:
        yield batch


def unpack(data, tensors):
    at = 0
    for t in tensors:
        n = t.numel() * t.element_size()
        # clone: a piece of the batch may be unaligned
        t.copy_(data[at:at + n].clone().view(t.dtype).view(t.shape))
        at += n


def broadcast_parameters(params, root_rank=0, process_set=None, **more):
    """Replace the tensors of a model.state_dict(), or of
    model.named_parameters(), by the root's, and wait for them.  Values that are
    no tensors stay unchanged.  All ranks call it.  Raise ValueError on all ranks
    if names, shapes or dtypes differ between ranks."""
    refuse(more)
    check_root(root_rank, process_set)
    named = named_tensors(params)
    agree("the tensors of broadcast_parameters",
          {"root_rank": str(root_rank), **{n: describe(t) for n, t in named}},
          process_set)
    broadcast_together([t for _, t in named], root_rank, process_set)


def make_gradients(optimizer):
    """Give a new optimizer's parameters gradients of zeros, as Horovod does:
    its scripts read them."""
    for group in optimizer.param_groups:
        for p in group["params"]:
            if p.requires_grad and p.grad is None:
                p.grad = torch.zeros_like(p, requires_grad=False)


def broadcast_optimizer_state(optimizer, root_rank=0, process_set=None, **more):
    """Replace the optimizer's state and options by the root's.  They may
    consist of tensors, numbers, strings, None, and dicts, lists and tuples of
    these; anything else raises TypeError on all ranks.  Nothing is unpickled.
    An optimizer without state also gets gradients of zeros.  All ranks call
    it."""
    refuse(more)
    check_root(root_rank, process_set)
    if not optimizer.state:
        make_gradients(optimizer)
    is_root = current().rank == root_rank
    tree, tensors = None, []
    if is_root:
        try:
            tree = to_tree(optimizer.state_dict(), tensors)
        except Exception as e:  # all ranks raise it
            tree, tensors = ["refused", f"broadcast_optimizer_state: rank "
                             f"{root_rank}: {type(e).__name__}: {e}"], []
    tree = broadcast_json(tree, root_rank, process_set)
    if isinstance(tree, list) and tree[:1] == ["refused"]:
        raise TypeError(" ".join(map(str, tree[1:])))
    state = None
    if not is_root:
        try:
            state = from_tree(tree, tensors)
        except (IndexError, RuntimeError, TypeError, ValueError):
            raise SumwireError("SW_EPROTO", not_ours(
                root_rank, "no optimizer's state")) from None
    broadcast_together(tensors, root_rank, process_set)
    if not is_root:
        optimizer.load_state_dict(state)
