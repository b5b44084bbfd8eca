# reductions.py - reduction operations, and reductions in process sets
# SPDX-License-Identifier: BSD-3-Clause
import torch

from sumwire.torch.compression import wire_dtype
from sumwire.torch.job import current, dtype_name
from sumwire.torch.members import Operation


class Op:
    """Name a reduction over the ranks."""

    def __init__(self, name, kind):
        self.name, self.kind = name, kind  # kind: the library's name

    def __repr__(self):
        return f"sumwire.torch.{self.name}"


Average, Sum = Op("Average", "sum"), Op("Sum", "sum")
Min, Max, Product = Op("Min", "min"), Op("Max", "max"), Op("Product", "prod")
Adasum = Op("Adasum", None)  # exists only to be refused
OPS = (Average, Sum, Min, Max, Product)


def choose_op(average, op, among=OPS):
    if op is not None and average is not None:
        raise ValueError("average and op mean the same: pass one of them")
    if op is None:
        op = Sum if average is False else Average
    if op is Adasum:
        raise NotImplementedError("sumwire has no Adasum: use op=Average or "
                                  "op=Sum")
    if op not in among:
        raise ValueError(f"op={op!r}: pass one of "
                         f"{', '.join(o.name for o in among)} of sumwire.torch")
    return op


def scaled(tensor, factor):
    """Return the product in the tensor's dtype.  An integer tensor times a
    whole number is exact; times a fraction it is computed in f64 and truncated,
    as Horovod does."""
    if factor == 1:
        return tensor
    if tensor.is_floating_point():
        return tensor * factor
    if tensor.dtype != torch.bool and float(factor).is_integer():
        return tensor * int(factor)
    return (tensor.double() * factor).to(tensor.dtype)


def divide(output, op, factor, size=None):
    """Turn a sum over size ranks, by default all, into the result of op, and
    multiply it by factor.  Averages of integers are rounded towards zero, as
    Horovod's and NCCL's are.  Raise TypeError for the average of a bool."""
    size = size or current().size
    if op is Average and not is_scaled_first(output.dtype):
        if output.dtype == torch.bool:
            raise TypeError("cannot average a tensor of torch.bool: use "
                            "op=sumwire.torch.Sum, a logical or")
        if output.is_floating_point():
            output.div_(size)
        else:
            output.div_(size, rounding_mode="trunc")
    if factor != 1:
        output.copy_(scaled(output, factor))


def is_scaled_first(dtype):
    """Return True for dtypes that are divided before they are added.  These are
    16-bit floats, because the largest f16 is 65504."""
    return dtype in (torch.float16, torch.bfloat16)


# --- in a process set ---

def describe(what, tensor, name, *details):
    """Return the description of a call, which must be equal at all members."""
    words = [what, f"'{name}'" if name else "", "of", str(tensor.dtype)[6:],
             *map(str, details)]
    return " ".join(filter(None, words))


def to_send(tensor, dtype, prescale=1):
    """Return a flat, scaled copy of the tensor on the CPU, in the given
    dtype."""
    tensor = scaled(tensor.detach(), prescale)
    flat = torch.empty(tensor.numel(), dtype=dtype)
    flat.view(tensor.shape).copy_(tensor)
    return flat


def finished(flat, tensor, op, postscale, size):
    """Return the reduced result in the tensor's dtype."""
    result = flat.to(tensor.dtype)
    divide(result, op, postscale, size)
    return result


def reduce_in(process_set, tensor, output, op, name, compression, prescale,
              postscale):
    """Begin an allreduce among the members of a process set, and return its
    Operation."""
    members = process_set.members()
    wire = wire_dtype(compression, tensor.dtype)
    dtype_name(wire, name or "tensor")
    if op is Average and is_scaled_first(tensor.dtype):
        prescale /= members.n
    flat = to_send(tensor, wire, prescale)

    def run(_):
        members.wait(members.start("all_reduce", flat, flat, op=op.kind))
        return flat

    def after(flat):
        result = finished(flat, tensor, op, postscale, members.n)
        return write(output, result)
    return members.submit(Operation(
        describe("allreduce", tensor, name, tuple(tensor.shape), op.name,
                 *how(tensor.dtype, wire, prescale, postscale)),
        run, name=name and f"allreduce.{name}", after=after))


def broadcast_in(process_set, tensor, output, root_rank, name):
    """Begin a broadcast among the members of a process set, and return its
    Operation."""
    members = process_set.members()
    flat = to_send(tensor, tensor.dtype)

    def run(_):
        members.wait(members.start("broadcast", flat, flat, root=root_rank))
        return flat
    return members.submit(Operation(
        describe("broadcast", tensor, name, tuple(tensor.shape),
                 f"root {root_rank}"),
        run, name=name and f"broadcast.{name}",
        after=lambda flat: write(output, flat)))


def write(output, flat):
    """Copy the result into output, and return output."""
    with torch.no_grad():
        output.copy_(flat.view(output.shape))
    return output


def how(dtype, wire, prescale, postscale):
    """Return words for options that differ from their defaults."""
    return tuple(w for w in (
        f"as {wire}" if wire != dtype else None,
        f"prescale_factor {prescale}" if prescale != 1 else None,
        f"postscale_factor {postscale}" if postscale != 1 else None))
