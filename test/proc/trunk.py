# trunk.py - hosts on two bridges, which a slow link joins
# SPDX-License-Identifier: BSD-3-Clause
import json
import subprocess

from hosts import Hosts
from lan import ip

TRUNK = "trunk0", "trunk1"
FRAME, PAYLOAD = 14 + 20 + 8 + 54 + 1344, 1344  # as TBF counts them, MTU 1500


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
                 f"{mbit}mbit", "burst", "3000", "limit", str(kib << 10)],
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
