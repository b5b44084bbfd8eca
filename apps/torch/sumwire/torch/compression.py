# compression.py - 16-bit types on the way
# SPDX-License-Identifier: BSD-3-Clause
import torch


class Compression:
    """What travels instead of f32 and f64.  The server adds 16-bit types in f32
    and rounds once, so a sum of many workers loses no more than one of two."""

    class none:
        dtype = None

    class fp16:
        dtype = torch.float16

    class bf16:
        dtype = torch.bfloat16


def wire_dtype(compression, dtype):
    """The type in which a tensor of dtype travels."""
    small = getattr(compression, "dtype", torch.float32)
    if small not in (None, torch.float16, torch.bfloat16):
        raise ValueError(f"compression={compression!r}: sumwire has "
                         f"Compression.none, .fp16 and .bf16")
    if small is not None and dtype in (torch.float32, torch.float64):
        return small
    return dtype
