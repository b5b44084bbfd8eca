# nets.py - the network of the peers: shared memory, or two network namespaces
# SPDX-License-Identifier: BSD-3-Clause
import os
import shutil
import subprocess
import sys

MTU = 9000
KERNELS = LEFT, RIGHT = "10.201.0.1", "10.201.0.2"  # addresses of the kernel
OURS = ("10.202.0.1", "10.202.0.2")  # addresses of sumwire's ports


def into_namespaces():
    """Enter a network namespace of our own, in which an ordinary user is root.

    Return the reason why that is not possible, or None."""
    if os.environ.get("SUMWIRE_PEERS_NS") == "1":
        return None
    for program in ("unshare", "nsenter", "ip"):
        if not shutil.which(program):
            return f"{program} is not installed"
    for options in (["-n"], ["-Urn"]):
        p = subprocess.run(["unshare", *options, "true"], capture_output=True,
                           text=True, check=False)
        if p.returncode == 0:
            os.environ["SUMWIRE_PEERS_NS"] = "1"
            os.execvp("unshare", ["unshare", *options, sys.executable,
                                  *sys.argv])
    return p.stderr.strip()


def ip(*words):
    subprocess.run(["ip", *words], check=True)


class Veth:
    """This namespace and another, joined by two pairs of interfaces.

    left and right have addresses of the kernel. sw0 and sw1 have none, because
    the kernel would answer our datagrams."""

    def __enter__(self):
        # The other namespace lives as long as this process.
        self.holder = subprocess.Popen(
            ["unshare", "-n", "sh", "-c", "echo; exec cat"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.holder.stdout.readline()
        there = str(self.holder.pid)
        for here_name, there_name in (("left", "right"), ("sw0", "sw1")):
            ip("link", "add", here_name, "mtu", str(MTU), "type", "veth",
               "peer", "name", there_name, "mtu", str(MTU), "netns", there)
        ip("addr", "add", LEFT + "/24", "dev", "left")
        subprocess.run(self.inside("ip", "addr", "add", RIGHT + "/24", "dev",
                                   "right"), check=True)
        for name in ("lo", "left", "sw0"):
            ip("link", "set", name, "up")
        for name in ("lo", "right", "sw1"):
            subprocess.run(self.inside("ip", "link", "set", name, "up"),
                           check=True)
        return self

    def __exit__(self, kind, value, trace):
        self.holder.stdin.close()
        self.holder.wait(10)

    def inside(self, *args):
        """Return @args as a command in the other namespace."""
        return ["nsenter", f"--net=/proc/{self.holder.pid}/ns/net", *args]
