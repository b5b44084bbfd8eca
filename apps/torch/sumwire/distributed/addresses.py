# addresses.py - an address of this machine that leads to the others
# SPDX-License-Identifier: BSD-3-Clause
import contextlib
import os
import socket

from torch import distributed as dist

from sumwire.distributed import numa
from sumwire.distributed.errors import SumwireError

ANYWHERE = "192.0.2.1"  # RFC 5737: no host; only the route to it is looked up


def is_loopback(ip):
    return ip.startswith("127.")


def of_interface(interface):
    try:
        return numa.address_of(interface)
    except OSError as e:
        raise SumwireError("SW_ECONF", f"SUMWIRE_IFNAME={interface}: this "
                           f"interface has no IPv4 address: "
                           f"{e.strerror}") from None


def towards(host):
    """Return the source address of packets to the host; the loopback's if no
    route leads there."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect((host, 9))
            return s.getsockname()[0]
        except OSError:
            return "127.0.0.1"


def meeting_point(store):
    """Return a host that all ranks reach: the store's, MASTER_ADDR, or
    None."""
    while isinstance(store, dist.PrefixStore):
        store = store.underlying_store
    return getattr(store, "host", None) or os.environ.get("MASTER_ADDR")


def only_one():
    """Return this machine's only address besides the loopback's; if there are
    several, the default route's."""
    found = set()
    for _, name in socket.if_nameindex():
        with contextlib.suppress(OSError):
            found.add(numa.address_of(name))
    found = [ip for ip in found if not is_loopback(ip)]
    return found[0] if len(found) == 1 else towards(ANYWHERE)


def own(host):
    """Return the address of SUMWIRE_IFNAME, or the one that leads to the host
    (which may be None).  Return None if that is a loopback address, as on the
    host itself if /etc/hosts maps its name to 127.0.1.1."""
    interface = os.environ.get("SUMWIRE_IFNAME")
    if interface:
        return of_interface(interface)
    found = towards(host) if host else only_one()
    return None if is_loopback(found) else found


def among(known, mine):
    """Return this machine's entry of known; if that is None, the address that
    leads to another machine's entry."""
    found = known[mine] or next((towards(ip) for ip in known if ip), None)
    return None if found is None or is_loopback(found) else found


def needed(ip, host):
    """Return ip, or raise an error if it is None."""
    if ip is None:
        raise SumwireError(
            "SW_ECONF", f"no address of this machine leads to the others "
            f"({host or 'neither the store nor MASTER_ADDR names a host'}): "
            f"name the interface in SUMWIRE_IFNAME")
    return ip
