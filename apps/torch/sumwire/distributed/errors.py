# errors.py - what users of torch.distributed catch
# SPDX-License-Identifier: BSD-3-Clause
from torch import distributed as dist

from sumwire import client

# before PyTorch 2.0 there is none
_Base = getattr(dist, "DistBackendError", RuntimeError)


class SumwireError(client.SumwireError, _Base):
    """A sumwire.SumwireError that is a dist.DistBackendError, too.  name and
    code say what happened: "SW_ETIMEDOUT" and -5."""
