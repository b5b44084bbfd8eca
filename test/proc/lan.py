# lan.py - nodes on a bridge in a network namespace of the test's own
# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of kernel interfaces share: see rig.py.

    lan.enter()
    with Lan(workers=2, mtu=9000) as net:
        net.start_all()

Every daemon has an interface of its own, called like it; their other ends are
ports of one bridge.  No interface has an address: the kernel speaks no IP there.
"""
import os
import subprocess
import sys

from rig import Net

SKIP = 77  # meson's exit code for a test that was skipped


def enter():
    """Go on in a namespace of our own; leaves with SKIP where there is none."""
    if os.environ.get("SUMWIRE_LAN"):
        return
    try:
        p = subprocess.run(["unshare", "-Urn", "ip", "link", "add", "type",
                            "veth"], stderr=subprocess.PIPE, check=False)
        why = p.stderr.decode().strip() if p.returncode else ""
    except OSError as e:
        why = str(e)
    if why:
        print(f"SKIP: no network namespace with veth here: {why}")
        sys.exit(SKIP)
    os.environ["SUMWIRE_LAN"] = "1"
    os.execvp("unshare", ["unshare", "-Urn", sys.executable, *sys.argv])


def ip(*args):
    subprocess.run(["ip", *args], check=True)


class Lan(Net):
    """Servers 10.9.0.1, .2, ...; agents 10.9.0.101, ...; port named lan."""

    def __init__(self, workers=2, servers=1, mtu=9000, job=None, port=None):
        super().__init__(workers, servers, job)
        self.mtu = mtu
        self.addresses = {}
        nodes = [(n, i + 1) for i, n in enumerate(self.servers)]
        nodes += [(n, i + 101) for i, n in enumerate(self.agents)]
        ip("link", "add", "name", "lan", "mtu", str(mtu), "type", "bridge")
        ip("link", "set", "dev", "lan", "up")
        for name, host in nodes:
            self.addresses[name] = f"10.9.0.{host}"
            self.ini[name] = {k: v for k, v in self.ini[name].items()
                              if not k.startswith(("port ", "server "))}
            self.ini[name]["port lan"] = {
                "type": "af_packet", "device": name,
                "ip": self.addresses[name] + "/24", **(port or {})}
            self.plug(name)
        for name in self.agents:
            for server in self.servers:
                self.ini[name][f"server {server}"] = {
                    "ip": self.addresses[server], "port": "lan"}

    def plug(self, name):
        ip("link", "add", "name", name, "mtu", str(self.mtu), "type", "veth",
           "peer", "name", name + "-lan", "mtu", str(self.mtu))
        ip("link", "set", "dev", name + "-lan", "master", "lan", "up")
        ip("link", "set", "dev", name, "up")

    def unplug(self, name):
        ip("link", "del", "dev", name)

    def __exit__(self, kind, value, trace):
        try:
            super().__exit__(kind, value, trace)
        finally:
            for name in [*self.addresses, "lan"]:
                subprocess.run(["ip", "link", "del", "dev", name], check=False,
                               stderr=subprocess.DEVNULL)
