# servers.py - the servers named by SUMWIRE_SERVERS
# SPDX-License-Identifier: BSD-3-Clause
"""A job uses one address family. If a host has addresses of both, rank 0 sends
each a HELLO (PROTOCOL.md, section 2.1), which every server answers, and chooses
the family in which all servers answer. IPv4 has precedence, also if no server
answers: then the agent reports the silent server."""
import os
import re
import secrets
import select
import socket
import struct
import time
import warnings

from sumwire.distributed import addresses
from sumwire.distributed.errors import SumwireError

PORT = 5700  # [server] udp_port
# PROTOCOL.md, section 1: magic, version, type, class, bytes of the payload.
MAGIC, VERSION, HELLO, COOKIE, CONTROL, HELLO_BYTES = 0x4d53, 1, 1, 2, 8, 64
CASTAGNOLI = 0x82f63b78  # polynomial of CRC32C, reflected
WAIT_S, AGAIN_S = 1.0, 0.1  # total wait for answers, and time between two HELLOs


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (CASTAGNOLI if crc & 1 else 0)
    return crc ^ 0xffffffff


def hello(nonce):
    """Return a frame without a key that requests a COOKIE."""
    payload = nonce.ljust(HELLO_BYTES, b"\0")
    head = struct.pack("<HBBBBH38xI", MAGIC, VERSION, HELLO, 0, CONTROL,
                       len(payload), crc32c(payload))
    return head + struct.pack("<I", crc32c(head)) + payload


class Call:
    """Send HELLOs to one address, until a COOKIE returns or the kernel reports
    an error."""

    def __init__(self, ip, port):
        self.frame = hello(secrets.token_bytes(8))
        self.has_answered = False
        self.socket = socket.socket(addresses.family(ip), socket.SOCK_DGRAM)
        self.socket.setblocking(False)
        try:
            self.socket.connect((ip, port))
        except OSError:
            self.close()

    def is_open(self):
        return self.socket is not None

    def close(self):
        if self.is_open():
            self.socket.close()
        self.socket = None

    def send(self):
        try:
            self.socket.send(self.frame)
        except BlockingIOError:
            pass
        except OSError:
            self.close()

    def receive(self):
        """Read a COOKIE, which repeats the nonce at the beginning of its
        payload."""
        try:
            frame = self.socket.recv(2048)
        except BlockingIOError:
            return
        except OSError:  # no socket listens there; the server may be starting
            return
        if frame[3:4] == bytes([COOKIE]) and frame[54:62] == self.frame[54:62]:
            self.has_answered = True
            self.close()


def answering(first, others, wait_s=WAIT_S):
    """Return each (address, port) from which a server answers in time.
    Do not wait for others once all of first have answered."""
    calls = {place: Call(*place) for place in (*first, *others)}
    end = time.monotonic() + wait_s
    again = 0.0
    while (now := time.monotonic()) < end:
        asked = [call for call in calls.values() if call.is_open()]
        if not asked or all(calls[place].has_answered for place in first):
            break
        if now >= again:
            for call in asked:
                call.send()
            again = now + AGAIN_S
            continue
        ready, _, _ = select.select([call.socket for call in asked], [], [],
                                    min(again, end) - now)
        for call in asked:
            if call.socket in ready:
                call.receive()
    for call in calls.values():
        call.close()
    return {place for place, call in calls.items() if call.has_answered}


def of_family(hosts, kind):
    """Return (address, port) of each host; an empty list if a host has no
    address of the family."""
    found = [(ip, port) for ips, port in hosts
             for ip in [ip for ip in ips if addresses.family(ip) == kind][:1]]
    return found if len(found) == len(hosts) else []


def choose(hosts):
    """Return (address, port) of each host; hosts are pairs of addresses and a
    port."""
    v4, v6 = of_family(hosts, socket.AF_INET), of_family(hosts, socket.AF_INET6)
    if not v4 or not v6:  # the agent refuses a mixture
        return v4 or v6 or [(ips[0], port) for ips, port in hosts]
    heard = answering(v4, v6)
    silent = [place for place in v4 if place not in heard]
    if not silent or not heard.issuperset(v6):
        return v4
    warnings.warn(
        f"SUMWIRE_SERVERS: no answer over UDP from "
        f"{', '.join(addresses.with_port(*place) for place in silent)}: using "
        f"IPv6, {', '.join(addresses.with_port(*place) for place in v6)}")
    return v6


def appliances():
    """Return (address, port) of each server in SUMWIRE_SERVERS=host[:port],…
    The host may be an address of either family: fd00::1, [fd00::1]:5700."""
    hosts = []
    text = os.environ.get("SUMWIRE_SERVERS", "")
    for each in filter(None, map(str.strip, text.split(","))):
        whole = re.fullmatch(r"\[(.*)\](?::(.*))?", each)
        if whole:
            host, port = whole.groups()
        else:  # several colons: an IPv6 address
            host, _, port = ((each, "", "") if each.count(":") > 1 else
                             each.partition(":"))
        try:
            ips = [at[0] for *_, at in socket.getaddrinfo(
                host, None, type=socket.SOCK_DGRAM)]
            hosts.append((ips, int(port or PORT)))
        except OSError as e:
            raise SumwireError("SW_ECONF", f"SUMWIRE_SERVERS={text}: machine "
                               f"{socket.gethostname()} cannot resolve "
                               f"{host}: {e.strerror}") from None
        except ValueError as e:
            raise SumwireError("SW_ECONF", f"SUMWIRE_SERVERS={text}: expected "
                               f"HOST[:PORT], found {each}: {e}") from None
    return choose(hosts)
