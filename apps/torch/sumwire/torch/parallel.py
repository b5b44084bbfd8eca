# parallel.py - DistributedDataParallel, and a hook for torch's own
# SPDX-License-Identifier: BSD-3-Clause
import contextlib
import weakref

import torch

from sumwire.torch import ops
from sumwire.torch.broadcasts import broadcast_parameters, broadcast_together
from sumwire.torch.channel import check_root
from sumwire.torch.compression import Compression, wire_dtype
from sumwire.torch.gradients import Gradients
from sumwire.torch.job import current
from sumwire.torch.staging import stage_of


class DistributedDataParallel(torch.nn.Module):
    """Wrap a module.  When backward() returns, the gradients are averages over
    all ranks, so any optimizer can use them.  All ranks build the same module;
    otherwise the constructor raises ValueError on all of them.

    device_ids         at most one device, as in torch; not needed
    broadcast_buffers  send the root's buffers to all ranks before each forward
                       pass in training
    compression        Compression.none, .fp16 or .bf16
    sparse_as_dense    as in DistributedOptimizer
    root_rank          all ranks start with this rank's parameters and buffers
    hierarchical       as in DistributedOptimizer
    """

    def __init__(self, module, device_ids=None, broadcast_buffers=True,
                 compression=Compression.none, sparse_as_dense=False,
                 root_rank=0, hierarchical=None):
        super().__init__()
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError(f"device_ids={device_ids}: a process has one "
                             f"device; start one process per device")
        check_root(root_rank)
        self.module = module
        self.broadcast_buffers = broadcast_buffers
        self.root_rank = root_rank
        self._is_synchronizing = True
        self._is_in_backward = False
        broadcast_parameters(module.state_dict(), root_rank)
        me = weakref.ref(self)
        self._gradients = Gradients(
            list(module.named_parameters()), compression,
            sparse_as_dense=sparse_as_dense,
            on_gradient=lambda: me()._on_gradient(), hierarchical=hierarchical)

    def forward(self, *args, **kwargs):
        if (self.broadcast_buffers and self.training and
                torch.is_grad_enabled() and self._is_synchronizing):
            broadcast_together(list(self.module.buffers()), self.root_rank)
        return self.module(*args, **kwargs)

    @contextlib.contextmanager
    def no_sync(self):
        """Let backward() add up gradients on this rank, inside this context.
        The next backward() outside the context sends the sum."""
        was, self._is_synchronizing = self._is_synchronizing, False
        try:
            yield
        finally:
            self._is_synchronizing = was

    def synchronize(self):
        """Do nothing: backward() has synchronized.  BytePS has this method."""

    def _on_gradient(self):
        """Return True if gradients of this pass are sent.  The first gradient
        of a pass queues a callback for the end of the pass."""
        if self._is_synchronizing and not self._is_in_backward:
            self._is_in_backward = True
            torch.autograd.Variable._execution_engine.queue_callback(
                self._end_backward)
        return self._is_synchronizing

    def _end_backward(self):
        self._is_in_backward = False
        self._gradients.synchronize()


class Bucket(ops.Call):
    """Average one bucket of torch's DistributedDataParallel."""
    __slots__ = ()

    def fill(self, source):
        self.view = self.shared.flat
        self.view.copy_(source / current().size)


def allreduce_hook(state, bucket):
    """Average a bucket of torch's DistributedDataParallel.  Register it on
    every rank:

        ddp.register_comm_hook(None, sumwire.torch.allreduce_hook)

    state   None, or Compression.fp16 or .bf16: dtype on the wire
    bucket  from DDP, which calls the hook in its backward pass

    Return torch's future of the averages, in the bucket's own buffer.  Each
    bucket is sent as soon as it is ready; the call for the last one waits for
    all, and raises the first SumwireError."""
    job, buffer = current(), bucket.buffer()
    if bucket.index() == 0:
        finish_buckets(job)  # left over if an error ended the previous pass
    call = Bucket(buffer, ops.Sum, 1, stage=stage_of([buffer]))
    if buffer.numel():
        wire = wire_dtype(state or Compression.none, buffer.dtype)
        call.start(f"bucket{bucket.index()}",
                   ("a bucket", buffer.shape, buffer.dtype, wire),
                   (buffer.numel(), wire), bucket.index(), buffer)
    future = torch.futures.Future(
        devices=[buffer.device] if buffer.is_cuda else None)
    job.buckets.append((ops.hold(call), future))
    error = finish_buckets(job) if bucket.is_last() else None
    if error:
        raise error  # DDP would take the exception of a future for a result
    return future


def finish_buckets(job):
    """Wait for all open buckets.  Return the first error, or None."""
    error = None
    for handle, ready in job.buckets:
        try:
            ready.set_result(ops.synchronize(handle))
        except Exception as e:
            error = error or e
            ready.set_exception(e)
    job.buckets = []
    return error
