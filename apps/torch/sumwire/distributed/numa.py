# numa.py - bind an agent to the NUMA node of its interface, or of its GPUs
# SPDX-License-Identifier: BSD-3-Clause
"""This matters on machines with several NUMA nodes.  Linux places a page on the
node that first writes it, so memory follows the agent's cores.  The memory of a
rank with a GPU is an exception: it lies near the GPU (pmd/cuda).  The cores'
work is packets, so the cores should be near the interface.  If the interface is
near no node, they should be near the GPUs."""
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
    """Return the IPv4 address of an interface.  Raise OSError if it has
    none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        answer = fcntl.ioctl(s, SIOCGIFADDR, struct.pack(
            "256s", interface.encode()[:15]))
    return socket.inet_ntoa(answer[20:24])


def interface_of(ip):
    """Return the name of the interface with this address, or None."""
    for _, name in socket.if_nameindex():
        with contextlib.suppress(OSError):
            if address_of(name) == ip:
                return name
    return None


def read(*path):
    """Return the content of a file of /sys, or "" if it does not exist."""
    try:
        with open(os.path.join(SYS, *path), encoding="ascii") as f:
            return f.read().strip()
    except OSError:
        return ""


def numbers(text):
    """Return the set of a list of CPUs, such as {0, 1, 2, 5} for "0-2,5"."""
    found = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def node_of(*device):
    """Return the NUMA node of a device in /sys, or None."""
    node = int(read(*device, "numa_node") or -1)
    return node if node >= 0 else None


def node_of_gpu():
    """Return the NUMA node of this rank's GPU, or None.  Before CUDA is in use,
    return None, because the question would initialize CUDA."""
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
    """Return the CPUs of the interface's NUMA node; if it has none, the CPUs of
    the GPUs' nodes.  Return an empty set if the machine has a single node.
    gpus: nodes of the GPUs, or None for each unknown one."""
    node = node_of("class/net", interface or "", "device")
    nodes = set(gpus) - {None} if node is None else {node}
    if len(numbers(read("devices/system/node/online"))) < 2:
        return set()
    return set().union(*(
        numbers(read(f"devices/system/node/node{n}/cpulist")) for n in nodes))


@contextlib.contextmanager
def unbound():
    """Let this thread use all CPUs of its control group, inside this context,
    even if numactl or OMP_PROC_BIND has bound the rank."""
    was = os.sched_getaffinity(0)
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, range(CPUS_MAX))
    try:
        yield
    finally:
        os.sched_setaffinity(0, was)


def allowed():
    """Return the CPUs of this process's control group."""
    with unbound():
        return os.sched_getaffinity(0)


@contextlib.contextmanager
def bound(cpus):
    """Bind processes that this thread starts inside this context to the given
    CPUs.  If its control group has none of them, allow all its CPUs."""
    with unbound():
        if allowed() & cpus:
            os.sched_setaffinity(0, allowed() & cpus)
        yield
