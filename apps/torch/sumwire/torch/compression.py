# compression.py - smaller types on the wire, and the user's own compressors
# SPDX-License-Identifier: BSD-3-Clause
import torch

SMALL = (torch.float16, torch.bfloat16)


class Compressor:
    """Derive from this class to write your own compression:

        compress(tensor)             returns (smaller tensor, context)
        decompress(tensor, context)  returns the tensor from the sum of the
                                     smaller ones

    The servers add the smaller tensors of all ranks.  Therefore compress() must
    return one shape and dtype, on all ranks, for all tensors of one shape and
    dtype.

    A class that sets dtype to torch.float16 or torch.bfloat16 and keeps both
    methods costs no extra copy: sumwire converts gradients while it copies them
    into shared memory."""
    dtype = None

    @classmethod
    def compress(cls, tensor):
        """Return the tensor in the dtype that travels, and its own dtype."""
        small = cls.dtype
        if small is None or tensor.dtype not in (torch.float32, torch.float64):
            return tensor, tensor.dtype
        return tensor.to(small), tensor.dtype

    @classmethod
    def decompress(cls, tensor, ctx):
        """Return the tensor in the dtype that compress() returned."""
        return tensor.to(ctx)


class Compression:
    """Choose the dtype in which f32 and f64 tensors travel.  The server adds
    16-bit types in f32 and rounds once, so the error does not grow with the
    number of ranks."""

    class none(Compressor):
        """Send tensors in their own dtype."""

    class fp16(Compressor):
        """Send f32 and f64 tensors as f16."""
        dtype = torch.float16

    class bf16(Compressor):
        """Send f32 and f64 tensors as bf16."""
        dtype = torch.bfloat16


def is_own(compression):
    """Return True if the compression has the user's own methods."""
    def function(method):
        return getattr(method, "__func__", method)
    return any(function(getattr(compression, name, None)) is not
               function(getattr(Compressor, name))
               for name in ("compress", "decompress"))


def check_compression(compression):
    """Raise ValueError for an object that is no compression."""
    ok = hasattr(compression, "compress") and hasattr(compression, "decompress")
    if ok and (is_own(compression) or
               getattr(compression, "dtype", None) in (None, *SMALL)):
        return
    raise ValueError(f"compression={compression!r}: pass Compression.none, .fp16, "
                     f".bf16, or a class derived from sumwire.torch.Compressor")


def wire_dtype(compression, dtype):
    """Return the dtype in which a tensor of dtype travels.  Raise ValueError
    for a compression with the user's own methods."""
    check_compression(compression)
    if is_own(compression):
        raise ValueError(f"compression={compression!r}: allreduce and "
                         f"DistributedOptimizer take a compressor of your own; "
                         f"here pass Compression.none, .fp16 or .bf16")
    small = compression.dtype
    if small is not None and dtype in (torch.float32, torch.float64):
        return small
    return dtype
