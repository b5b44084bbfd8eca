# compression.py - smaller types on the way, and compressors of the user's own
# SPDX-License-Identifier: BSD-3-Clause
import torch

SMALL = (torch.float16, torch.bfloat16)


class Compressor:
    """Derive from it for a compression of your own:

        compress(tensor)             returns (smaller tensor, context)
        decompress(tensor, context)  returns the tensor, from a sum of smaller ones

    The smaller tensor has the same shape and type for all tensors of one shape
    and type, at all ranks, since the servers add the ranks' tensors.

    A class that sets dtype to torch.float16 or torch.bfloat16 and keeps both
    methods costs no copy: gradients change their type while they are copied into
    shared memory."""
    dtype = None

    @classmethod
    def compress(cls, tensor):
        """Return the tensor in the type that travels, and the type it had."""
        small = cls.dtype
        if small is None or tensor.dtype not in (torch.float32, torch.float64):
            return tensor, tensor.dtype
        return tensor.to(small), tensor.dtype

    @classmethod
    def decompress(cls, tensor, ctx):
        """Return the tensor in the type it had."""
        return tensor.to(ctx)


class Compression:
    """What travels instead of f32 and f64.  The server adds 16-bit types in f32
    and rounds once, so a sum of many ranks loses no more than one of two."""

    class none(Compressor):
        """Tensors travel as they are."""

    class fp16(Compressor):
        """f32 and f64 travel as f16."""
        dtype = torch.float16

    class bf16(Compressor):
        """f32 and f64 travel as bf16."""
        dtype = torch.bfloat16


def is_own(compression):
    """Does it have methods of the user's own?"""
    def function(method):
        return getattr(method, "__func__", method)
    return any(function(getattr(compression, name, None)) is not
               function(getattr(Compressor, name))
               for name in ("compress", "decompress"))


def check_compression(compression):
    """Raise an error for an object that cannot compress."""
    ok = hasattr(compression, "compress") and hasattr(compression, "decompress")
    if ok and (is_own(compression) or
               getattr(compression, "dtype", None) in (None, *SMALL)):
        return
    raise ValueError(f"compression={compression!r}: pass Compression.none, .fp16, "
                     f".bf16, or a class derived from sumwire.torch.Compressor")


def wire_dtype(compression, dtype):
    """The type in which a tensor of dtype travels."""
    check_compression(compression)
    if is_own(compression):
        raise ValueError(f"compression={compression!r}: allreduce and "
                         f"DistributedOptimizer take a compressor of your own; "
                         f"here pass Compression.none, .fp16 or .bf16")
    small = compression.dtype
    if small is not None and dtype in (torch.float32, torch.float64):
        return small
    return dtype
