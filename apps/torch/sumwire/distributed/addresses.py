# addresses.py - choose the address at which other machines reach this one
# SPDX-License-Identifier: BSD-3-Clause
"""SUMWIRE_ADDRESS names the address itself, SUMWIRE_IFNAME the interface:

    eth1,ib        interfaces whose names are or begin with one of these
    =eth1,eth2     interfaces with one of these names
    ^docker,lo     all other interfaces; ^=eth1 excludes a whole name
    10.9.0.0/24    the interface with an address of this network; fd00::/64 too

Without either, the route to the store's host decides.  Addresses are of either
family, but all agents of a job need the same one.  An interface counts with its
IPv4 address, and with its IPv6 address if it has no other or a network names
it.  Link-local addresses do not count."""
import contextlib
import ipaddress
import os
import socket

from torch import distributed as dist

from sumwire.distributed import numa
from sumwire.distributed.errors import SumwireError

# Addresses of RFC 5737 and RFC 3849, only to look up the route.
ANYWHERE = ("192.0.2.1", "2001:db8::1")


def is_loopback(ip):
    return ip.startswith("127.") or ip == "::1"


def family(ip):
    return socket.AF_INET6 if ":" in ip else socket.AF_INET


def with_port(ip, port):
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


def interfaces():
    """Return (name, address) of each interface that has an address."""
    found = []
    for _, name in socket.if_nameindex():
        found += [(name, ip) for ip in numa.addresses_of(name)]
    return found


def first_family(found):
    """Return the entries with IPv4 addresses, or all if none has one."""
    return [(n, ip) for n, ip in found if ":" not in ip] or found


def fit(part, name, ip, is_exact):
    """Return how well an interface matches one entry of SUMWIRE_IFNAME: 2 for
    its whole name or its network, 1 for the beginning of its name, 0 for no
    match."""
    if "/" in part:
        return 2 * (ipaddress.ip_address(ip) in
                    ipaddress.ip_network(part, strict=False))
    return 2 if name == part else int(name.startswith(part) and not is_exact)


def of_interface(pattern, host):
    """Return the address of the interface that SUMWIRE_IFNAME selects.  If
    several match, prefer a whole name to a prefix, then the interface towards
    the host.  Raise SumwireError if none matches."""
    found = interfaces()
    is_excluded = pattern.startswith("^")
    is_exact = pattern.lstrip("^").startswith("=")
    parts = list(filter(None, map(str.strip, pattern.lstrip("^=").split(","))))
    try:
        fits = [(max((fit(part, name, ip, is_exact) for part in parts),
                     default=0), ip) for name, ip in found]
    except ValueError as e:
        raise SumwireError("SW_ECONF", f"SUMWIRE_IFNAME={pattern}: {e}"
                           ) from None
    if is_excluded:
        fits = [(n, ip) for n, ip in fits if not n and not is_loopback(ip)]
    else:
        best = max(fits, default=(0, ""))[0]
        fits = [(n, ip) for n, ip in fits if n and n == best]
    chosen = [ip for _, ip in first_family(fits)]
    if not chosen:
        there = ", ".join(f"{name} {ip}" for name, ip in found) or "none"
        raise SumwireError(
            "SW_ECONF", f"SUMWIRE_IFNAME={pattern}: no interface of machine "
            f"{socket.gethostname()} with an address matches; there are: "
            f"{there}")
    if len(chosen) > 1 and host:
        way = towards(host)
        return way if way in chosen else chosen[0]
    return chosen[0]


def checked(ip):
    """Return SUMWIRE_ADDRESS. Raise SumwireError if it is not an address of
    this machine."""
    try:
        with socket.socket(family(ip), socket.SOCK_DGRAM) as s:
            s.bind((ip, 0))
    except OSError as e:
        raise SumwireError(
            "SW_ECONF", f"SUMWIRE_ADDRESS={ip}: not an address of machine "
            f"{socket.gethostname()}: {e.strerror or e}") from None
    return ip


def towards(host):
    """Return the source address of packets to the host, or 127.0.0.1 if no
    route leads there.  If a host has both families, IPv4 comes first."""
    try:
        hosts = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)
    except OSError:
        hosts = []
    for kind, *_, at in sorted(hosts, key=lambda h: h[0] == socket.AF_INET6):
        with contextlib.suppress(OSError), \
                socket.socket(kind, socket.SOCK_DGRAM) as s:
            s.connect(at)
            found = s.getsockname()[0]
            if not found.startswith("fe80:"):
                return found
    return "127.0.0.1"


def meeting_point(store):
    """Return a host that all ranks reach: the store's host, or MASTER_ADDR, or
    None."""
    while isinstance(store, dist.PrefixStore):
        store = store.underlying_store
    return getattr(store, "host", None) or os.environ.get("MASTER_ADDR")


def only_one():
    """Return this machine's only address besides the loopback's.  If it has
    several, return the address of the default route."""
    found = {ip for _, ip in first_family(
        [(n, ip) for n, ip in interfaces() if not is_loopback(ip)])}
    if len(found) == 1:
        return found.pop()
    ways = [towards(host) for host in ANYWHERE]
    return next((ip for ip in ways if not is_loopback(ip)), ways[0])


def own(host):
    """Return the address that the variables select, or the address that leads to
    the host, which may be None.  Return None for a loopback address: on the
    host itself /etc/hosts may map its name to 127.0.1.1."""
    if os.environ.get("SUMWIRE_ADDRESS"):
        return checked(os.environ["SUMWIRE_ADDRESS"])
    if os.environ.get("SUMWIRE_IFNAME"):
        return of_interface(os.environ["SUMWIRE_IFNAME"], host)
    found = towards(host) if host else only_one()
    return None if is_loopback(found) else found


def among(known, mine):
    """Return this machine's entry of known; without one, the address that leads
    to another machine's entry, or None."""
    found = known[mine] or next((towards(ip) for ip in known if ip), None)
    return None if found is None or is_loopback(found) else found


def needed(ip, host):
    """Return ip.  Raise SumwireError if no address was found."""
    if ip is None:
        raise SumwireError(
            "SW_ECONF", f"no address of machine {socket.gethostname()} leads "
            f"to the others "
            f"({host or 'neither the store nor MASTER_ADDR names a host'}): "
            f"name the interface in SUMWIRE_IFNAME, or the address in "
            f"SUMWIRE_ADDRESS")
    return ip
