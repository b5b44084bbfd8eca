# numa.py - an agent near the interface that carries what it sums, or the GPUs
# SPDX-License-Identifier: BSD-3-Clause
"""Of a machine with several NUMA nodes.  Pages lie where they are written first,
so memory follows the cores, but that of a rank with a GPU: it is near that
(pmd/cuda).  Packets are the cores' work, so these are near the interface, wherever
the GPUs are; near the GPUs only where it is near no node."""
import contextlib
import fcntl
import os
import socket
import struct

import torch

SYS = "/sys"
SIOCGIFADDR = 0x8915
CPUS_MAX = 8192


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


def node_of(*device):
    """Its NUMA node, or None."""
    node = int(read(*device, "numa_node") or -1)
    return node if node >= 0 else None


def node_of_gpu():
    """That of this rank's GPU; None too where CUDA is not in use yet, since to
    ask would begin it."""
    if not torch.cuda.is_initialized():
        return None
    p = torch.cuda.get_device_properties(torch.cuda.current_device())
    try:
        address = (f"{p.pci_domain_id:04x}:{p.pci_bus_id:02x}:"
                   f"{p.pci_device_id:02x}.0")
    except AttributeError:  # an older PyTorch
        return None
    return node_of("bus/pci/devices", address)


def cpus_near(interface, gpus=()):
    """Those of its NUMA node, else of those of the GPUs; none where all are as
    near.  gpus: nodes, or None."""
    node = node_of("class/net", interface or "", "device")
    nodes = set(gpus) - {None} if node is None else {node}
    if len(numbers(read("devices/system/node/online"))) < 2:
        return set()
    return set().union(*(
        numbers(read(f"devices/system/node/node{n}/cpulist")) for n in nodes))


@contextlib.contextmanager
def unbound():
    """This thread may use all CPUs of its control group in it, whatever its rank
    is bound to, as by numactl or OMP_PROC_BIND."""
    was = os.sched_getaffinity(0)
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, range(CPUS_MAX))
    try:
        yield
    finally:
        os.sched_setaffinity(0, was)


def allowed():
    """The CPUs of this process's control group."""
    with unbound():
        return os.sched_getaffinity(0)


@contextlib.contextmanager
def bound(cpus):
    """What this thread starts in it runs on those alone of the CPUs of its
    control group; on all if there are none of them."""
    with unbound():
        if allowed() & cpus:
            os.sched_setaffinity(0, allowed() & cpus)
        yield
