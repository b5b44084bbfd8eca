# hosts.py - nodes with addresses of the kernel: on lo, or each in a namespace
# SPDX-License-Identifier: BSD-3-Clause
"""Helpers for tests of ports of type udp: see rig.py and lan.py.

    with Lo(agents=2, servers=2) as net: ...

On lo every daemon has an address of 127.77.0.0/24, which the kernel accepts
without configuration. The daemons have no capability, like an ordinary user's.

    lan.enter()
    with Hosts(agents=2) as net: ...

The kernel routes frames between two addresses of one namespace over lo. So each
of these nodes has a namespace of its own, with an interface that has the node's
name and address. The other end of the interface is a port of a bridge."""
import os
import subprocess

from lan import Lan, ip
from rig import Net

# Several runs of these tests may share lo at the same time. Choose ports by
# process, below the range that the kernel assigns.
UDP = 10000 + os.getpid() % 1300 * 16
NO_RIGHTS = ("setpriv", "--no-new-privs", "--inh-caps=-all",
             "--bounding-set=-all")


def no_rights():
    """Return the command prefix that drops root's rights; empty for a user."""
    if os.geteuid() == 0:
        p = subprocess.run([*NO_RIGHTS, "true"], stderr=subprocess.DEVNULL,
                           check=False)
        return NO_RIGHTS if p.returncode == 0 else ()
    return ()


def without_ports(ini):
    return {k: v for k, v in ini.items()
            if not k.startswith(("port ", "server "))}


class Lo(Net):
    """Servers at 127.77.0.1, .2, ...; agents at 127.77.0.101, ...; port named
    lo."""

    def __init__(self, agents=2, servers=2, colocated=False, port=None,
                 **keys):
        super().__init__(agents, servers, **keys)
        self.hosts = {n: i + 1 for i, n in enumerate(self.servers)}
        self.hosts.update({n: i + 101 for i, n in enumerate(self.agents)})
        for name in self.hosts:
            ini = self.ini[name] = without_ports(self.ini[name])
            ini["port lo"] = {"type": "udp", "ip": self.address(name) + "/24",
                              **(port or {})}
            ini.setdefault("serve", {})["udp_port"] = UDP
        for name in self.agents:
            if colocated:
                self.ini[name]["node"]["role"] = "both"
            for server in self.servers + (self.agents if colocated else []):
                self.ini[name][f"server {server}"] = {
                    "ip": self.address(server), "udp_port": UDP, "port": "lo"}

    def address(self, name):
        return f"127.77.0.{self.hosts[name]}"

    def run(self, name, *args):
        return super().run(name, *no_rights(), *args)


class Hosts(Lan):
    """Nodes with the addresses and port of Lan, where the kernel has the
    addresses.

    Nodes in packet have ports of type af_packet and no address in the kernel.
    """

    def __init__(self, *args, packet=(), port=None, **keys):
        self.packet = packet
        self.holders = {}  # process that keeps the namespace of each node
        super().__init__(*args, port={"type": "udp", **(port or {})}, **keys)

    def inside(self, name, *args):
        """Return @args as a command in the node's namespace."""
        return ("nsenter", f"--net=/proc/{self.holders[name].pid}/ns/net",
                *args)

    def ip(self, name, *args):
        subprocess.run(self.inside(name, "ip", *args), check=True)

    def hold(self, name):
        p = subprocess.Popen(["unshare", "-n", "sh", "-c", "echo; exec cat"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.holders[name] = p
        p.stdout.readline()  # wait until the namespace exists

    def plug(self, device, link=0):
        """Create the interface, and its namespace if necessary."""
        if device not in self.holders:
            self.hold(device)
        ip("link", "add", "name", device + "-lan", "mtu", str(self.mtu),
           "type", "veth", "peer", "name", device, "mtu", str(self.mtu),
           "netns", str(self.holders[device].pid))
        ip("link", "set", "dev", device + "-lan", "master", self.port(link),
           "up")
        if device in self.packet:
            self.ini[device]["port lan"]["type"] = "af_packet"
        else:
            self.ip(device, "address", "add", self.network_address(device),
                    "dev", device, *(["nodad"] if self.is_v6 else []))
        for name in "lo", device:
            self.ip(device, "link", "set", "dev", name, "up")
        self.interfaces.append(device + "-lan")

    def unplug(self, device):
        ip("link", "del", "dev", device + "-lan")
        self.interfaces.remove(device + "-lan")

    def run(self, name, *args):
        """Run the daemon in the namespace of its address."""
        inside = self.inside(name) if name in self.holders else ()
        return super().run(name, *inside, *args)

    def __exit__(self, kind, value, trace):
        try:
            super().__exit__(kind, value, trace)
        finally:
            for p in self.holders.values():
                p.stdin.close()
                p.stdout.close()
                p.wait(30)
