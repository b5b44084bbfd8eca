# __init__.py - sumwire: sums of tensors over all workers of a job
# SPDX-License-Identifier: BSD-3-Clause
"""Gradients summed over plain Ethernet.

    import sumwire.torch as hvd     # the interface of Horovod and BytePS

sumwire.client is what lies below it and knows no framework.
"""
from sumwire.client import SumwireError

__all__ = ["SumwireError"]
__version__ = "0.1.0"
