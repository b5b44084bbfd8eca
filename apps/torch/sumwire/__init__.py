# __init__.py - sumwire: sums of tensors over all ranks of a job
# SPDX-License-Identifier: BSD-3-Clause
"""Sum gradients over plain Ethernet.

    import sumwire.torch as hvd     # the interface of Horovod and BytePS
    import sumwire.distributed      # the backend "sumwire" of torch.distributed

sumwire.client is the layer below both, and does not depend on PyTorch.  Every
failure of a job raises SumwireError.
"""
import os
import re
from importlib import metadata

from sumwire.client import SumwireError

__all__ = ["SumwireError"]


def __getattr__(name):
    if name == "__version__":
        return _version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _version():
    """Return the version in meson.build if this is a checkout, otherwise the
    version of the installed package."""
    path = os.path.join(os.path.dirname(__file__), "../../../meson.build")
    try:
        with open(path, encoding="utf-8") as f:
            found = re.match(r"[^(]*project\('sumwire', .*version: '([^']+)'",
                             f.read())
    except OSError:
        found = None
    return found[1] if found else metadata.version("sumwire")
