# broadcasts.py - one worker's tensors, models and optimizers, to all
# SPDX-License-Identifier: BSD-3-Clause
import torch

from sumwire.client import SumwireError
from sumwire.torch import ops
from sumwire.torch.channel import (
    BLOCK_BYTES, N_BLOCKS, agree, as_bytes, broadcast_json, channel, check_root,
    describe, not_ours)
from sumwire.torch.job import DTYPES, current
from sumwire.torch.staging import stage_of
from sumwire.torch.state import from_tree, to_tree
from sumwire.torch.unsupported import refuse


def broadcast_async_(tensor, root_rank, name=None, **more):
    """Begin to replace tensor by the root's; returns a handle."""
    refuse(more)
    check_root(root_rank)
    return start(tensor, tensor, root_rank, name)


def broadcast_async(tensor, root_rank, name=None, **more):
    """As broadcast_async_, into a new tensor."""
    refuse(more)
    check_root(root_rank)
    check_dense(tensor)
    return start(tensor, torch.empty_like(tensor, requires_grad=False),
                 root_rank, name)


def check_dense(tensor):
    """Types that cannot be summed can be copied."""
    if not isinstance(tensor, torch.Tensor) or tensor.is_sparse:
        ops.check_tensor(tensor)


class Copy(ops.Call):
    """Every worker but the root has nothing to send."""
    __slots__ = ("root",)

    def fill(self, source):
        flat = self.shared.flat.view(self.output.dtype)
        self.view = flat.view(self.output.shape)
        if source is not None:
            self.view.copy_(source.detach())

    def push(self, shared):
        current().broadcast(shared, self.root, self.tag)


def start(tensor, output, root_rank, name):
    check_dense(tensor)
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


def broadcast_(tensor, root_rank, name=None, **more):
    """Replace tensor by the root's."""
    return ops.synchronize(broadcast_async_(tensor, root_rank, name, **more))


class Broadcast(torch.autograd.Function):
    """The root gets the average of the gradients, as in Horovod."""

    @staticmethod
    def forward(ctx, tensor, root_rank, name):
        ctx.root_rank, ctx.name = root_rank, name
        return ops.synchronize(broadcast_async(tensor, root_rank, name))

    @staticmethod
    def backward(ctx, grad):
        mean = ops.allreduce(grad, name=ctx.name and f"{ctx.name}.gradient")
        if current().rank != ctx.root_rank:
            mean.zero_()
        return mean, None, None


def broadcast(tensor, root_rank, name=None, **more):
    """The root's tensor, as a new tensor.  Gradients flow through it."""
    refuse(more)
    check_dense(tensor)
    if tensor.requires_grad and torch.is_grad_enabled():
        return Broadcast.apply(tensor, root_rank, name)
    return ops.synchronize(broadcast_async(tensor, root_rank, name))


def named_tensors(params):
    """A list of (name, tensor) from what users give."""
    is_module = isinstance(params, torch.nn.Module)
    params = list(params.items() if isinstance(params, dict) else
                  () if is_module else params)
    if is_module or any(not (isinstance(p, tuple) and len(p) == 2) for p in params):
        raise ValueError("a state_dict() or named_parameters() is needed: "
                         "something with names")
    return [(n, p) for n, p in params if isinstance(p, torch.Tensor)]


def broadcast_together(tensors, root_rank):
    """Replace the tensors, the same ones on all workers, by the root's."""
    with torch.no_grad():
        for batch in batches([t for t in tensors if t.numel()]):
            data = torch.cat([as_bytes(t.detach().cpu().contiguous())
                              for t in batch])
            channel().stream(data, root_rank)
            if current().rank != root_rank:
                unpack(data, batch)


def batches(tensors):
    """Tensors in packets that fill the blocks, so that many small ones cost
    little and no copy of all is made."""
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
        # clone: a piece of the packet need not be aligned
        t.copy_(data[at:at + n].clone().view(t.dtype).view(t.shape))
        at += n


def broadcast_parameters(params, root_rank=0, **more):
    """Replace the tensors of a model.state_dict(), or of
    model.named_parameters(), by the root's.  Fails on all workers if they
    differ in names, shapes or types."""
    refuse(more)
    check_root(root_rank)
    named = named_tensors(params)
    agree("the tensors of broadcast_parameters",
          {"root_rank": str(root_rank), **{n: describe(t) for n, t in named}})
    broadcast_together([t for _, t in named], root_rank)


def broadcast_optimizer_state(optimizer, root_rank=0, **more):
    """Replace the optimizer's state and options by the root's: tensors, numbers
    and texts."""
    refuse(more)
    check_root(root_rank)
    is_root = current().rank == root_rank
    tree, tensors = None, []
    if is_root:
        try:
            tree = to_tree(optimizer.state_dict(), tensors)
        except Exception as e:  # which all are to get
            tree, tensors = ["refused", f"broadcast_optimizer_state: rank "
                             f"{root_rank}: {type(e).__name__}: {e}"], []
    tree = broadcast_json(tree, root_rank)
    if isinstance(tree, list) and tree[:1] == ["refused"]:
        raise TypeError(" ".join(map(str, tree[1:])))
    state = None
    if not is_root:
        try:
            state = from_tree(tree, tensors)
        except (IndexError, RuntimeError, TypeError, ValueError):
            raise SumwireError("SW_EPROTO", not_ours(
                root_rank, "no optimizer's state")) from None
    broadcast_together(tensors, root_rank)
    if not is_root:
        optimizer.load_state_dict(state)
