# numa.py - bind an agent to the NUMA node of its interface, or of its GPUs
# SPDX-License-Identifier: BSD-3-Clause
"""This matters on machines with several NUMA nodes. Linux places a page on the
node that first writes it, so memory follows the agent's cores. The memory of a
rank with a GPU is an exception: it is near the GPU (pmd/cuda). The cores
process packets, so they should be near the interface. If the interface is near
no node, they should be near the GPUs."""
import contextlib
import fcntl
import ipaddress
import os
import socket
import struct
import warnings

import torch

SYS = "/sys"
CGROUP = "/proc/self/cgroup"
SIOCGIFADDR = 0x8915
LINK_LOCAL = "20"  # a scope of /proc/net/if_inet6
CPUS_MAX = 8192


def address_of(interface):
    """Return the IPv4 address of an interface.  Raise OSError if it has
    none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        answer = fcntl.ioctl(s, SIOCGIFADDR, struct.pack(
            "256s", interface.encode()[:15]))
    return socket.inet_ntoa(answer[20:24])


def addresses_of(interface):
    """Return the addresses of an interface: at most one of IPv4, and those of
    IPv6 that other machines can use."""
    found = []
    with contextlib.suppress(OSError):
        found.append(address_of(interface))
    with contextlib.suppress(OSError), \
            open("/proc/net/if_inet6", encoding="ascii") as f:
        for digits, _, _, scope, _, name in map(str.split, f):
            if name == interface and scope != LINK_LOCAL:
                found.append(str(ipaddress.IPv6Address(int(digits, 16))))
    return found


def interface_of(ip):
    """Return the name of the interface with this address, or None."""
    return next((name for _, name in socket.if_nameindex()
                 if ip in addresses_of(name)), None)


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
    """Return the NUMA node of this rank's GPU, or None. Before CUDA is in use,
    return None, because the query would initialize CUDA."""
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


def quota():
    """Return the CPU time that this process's control groups allow, in CPUs, or
    None for no limit."""
    lines = []
    with contextlib.suppress(OSError), open(CGROUP, encoding="utf-8") as f:
        lines = list(filter(None, f.read().splitlines()))
    found = []
    for _, kinds, path in (line.split(":", 2) for line in lines):
        if kinds and "cpu" not in kinds.split(","):
            continue
        while True:
            found += quota_of("fs/cgroup", kinds, path.lstrip("/"))
            if path in ("", "/"):
                break
            path = os.path.dirname(path)
    return min(found, default=None)


def quota_of(*group):
    """Return a list of the quota of one control group, which may be empty."""
    most, _, period = read(*group, "cpu.max").partition(" ")  # version 2
    most = most or read(*group, "cpu.cfs_quota_us")
    period = period or read(*group, "cpu.cfs_period_us")
    return ([int(most) / int(period)] if most.isdigit() and period.isdigit()
            else [])


def usable():
    """Return the number of CPUs that the ranks of this machine can keep
    busy."""
    return min(len(allowed()), max(1, int(quota() or len(allowed()))))


def warn_of_quota(n_ranks, n_lcores):
    """Warn if the control group allows less CPU time than ranks and the agent
    use."""
    most = quota()
    if most is not None and most < n_ranks + n_lcores:
        warnings.warn(
            f"cpu.max limits this process's control group to the time of "
            f"{most:g} CPUs, but {n_ranks} rank{'s' * (n_ranks > 1)} and an "
            f"agent with {n_lcores} polling core{'s' * (n_lcores > 1)} use "
            f"{n_ranks + n_lcores}: the kernel stops them when the time is used "
            f"up; raise the limit")


@contextlib.contextmanager
def bound(cpus):
    """Bind processes that this thread starts inside this context to the given
    CPUs.  If its control group has none of them, allow all its CPUs."""
    with unbound():
        if allowed() & cpus:
            os.sched_setaffinity(0, allowed() & cpus)
        yield
