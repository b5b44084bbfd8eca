# gloo.py - gloo's group next to sumwire's, for operations that sumwire lacks
# SPDX-License-Identifier: BSD-3-Clause
"""Since PyTorch 2.8, gloo connects two ranks when both have called it for each
other (contacts.py).  A group that is not used then costs each rank one request
to the store, and no sockets.  Before 2.8, all ranks connect to each other when
the group is made."""
import os

from torch import distributed as dist

from sumwire.distributed import version
from sumwire.distributed.errors import SumwireError

LAZY_SINCE = (2, 8)
LOOPBACK = "127.0.0.1"


def address(attached, home):
    """Return the address at which the other ranks reach this one; None: gloo
    looks up the host's name.  home: None for a group of one rank."""
    if home is None:
        return LOOPBACK
    if attached.ip or home.is_one_machine():
        return attached.ip or LOOPBACK
    try:
        return home.ip()
    except SumwireError:  # agents started by hand may work without an address
        return None


def is_lazy():
    return version() >= LAZY_SINCE


def devices(ip):
    how = {"lazy_init": True} if is_lazy() else {}
    gloo = dist.ProcessGroupGloo
    names = os.environ.get("GLOO_SOCKET_IFNAME", "")
    if names:
        return [gloo.create_device(interface=name, **how)
                for name in names.split(",")]
    return [gloo.create_device(hostname=ip, **how) if ip else
            gloo.create_default_device(**how)]


def group(store, me, n, timeout, ip):
    """Make gloo's group of the same ranks."""
    options = dist.ProcessGroupGloo._Options()
    options._timeout = timeout
    options._devices = devices(ip)
    return dist.ProcessGroupGloo(dist.PrefixStore("gloo/", store), me, n,
                                 options)
