# broadcasts.py - one worker's tensors, models and optimizers, to all
# SPDX-License-Identifier: BSD-3-Clause
import torch

from sumwire.torch import ops
from sumwire.torch.channel import (
    BLOCK_BYTES, N_BLOCKS, agree, as_bytes, broadcast_object, channel,
    check_root, describe)
from sumwire.torch.job import current


def broadcast_async_(tensor, root_rank, name=None):
    """Begin to replace tensor by the root's; returns a handle."""
    check_root(root_rank)
    return start(tensor, tensor, root_rank, name)


def broadcast_async(tensor, root_rank, name=None):
    """As broadcast_async_, into a new tensor."""
    check_root(root_rank)
    return start(tensor, torch.empty_like(tensor, requires_grad=False),
                 root_rank, name)


def start(tensor, output, root_rank, name):
    """Begin; every worker but the root has nothing to send."""
    ops.check_tensor(tensor)
    call = ops.Call(output, ops.Sum, 1)
    if tensor.numel():
        ops.open_place(call, f"broadcast.{name}" if name else None,
                       tensor.numel(), tensor.dtype, 0)
        call.view = call.shared.flat.view(tensor.shape)
        if current().rank == root_rank:
            call.view.copy_(tensor.detach())
        current().broadcast(call.shared, root_rank)
    return ops.hold(call)


def broadcast_(tensor, root_rank, name=None):
    """Replace tensor by the root's."""
    return ops.synchronize(broadcast_async_(tensor, root_rank, name))


def broadcast(tensor, root_rank, name=None):
    """The root's tensor, as a new tensor."""
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


def broadcast_parameters(params, root_rank=0):
    """Replace the tensors of a model.state_dict(), or of
    model.named_parameters(), by the root's.  Fails on all workers if they
    differ in names, shapes or types."""
    check_root(root_rank)
    named = named_tensors(params)
    agree("the tensors of broadcast_parameters",
          {n: describe(t) for n, t in named})
    broadcast_together([t for _, t in named], root_rank)


def broadcast_optimizer_state(optimizer, root_rank=0):
    """Replace the optimizer's state and options by the root's."""
    state = broadcast_object(optimizer.state_dict(), root_rank)
    if current().rank != root_rank:
        optimizer.load_state_dict(state)
