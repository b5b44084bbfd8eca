# lan.py - nodes on a bridge in a network namespace of the test
# SPDX-License-Identifier: BSD-3-Clause
"""Helpers for tests of kernel interfaces: see rig.py.

    lan.enter()
    with Lan(agents=2, mtu=9000) as net:
        net.start_all()

Every daemon has an interface of the same name; the other ends of the interfaces
are ports of one bridge. No interface has an address, so the kernel does not
speak IP there."""
import os
import socket
import subprocess
import sys

from rig import Net

SKIP = 77  # meson's exit code for a skipped test
ETH_P_ALL = 3  # the only type that also shows frames sent by a bridge
HEADS = 96  # Ethernet, IPv4, UDP and our header


def why_not(kind):
    """Return why this process cannot have a namespace with interfaces; "": it
    can."""
    try:
        p = subprocess.run(["unshare", kind, "ip", "link", "add", "type",
                            "veth"], stderr=subprocess.PIPE, check=False)
        return p.stderr.decode().strip() if p.returncode else ""
    except OSError as e:
        return str(e)


def enter(kind="-Urn"):
    """Enter a namespace of our own; exit with SKIP if that is impossible.

    -Urn works for every user; -n is for root, and keeps root's rights outside
    the namespace."""
    if os.environ.get("SUMWIRE_LAN"):
        return
    why = why_not(kind)
    if why:
        print(f"SKIP: no network namespace with veth here: {why}")
        sys.exit(SKIP)
    os.environ["SUMWIRE_LAN"] = "1"
    os.execvp("unshare", ["unshare", kind, sys.executable, *sys.argv])


def ip(*args):
    subprocess.run(["ip", *args], check=True)


def batch(lines):
    subprocess.run(["ip", "-batch", "-"], input=lines.encode(), check=True)


class Capture:
    """Records frames at the far end of a daemon's interface from now on."""

    def __init__(self, name):
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                                  socket.htons(ETH_P_ALL))
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self.sock.bind((name + "-lan", ETH_P_ALL))
        self.sock.setblocking(False)

    def frames(self):
        """Return (type, class, DSCP) of the captured frames of ours, each once."""
        out = set()
        while True:
            try:
                frame, where = self.sock.recvfrom(HEADS)
            except BlockingIOError:
                return out
            outer, ours = frame[14:42], frame[42:]
            if where[2] != socket.PACKET_OUTGOING and ours[:2] == b"\x53\x4d":
                out.add((ours[3], ours[5], outer[1] >> 2))


class Lan(Net):
    """Servers at 10.9.0.1, .2, ...; agents at 10.9.0.101, ...; port named lan.

    With more links every node has as many interfaces, a, a_1, ..., on bridges
    and ports lan, lan1, ... and in networks 10.9.0, 10.9.1, .... The job's
    servers, colocated ones included, use the links in turn. With is_v6 the
    networks are fd00:0::/64, fd00:1::/64, ..."""

    def __init__(self, agents=2, servers=1, mtu=9000, job=None, port=None,
                 links=1, colocated=False, lcores=1, is_v6=False):
        super().__init__(agents, servers, job, lcores=lcores)
        self.mtu, self.is_v6 = mtu, is_v6
        self.links = range(links)
        self.interfaces = []
        self.hosts = {n: i + 1 for i, n in enumerate(self.servers)}
        self.hosts.update({n: i + 101 for i, n in enumerate(self.agents)})
        for link in self.links:
            ip("link", "add", "name", self.port(link), "mtu", str(mtu),
               "type", "bridge")
            ip("link", "set", "dev", self.port(link), "up")
        for name in self.hosts:
            ini = self.ini[name] = {
                k: v for k, v in self.ini[name].items()
                if not k.startswith(("port ", "server "))}
            for link in self.links:
                device = self.interface(name, link)
                ini[f"port {self.port(link)}"] = {
                    "type": "af_packet", "device": device,
                    "ip": self.network_address(name, link), **(port or {})}
                self.plug(device, link)
        summing = self.servers + (self.agents if colocated else [])
        for name in self.agents:
            if colocated:
                self.ini[name]["node"]["role"] = "both"
            for i, server in enumerate(summing):
                link = i % links
                self.ini[name][f"server {server}"] = {
                    "ip": self.address(server, link), "port": self.port(link)}

    @staticmethod
    def port(link):
        return f"lan{link}" if link else "lan"

    @staticmethod
    def interface(name, link=0):
        return f"{name}_{link}" if link else name

    def address(self, name, link=0):
        host = self.hosts[name]
        return f"fd00:{link}::{host}" if self.is_v6 else f"10.9.{link}.{host}"

    def network_address(self, name, link=0):
        return self.address(name, link) + ("/64" if self.is_v6 else "/24")

    def wire(self, device, link=0):
        """Return the commands that create an interface, as lines for ip -batch."""
        return (f"link add name {device} mtu {self.mtu} type veth "
                f"peer name {device}-lan mtu {self.mtu}\n"
                f"link set dev {device}-lan master {self.port(link)} up\n"
                f"link set dev {device} up\n")

    def plug(self, device, link=0):
        batch(self.wire(device, link))
        self.interfaces.append(device)

    def unplug(self, device):
        ip("link", "del", "dev", device)

    def replug(self, device):
        """Remove and recreate the interface; a periodic check may see neither
        event."""
        batch(f"link del dev {device}\n" + self.wire(device))

    def __exit__(self, kind, value, trace):
        try:
            super().__exit__(kind, value, trace)
        finally:
            for name in [*self.interfaces, *map(self.port, self.links)]:
                subprocess.run(["ip", "link", "del", "dev", name], check=False,
                               stderr=subprocess.DEVNULL)
