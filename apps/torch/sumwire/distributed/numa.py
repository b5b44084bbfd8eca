# numa.py - an agent near the interface that carries what it sums
# SPDX-License-Identifier: BSD-3-Clause
"""Of a machine with several NUMA nodes.  Pages lie where they are written first,
so memory follows the cores."""
import contextlib
import fcntl
import os
import socket
import struct

SYS = "/sys"
SIOCGIFADDR = 0x8915


def address_of(interface):
    """Its IPv4 address; an OSError where it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        answer = fcntl.ioctl(s, SIOCGIFADDR, struct.pack(
            "256s", interface.encode()[:15]))
    return socket.inet_ntoa(answer[20:24])


def interface_of(ip):
    """The one that has this address, or None."""
    for _, name in socket.if_nameindex():
        with contextlib.suppress(OSError):
            if address_of(name) == ip:
                return name
    return None


def read(*path):
    """A line of /sys; "" where there is none."""
    try:
        with open(os.path.join(SYS, *path), encoding="ascii") as f:
            return f.read().strip()
    except OSError:
        return ""


def numbers(text):
    """{0, 1, 2, 5} of "0-2,5"."""
    found = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def cpus_near(interface):
    """Those of its NUMA node; none where all are as near."""
    node = read("class/net", interface or "", "device/numa_node")
    if (not node or int(node) < 0 or
            len(numbers(read("devices/system/node/online"))) < 2):
        return set()
    return numbers(read(f"devices/system/node/node{int(node)}/cpulist"))


@contextlib.contextmanager
def bound(cpus):
    """What this thread starts in it runs on those alone of the CPUs that this
    process may use; on all if there are none of them."""
    was = os.sched_getaffinity(0)
    os.sched_setaffinity(0, was & cpus or was)
    try:
        yield
    finally:
        os.sched_setaffinity(0, was)
