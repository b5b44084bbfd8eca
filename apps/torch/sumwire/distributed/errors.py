# errors.py - the error that users of torch.distributed catch
# SPDX-License-Identifier: BSD-3-Clause
from torch import distributed as dist

from sumwire import client

# PyTorch before 2.0 has no DistBackendError.
_Base = getattr(dist, "DistBackendError", RuntimeError)


class SumwireError(client.SumwireError, _Base):
    """Report an error as a sumwire.SumwireError that is also a
    dist.DistBackendError.  name and code tell the kind, for example
    "SW_ETIMEDOUT" and -5."""
