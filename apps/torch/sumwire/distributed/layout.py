# layout.py - memory layout of tensors: checks, and copies there and back
# SPDX-License-Identifier: BSD-3-Clause
"""The library reads and writes bytes at an address. source() and target()
return a tensor whose bytes are its elements, in order: the caller's own tensor
if possible, otherwise a copy."""
import bisect
import ctypes
import math
import time

import torch

NEEDS_DENSE = ("sumwire takes dense and contiguous tensors; this one of shape "
               "{} is not: call contiguous() or to_dense()")


def is_usual(t):
    """Return True for a plain tensor that passes check() and check_result(),
    with fewer queries. Some such tensors get False."""
    return (t.is_cpu and t.layout is torch.strided and t.is_contiguous() and
            not (t.is_neg() or t.is_conj() or t._is_zerotensor() or
                 t.is_nested or t.is_quantized) and
            t.untyped_storage().nbytes() >=
            (t.storage_offset() + t.numel()) * t.element_size())


def source(t):
    """Return a plain tensor with the elements of t, for reading."""
    if is_usual(t):
        return t
    check(t)
    return t if is_plain(t) else resolved(t)


def target(t):
    """Return a plain tensor with the elements of t, for writing.  If it is not
    t itself, copy() must take the results to t."""
    if is_usual(t):
        return t
    check_result(t)
    return source(t)


def targets(tensors):
    """Return target() of each tensor, and a function that copies the results to
    the tensors, or None if no copy is needed."""
    flat = [target(t) for t in tensors]
    if len(flat) == 1 and flat[0] is tensors[0]:
        return flat, None
    copied = [(t, f) for t, f in zip(tensors, flat) if f is not t]
    return flat, Back(copied) if copied else None


class Back:
    """Copy results to the caller's tensors."""

    def __init__(self, pairs):
        self.pairs = pairs
        self.n_bytes = sum(map(size_of, (t for t, _ in pairs)))

    def __call__(self):
        copy(self.pairs)


def size_of(t):
    return t.numel() * t.element_size()


def noted(t, began_ns):
    """Return a tensor, with the time and size of the copy that made it, for a
    trace."""
    t.copied = began_ns, time.monotonic_ns(), size_of(t)
    return t


def cloned(t):
    began_ns = time.monotonic_ns()
    return noted(t.clone(), began_ns)


def joined(tensors):
    """Return one plain tensor whose parts are these plain tensors, if they lie
    one after the other in one storage, such as the rows of a matrix or the
    result of chunk(); otherwise None."""
    first = tensors[0]
    place, dtype, end = first.untyped_storage(), first.dtype, first.data_ptr()
    for t in tensors:
        if t.data_ptr() != end or t.dtype != dtype or not is_usual(t) or (
                t.untyped_storage().data_ptr() != place.data_ptr()):
            return None
        end += t.numel() * t.element_size()
    count = (end - first.data_ptr()) // first.element_size()
    return first.detach().as_strided((count,), (1,))


class Rows:
    """Represent one tensor by its parts, plain tensors of one size anywhere in
    host memory. me: the index of this rank's own part."""
    is_cpu = True

    def __init__(self, tensors, me):
        first = tensors[0]
        self.tensors, self.me = tensors, me
        self.shape = torch.Size((len(tensors), first.numel()))
        self.dtype, self.device = first.dtype, first.device
        self.addresses = (ctypes.c_void_p * len(tensors))(
            *(t.data_ptr() for t in tensors))

    def numel(self):
        return math.prod(self.shape)

    def element_size(self):
        return self.tensors[0].element_size()

    def clone(self):
        return torch.cat([t.detach().reshape(-1) for t in self.tensors])


def are_rows(tensors, are_results):
    """Return True if Rows can hold the tensors.  Results must be apart."""
    n = tensors[0].numel()
    if not all(is_usual(t) and t.numel() == n > 0 for t in tensors):
        return False
    spans = sorted(map(span, tensors)) if are_results else []
    return all(end <= start for (_, end), (start, _) in zip(spans, spans[1:]))


@torch.inference_mode()  # lets this thread write inference tensors
def copy(pairs):
    for to, tensor in pairs:
        to.copy_(tensor)


def check(t):
    """Raise ValueError for a tensor that cannot be copied to plain memory."""
    if t.layout != torch.strided or t.is_nested or t.is_quantized:
        raise ValueError(NEEDS_DENSE.format(
            "that varies" if t.is_nested else list(t.shape)))
    if t.device.type not in ("cpu", "cuda"):
        raise ValueError(f"unsupported device {t.device}: pass a tensor on the "
                         f"CPU or on a CUDA device")
    if not t.is_contiguous() and not is_channels_last(t):
        raise ValueError(NEEDS_DENSE.format(list(t.shape)))
    needed = (t.storage_offset() + t.numel()) * t.element_size()
    if t.numel() and not t._is_zerotensor() and (
            t.untyped_storage().nbytes() < needed):
        raise ValueError(f"the memory of this tensor of shape {list(t.shape)} "
                         f"has been freed (its storage has "
                         f"{t.untyped_storage().nbytes()} of {needed} bytes): "
                         f"resize its storage before the call")


def check_result(t):
    """Raise ValueError for a tensor whose elements share memory."""
    if t._is_zerotensor() or has_overlap(t):
        raise ValueError(f"elements of this tensor of shape {list(t.shape)} "
                         f"share memory, so it cannot hold a result: pass its "
                         f"clone()")


def is_plain(t):
    """Return True if the tensor's bytes are its elements, in order.  The bytes
    of a lazily negated or conjugated tensor are other numbers."""
    return (t.is_contiguous() and not t.is_neg() and not t.is_conj() and
            not t._is_zerotensor())


def resolved(t):
    began_ns, t = time.monotonic_ns(), t.detach()
    if t._is_zerotensor():
        return torch.zeros(t.shape, dtype=t.dtype, device=t.device)
    return noted(t.resolve_conj().resolve_neg().contiguous(), began_ns)


def is_channels_last(t):
    return any(t.is_contiguous(memory_format=kind)
               for kind in (torch.channels_last, torch.channels_last_3d))


def has_overlap(t):
    """Return True if two elements may lie at the same address."""
    if t.layout != torch.strided or t.is_nested or t.is_contiguous():
        return False
    reach = 0
    for stride, size in sorted(zip(t.stride(), t.shape)):
        if size > 1:
            if stride <= reach:
                return True
            reach += stride * (size - 1)
    return False


def span(t):
    """Return the first address of a plain tensor, and the address after its
    end. """
    return t.data_ptr(), t.data_ptr() + t.numel() * t.element_size()


def spans_of(t, is_own):
    """Return the spans of a plain tensor or Rows, except, if is_own, of this
    rank's part."""
    if isinstance(t, Rows):
        return [span(row) for i, row in enumerate(t.tensors)
                if not (is_own and i == t.me)]
    return [] if is_own or not t.numel() else [span(t)]


def check_apart(results, what):
    """Raise ValueError if two plain results share memory. Return their sorted
    spans."""
    spans = sorted(s for t in results for s in spans_of(t, False))
    for (_, end), (start, _) in zip(spans, spans[1:]):
        if start < end:
            raise ValueError(f"{what}: two of its results share memory: pass "
                             f"tensors that are apart")
    return spans


def apart(tensors, results, what, is_own):
    """Return the plain tensors.  Copy each tensor that shares memory with a
    result, unless is_own says that it is its own part of the result."""
    spans = check_apart(results, what)

    def has_shared(first, end):
        i = bisect.bisect_left(spans, (end,))
        return i > 0 and first < spans[i - 1][1] and first < end
    return [cloned(t) if any(has_shared(*s) for s in spans_of(t, own)) else t
            for t, own in zip(tensors, is_own)]


def check_sparse(t):
    """Raise ValueError for a sparse tensor that gloo cannot add."""
    if t.layout != torch.sparse_coo or t.device.type != "cpu":
        raise ValueError(f"unsupported sparse tensor ({t.layout} on "
                         f"{t.device}): pass torch.sparse_coo on the CPU, or "
                         f"call to_dense()")


def for_gloo(name, arguments):
    """Return the arguments for gloo's method. gloo uses tensors as stored in
    memory, and writes its first argument, except in send."""
    results = [] if name == "send" else list(flatten(arguments[0]))
    for t in (t for a in arguments for t in flatten(a)):
        if t.device.type != "cpu":
            raise ValueError(
                f"{name} runs on gloo, which supports CPU tensors only; this "
                f"one is on {t.device}: init_process_group("
                f"'cpu:sumwire,cuda:nccl') gives CUDA tensors to NCCL")
    for t in results:
        if target(t) is not t:
            raise ValueError(f"{name}: gloo needs contiguous tensors without a "
                             f"lazy negation or conjugation; this one has shape "
                             f"{list(t.shape)}, strides {list(t.stride())}: pass "
                             f"a new contiguous tensor")

    def source_of(argument):
        if isinstance(argument, (list, tuple)):
            return [source_of(a) for a in argument]
        if not isinstance(argument, torch.Tensor):
            return argument
        return apart([source(argument)], results, name, [False])[0]
    return [a if i == 0 and name != "send" else source_of(a)
            for i, a in enumerate(arguments)]


def flatten(argument):
    """Yield the tensors of an argument: a tensor, or nested lists of
    tensors."""
    if isinstance(argument, torch.Tensor):
        yield argument
    elif isinstance(argument, (list, tuple)):
        for each in argument:
            yield from flatten(each)
