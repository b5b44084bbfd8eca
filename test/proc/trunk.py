# trunk.py - hosts on two bridges, which a slow link joins
# SPDX-License-Identifier: BSD-3-Clause
import json
import socket
import struct
import subprocess

from hosts import Hosts
from lan import ip

TRUNK = "trunk0", "trunk1"
BURST = 3000  # bytes of TBF's bucket
FRAME, PAYLOAD = 14 + 20 + 8 + 54 + 1344, 1344  # as TBF counts them, MTU 1500


# linux/rtnetlink.h and linux/pkt_sched.h define these.
RTM_GETQDISC, NLM_F_REQUEST_ECHO, TC_H_ROOT, TCA_STATS = 38, 9, 0xffffffff, 3
HEADS = 36  # struct nlmsghdr, struct tcmsg


class Backlog:
    """Reads the queues of both directions by netlink: 400 times cheaper than tc,
    which takes a core from the daemons just before it reads."""

    def __init__(self):
        self.sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
        self.sock.settimeout(10)
        self.devices = [socket.if_nametoindex(name) for name in TRUNK]

    def read(self):
        """Return the bytes in the queue of each direction."""
        return [self.bytes_of(device) for device in self.devices]

    def bytes_of(self, device):
        self.sock.send(struct.pack("=IHHII4xiIII", HEADS, RTM_GETQDISC,
                                   NLM_F_REQUEST_ECHO, 0, 0, device, 0,
                                   TC_H_ROOT, 0))
        answer = self.sock.recv(8192)
        at = HEADS
        while at + 4 <= len(answer):
            length, kind = struct.unpack_from("=HH", answer, at)
            if kind == TCA_STATS:
                return struct.unpack_from("=Q7I", answer, at + 4)[7]
            at += max(length + 3 & ~3, 4)
        raise OSError(f"netlink does not tell the queue of device {device}")


class Trunk(Hosts):
    """Two bridges joined by a veth pair that TBF slows down to @mbit, with a
    queue of @kib in each direction. The nodes in @far are behind it."""

    def __init__(self, mbit, kib, far, **keys):
        super().__init__(mtu=1500, **keys)
        ip("link", "add", "name", "far", "type", "bridge")
        ip("link", "set", "dev", "far", "up")
        ip("link", "add", TRUNK[0], "type", "veth", "peer", "name", TRUNK[1])
        for end, bridge in zip(TRUNK, ("lan", "far")):
            ip("link", "set", "dev", end, "master", bridge, "up")
            subprocess.run(
                ["tc", "qdisc", "add", "dev", end, "root", "tbf", "rate",
                 f"{mbit}mbit", "burst", str(BURST), "limit", str(kib << 10)],
                check=True)
        for name in self.hosts:  # a NIC splits frames before a switch receives them
            self.ip(name, "link", "set", "dev", name, "gso_max_segs", "1")
        for name in far:
            ip("link", "set", "dev", name + "-lan", "master", "far")

    @staticmethod
    def trunk():
        """Return the counters of both directions."""
        return [json.loads(subprocess.run(
            ["tc", "-s", "-j", "qdisc", "show", "dev", name],
            capture_output=True, check=True).stdout)[0] for name in TRUNK]

    def __exit__(self, kind, value, trace):
        try:
            super().__exit__(kind, value, trace)
        finally:
            for name in TRUNK[0], "far":
                subprocess.run(["ip", "link", "del", "dev", name], check=False)
