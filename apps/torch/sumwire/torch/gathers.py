# gathers.py - allgather, alltoall, reducescatter, sums of sparse tensors
# SPDX-License-Identifier: BSD-3-Clause
"""These operations use the collectives of the library, in the order of calls
(members.py).  A gather of unequal parts, and an alltoall, broadcast each
member's part."""
import pickle

import torch

from sumwire.client import SumwireError
from sumwire.torch import ops
from sumwire.torch.channel import is_global
from sumwire.torch.compression import Compression
from sumwire.torch.job import current, dtype_name
from sumwire.torch.members import Operation
from sumwire.torch.process_sets import global_process_set
from sumwire.torch.reductions import (
    Average, Sum, choose_op, describe, finished, how, is_scaled_first, to_send)


class ArgumentError(SumwireError, ValueError):
    """Report a bad argument.  Scripts of Horovod catch either base class."""


def refused(text):
    return ArgumentError("SW_EINVAL", text)


def members_of(process_set):
    return (global_process_set if is_global(process_set) else
            process_set).members()


def check_rows(what, tensor):
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{what} takes a dense torch.Tensor, not a "
                        f"{type(tensor).__name__}")
    if tensor.is_sparse:
        raise TypeError(f"{what} takes a dense torch.Tensor: pass its "
                        f"to_dense()")
    if not tensor.dim():
        raise refused(f"{what}: the tensor has no first dimension; give it one "
                      f"with reshape(1)")


def like(flat, tensor, rows):
    """Return the result in the tensor's shape, with the given number of rows,
    on the tensor's device."""
    shape = (rows, *tensor.shape[1:])
    return flat.view(shape).to(tensor.device)


def row_size(tensor):
    """Return the number of elements in a row, even if the tensor has no
    rows."""
    return torch.Size(tensor.shape[1:]).numel()


# --- allgather ---

def allgather_async(tensor, name=None, process_set=None):
    """Begin to concatenate the tensors of all ranks, in rank order, along the
    first dimension.  Return a handle; synchronize returns a new tensor of shape
    (rows of all ranks, ...).

    tensor       dense, with at least one dimension; only the size of the first
                 one may differ between ranks
    name         name of the call, the same on all ranks
    process_set  as in allreduce_async_

    All ranks make these calls in the same order.  Raise ValueError for a tensor
    without dimensions, TypeError for a sparse one."""
    check_rows("allgather", tensor)
    members, width = members_of(process_set), row_size(tensor)
    flat = to_send(tensor, tensor.dtype)

    def run(table):
        rows = [rows for rows, _ in table]
        return members.gather_rows(flat, [n * width for n in rows]), sum(rows)
    return ops.hold(members.submit(Operation(
        describe("allgather", tensor, name, f"rows {tuple(tensor.shape[1:])}"),
        run, tensor.shape[0], name=name and f"allgather.{name}",
        after=lambda got: like(got[0], tensor, got[1]))))


class Allgather(torch.autograd.Function):
    """Differentiate an allgather: each rank gets the average of the gradients
    of its part, as in Horovod."""

    @staticmethod
    def forward(ctx, tensor, name, process_set):
        ctx.rows, ctx.process_set = tensor.shape[0], process_set
        return ops.synchronize(allgather_async(tensor, name, process_set))

    @staticmethod
    def backward(ctx, grad):
        mean = ops.allreduce(grad.contiguous(), process_set=ctx.process_set)
        rows = allgather(torch.tensor([ctx.rows]),
                         process_set=ctx.process_set).tolist()
        me = members_of(ctx.process_set).me
        return mean.narrow(0, sum(rows[:me]), ctx.rows), None, None


def needs_grad(tensor):
    return (isinstance(tensor, torch.Tensor) and tensor.requires_grad and
            torch.is_grad_enabled())


def allgather(tensor, name=None, process_set=None):
    """Return the tensors of all ranks, concatenated in rank order along the
    first dimension, as allgather_async does.  Gradients flow through it."""
    if needs_grad(tensor):
        return Allgather.apply(tensor, name, process_set)
    return ops.synchronize(allgather_async(tensor, name, process_set))


def allgather_object(obj, name=None, process_set=None):
    """Return a list of the objects of all ranks, in rank order.  Objects travel
    pickled, and a pickle can execute code: call it only if you trust all ranks.
    """
    data = torch.frombuffer(bytearray(pickle.dumps(obj)), dtype=torch.uint8)
    sizes = allgather(torch.tensor([len(data)]), name and f"{name}.sizes",
                      process_set).tolist()
    parts = allgather(data, name, process_set).split(sizes)
    return [pickle.loads(part.numpy().tobytes()) for part in parts]


# --- alltoall ---

def check_splits(tensor, splits, n):
    """Return the number of rows for each of n members.  Raise ArgumentError for
    splits that do not fit the tensor."""
    rows = tensor.shape[0]
    if splits is None:
        if rows % n:
            raise refused(f"alltoall: {rows} rows cannot be divided equally "
                          f"among {n} ranks: pass splits")
        return [rows // n] * n
    if isinstance(splits, torch.Tensor):
        if splits.dtype != torch.int32:
            raise refused(f"alltoall: splits have dtype {splits.dtype}: "
                          f"expected torch.int32")
        splits = splits.tolist()
    splits = [int(s) for s in splits]
    if len(splits) != n or min(splits) < 0 or sum(splits) > rows:
        raise refused(f"alltoall: splits {splits} for {rows} rows: expected {n} "
                      f"numbers of at least 0 whose sum is at most {rows}")
    return splits


def alltoall_async(tensor, splits=None, name=None, process_set=None):
    """Begin to send rows of the tensor to each rank, in rank order.  Return a
    handle; synchronize returns (tensor of the received rows in rank order,
    received splits).

    tensor  dense, with at least one dimension
    splits  number of rows for each rank, a list or an i32 tensor; its sum is at
            most the number of rows.  None: equal parts.  The received splits
            are an i32 tensor on the CPU: the number of rows from each rank

    All ranks make these calls in the same order.  Raise ValueError for splits
    that do not fit the tensor."""
    check_rows("alltoall", tensor)
    members, width = members_of(process_set), row_size(tensor)
    splits = check_splits(tensor, splits, members.n)
    flat = to_send(tensor, tensor.dtype)[:sum(splits) * width]

    def run(table):
        return exchange(members, flat, [row[1] for row in table], width)

    def after(got):
        rows, received = got
        return (like(rows, tensor, sum(received)),
                torch.tensor(received, dtype=torch.int32))
    return ops.hold(members.submit(Operation(
        describe("alltoall", tensor, name, f"rows {tuple(tensor.shape[1:])}"),
        run, tensor.shape[0], splits, name and f"alltoall.{name}", after)))


def exchange(members, flat, splits, width):
    """Broadcast each member's rows, and keep the rows for this member.  splits
    has the splits of each member.  Return (elements, received splits)."""
    me, parts = members.me, []
    for i, theirs in enumerate(splits):
        part = flat if i == me else torch.empty(sum(theirs) * width,
                                                dtype=flat.dtype)
        members.wait(members.start("broadcast", part, part,
                                   root=members.ranks[i]))
        first = sum(theirs[:me]) * width
        parts.append(part[first:first + theirs[me] * width])
    return torch.cat(parts), [theirs[me] for theirs in splits]


class Alltoall(torch.autograd.Function):
    """Differentiate an alltoall: each gradient returns to the rank that sent
    the row."""

    @staticmethod
    def forward(ctx, tensor, splits, name, process_set):
        output, received = ops.synchronize(alltoall_async(
            tensor, splits, name, process_set))
        ctx.rows = tensor.shape[0]
        ctx.received, ctx.process_set = received, process_set
        ctx.mark_non_differentiable(received)
        return output, received

    @staticmethod
    def backward(ctx, grad, _):
        back, _ = alltoall(grad.contiguous(), ctx.received,
                           process_set=ctx.process_set)
        if back.shape[0] < ctx.rows:  # rows beyond the splits were not sent
            back = torch.cat([back, back.new_zeros(ctx.rows - back.shape[0],
                                                   *back.shape[1:])])
        return back, None, None, None


def alltoall(tensor, splits=None, name=None, process_set=None):
    """Return the rows that all ranks have sent to this one, in rank order.
    With splits, return (tensor, received splits).  Gradients flow through
    it."""
    both = (Alltoall.apply(tensor, splits, name, process_set)
            if needs_grad(tensor) else ops.synchronize(
                alltoall_async(tensor, splits, name, process_set)))
    return both[0] if splits is None else both


# --- reducescatter ---

def split_rows(rows, n):
    """Split rows among n members as evenly as possible; the first members get
    one row more."""
    return [rows // n + (i < rows % n) for i in range(n)]


def reducescatter_async(tensor, op=Average, name=None, prescale_factor=1.0,
                        postscale_factor=1.0, process_set=None,
                        compression=Compression.none):
    """Begin to reduce the tensor over all ranks, and give each rank a part of
    the rows.  Return a handle; synchronize returns a new tensor of shape (rows
    of this rank, ...).  N ranks share R rows: each gets R // N rows, and the
    first R % N ranks get one more.

    tensor  dense, with at least one dimension; the same shape on all ranks
    op      Average, Sum, Min, Max or Product

    Other arguments are those of allreduce_async_.  All ranks make these calls
    in the same order."""
    check_rows("reducescatter", tensor)
    members, op = members_of(process_set), choose_op(None, op)
    dtype_name(tensor.dtype, name or "tensor")
    wire = ops.wire_dtype(compression, tensor.dtype)
    prescale = prescale_factor
    if op is Average and is_scaled_first(tensor.dtype):
        prescale /= members.n
    mine = split_rows(tensor.shape[0], members.n)[members.me]
    flat = padded(to_send(tensor, wire, prescale), tensor, members.n)
    out = torch.empty(len(flat) // members.n, dtype=wire)

    def run(_):
        members.wait(members.start("reduce_scatter", flat, out, op=op.kind))
        return out[:mine * row_size(tensor)]

    def after(part):
        return like(finished(part, tensor, op, postscale_factor, members.n),
                    tensor, mine)
    return ops.hold(members.submit(Operation(
        describe("reducescatter", tensor, name, tuple(tensor.shape), op.name,
                 *how(tensor.dtype, wire, prescale, postscale_factor)),
        run, tensor.shape[0], name=name and f"reducescatter.{name}",
        after=after)))


def padded(flat, tensor, n):
    """Pad the parts of n members to equal sizes, as the library requires."""
    rows, width = tensor.shape[0], row_size(tensor)
    if not rows % n:
        return flat
    parts = torch.zeros(n, (rows // n + 1) * width, dtype=flat.dtype)
    for to, part in zip(parts, flat.split(
            [r * width for r in split_rows(rows, n)])):
        to[:len(part)] = part
    return parts.view(-1)


class Reducescatter(torch.autograd.Function):
    """Differentiate a reducescatter: a row's gradient comes from the rank that
    got the row.  For a sum it is multiplied by the number of ranks, as in
    Horovod."""

    @staticmethod
    def forward(ctx, tensor, options):
        ctx.options = options
        return ops.synchronize(reducescatter_async(tensor, **options))

    @staticmethod
    def backward(ctx, grad):
        op, process_set = ctx.options["op"], ctx.options["process_set"]
        if op not in (Average, Sum):
            raise RuntimeError(f"reducescatter with {op.name} has no gradient: "
                               f"use Average or Sum")
        if op is Sum:
            grad = grad * members_of(process_set).n
        factor = (ctx.options["prescale_factor"] *
                  ctx.options["postscale_factor"])
        grad = grad if factor == 1 else grad * factor
        return allgather(grad.contiguous(), process_set=process_set), None


def reducescatter(tensor, op=Average, name=None, compression=Compression.none,
                  prescale_factor=1.0, postscale_factor=1.0, process_set=None):
    """Return this rank's rows of the average over all ranks, or of the result
    of op.  Gradients flow through it if op is Average or Sum."""
    options = {"op": op, "name": name, "compression": compression,
               "prescale_factor": prescale_factor,
               "postscale_factor": postscale_factor, "process_set": process_set}
    if needs_grad(tensor):
        return Reducescatter.apply(tensor, options)
    return ops.synchronize(reducescatter_async(tensor, **options))


# --- several tensors ---

class Several:
    """Hold the operations behind one handle."""

    def __init__(self, handles):
        self.parts = [ops.take_call(h) for h in handles]

    def is_done(self):
        return all(part.is_done() for part in self.parts)

    def close(self):
        for part in self.parts:
            part.close()

    def finish(self):
        results, error = [], None
        for part in self.parts:
            try:
                results.append(part.finish())
            except SumwireError as e:
                error = error or e
        if error:
            raise error
        return results


def each_name(name, i):
    return name and f"{name}.{i}"


def grouped_allgather_async(tensors, name=None, process_set=None):
    """Begin an allgather of each tensor.  Returns one handle for all; its
    synchronize returns the list."""
    return ops.hold(Several([
        allgather_async(t, each_name(name, i), process_set)
        for i, t in enumerate(tensors)]))


def grouped_allgather(tensors, name=None, process_set=None):
    """Return the allgather of each tensor, as a list.  Gradients flow through
    it."""
    if any(map(needs_grad, tensors)):
        return [allgather(t, each_name(name, i), process_set)
                for i, t in enumerate(tensors)]
    return ops.synchronize(grouped_allgather_async(tensors, name, process_set))


def grouped_reducescatter_async(tensors, op=Average, name=None, **rest):
    """Begin a reducescatter of each tensor.  Return one handle; synchronize
    returns a list.  Arguments are those of reducescatter_async."""
    return ops.hold(Several([
        reducescatter_async(t, op, each_name(name, i), **rest)
        for i, t in enumerate(tensors)]))


def grouped_reducescatter(tensors, op=Average, name=None, **rest):
    """Return this rank's rows of each reduced tensor, as a list.  Gradients
    flow through it."""
    if any(map(needs_grad, tensors)):
        return [reducescatter(t, op, each_name(name, i), **rest)
                for i, t in enumerate(tensors)]
    return ops.synchronize(grouped_reducescatter_async(tensors, op, name, **rest))


# --- sparse tensors ---

class SparseHandle(int):
    """Be a handle that can also be called, as in Horovod."""

    def __call__(self):
        return ops.synchronize(self)


class SparseSum:
    """Concatenate the indices and values of all ranks."""

    def __init__(self, tensor, name, op, process_set):
        self.op, self.n = op, members_of(process_set).n
        self.shape, self.n_sparse = tensor.shape, tensor.sparse_dim()
        self.both = Several([
            allgather_async(tensor._indices().t().contiguous(),
                            name and f"{name}.indices", process_set),
            allgather_async(tensor._values(), name and f"{name}.values",
                            process_set)])
        self.is_done, self.close = self.both.is_done, self.both.close

    def finish(self):
        indices, values = self.both.finish()
        if self.op is Average:
            values = values / self.n
        return torch.sparse_coo_tensor(indices.t(), values, self.shape)


def sparse_allreduce_async(tensor, name=None, op=Average, process_set=None):
    """Begin the average, or sum, of a sparse (COO) tensor over all ranks.
    Return a handle; synchronize(handle) and handle() both wait, and return a
    sparse tensor that is not coalesced: it has the entries of all ranks.  The
    number of entries may differ between ranks, the shape may not.  op is
    Average or Sum.  Raise TypeError for a dense tensor."""
    if not isinstance(tensor, torch.Tensor) or \
            tensor.layout != torch.sparse_coo:
        raise TypeError("sparse_allreduce takes a torch.Tensor that is sparse "
                        "(COO); use allreduce")
    dtype_name(tensor.dtype, name or "tensor")
    return SparseHandle(ops.hold(SparseSum(
        tensor, name, choose_op(None, op, (Average, Sum)), process_set)))


def sparse_allreduce(tensor, name=None, op=Average, process_set=None):
    """Return the average, or sum, of a sparse (COO) tensor over all ranks, as
    sparse_allreduce_async does."""
    return sparse_allreduce_async(tensor, name, op, process_set)()
