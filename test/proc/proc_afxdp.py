# proc_afxdp.py - ports of type af_xdp: jobs and failures
# SPDX-License-Identifier: BSD-3-Clause
"""Only root can load programs for XDP; a user namespace does not give that
right.

A user other than root runs the test of the refusal; the others are skipped."""
import array
import ctypes
import fcntl
import os
import socket
import struct

import lan
import rig
from lan import Lan, ip
from proc_lan import check_payload, run_all, take_down
from rig import check, check_goes_on, end, run_refused, start_forever

MTU = 3498
XDP = {"type": "af_xdp"}
SIOCETHTOOL, GFLAGS, SFLAGS = 0x8946, 0x25, 0x26
TXVLAN, RXVLAN = 1 << 7, 1 << 8
AF_XDP, SYS_BPF, PROG_LOAD, PROG_TYPE_XDP = 44, 321, 5, 6


def why_not():
    """Return what AF_XDP lacks here, found without our code; None: it is
    complete."""
    try:
        socket.socket(AF_XDP, socket.SOCK_RAW).close()
    except OSError as e:
        return f"no AF_XDP socket: {e}"
    code = ctypes.create_string_buffer(
        struct.pack("<BBhiBBhi", 0xb7, 0, 0, 2, 0x95, 0, 0, 0))
    name = ctypes.create_string_buffer(b"BSD")
    attr = ctypes.create_string_buffer(struct.pack(
        "<IIQQ", PROG_TYPE_XDP, 2, ctypes.addressof(code),
        ctypes.addressof(name)), 128)
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(SYS_BPF, PROG_LOAD, attr, len(attr))
    if fd < 0:
        return f"no XDP program: {os.strerror(ctypes.get_errno())}"
    os.close(fd)
    return None


class Xdp(Lan):
    """A job of af_xdp ports."""

    def __init__(self, mtu=MTU, port=None, **keys):
        why = why_not()
        if why:
            raise rig.Skip(why)
        super().__init__(mtu=mtu, port={**XDP, **(port or {})}, **keys)


def has_program(device):
    p = lan.subprocess.run(["ip", "link", "show", device], check=True,
                           stdout=lan.subprocess.PIPE)
    return b"prog/xdp" in p.stdout


def test_three_nodes():
    with Xdp(agents=2) as net:
        net.start_all()
        check_payload(net, 3328)
        run_all(net)
        check(has_program("a"), "no XDP program on the interface")
        net.stop("agent1")
        check(not has_program("agent1"), "its XDP program is left behind")
        net.start("agent1")
        run_all(net)


def test_mtu_1500():
    with Xdp(agents=1, mtu=1500) as net:
        net.start_all()
        check_payload(net, 1344)
        run_all(net)


def test_two_nodes_that_sum_and_a_server():
    with Xdp(agents=2, servers=1, colocated=True) as net:
        net.start_all()
        run_all(net)


def test_lost_frames():
    with Xdp(agents=2, port={"fault_loss": "1%", "fault_reorder": "1%"}) \
            as net:
        net.start_all()
        run_all(net)


def test_with_af_packet():
    """Nodes with different types of port work in one job."""
    with Xdp(agents=2) as net:
        net.ini["a"]["port lan"]["type"] = "af_packet"
        net.start_all()
        run_all(net)


def tags_stay(device):
    """ethtool -K DEVICE txvlan off rxvlan off"""
    flags = array.array("I", [GFLAGS, 0])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for flags[0] in (GFLAGS, SFLAGS):
            fcntl.ioctl(s, SIOCETHTOOL, struct.pack(
                "16sQ16x", device.encode(), flags.buffer_info()[0]))
            flags[1] &= ~(TXVLAN | RXVLAN)


def test_vlan():
    """The bridge removes the tag, and lets the next interface insert it."""
    with Xdp(agents=2, port={"vlan": 7}) as net:
        net.start("a")
        net.daemons["a"].await_text("a may take VLAN tags off")
        net.stop("a")
        for device in net.interfaces:
            tags_stay(device)
            tags_stay(device + "-lan")
        net.start_all()
        check("VLAN tags" not in net.daemons["a"].log(), "still warns")
        run_all(net)


def test_interface_down_and_up():
    with Xdp(agents=2) as net:
        net.start_all()
        clients = start_forever(net)
        for name in ("agent1", "a"):
            take_down(net, name)
            ip("link", "set", "dev", name, "up")
            check_goes_on(clients)
        end(net, clients)


def test_interface_vanishes_and_returns():
    """Repeatedly: the daemon replaces all buffers of the old interface."""
    with Xdp(agents=2) as net:
        net.start_all()
        clients = start_forever(net)
        for i in range(3):
            net.unplug("agent1")
            net.daemons["agent1"].await_text(
                r"(?s)(port lan: agent1 was removed.*){%d}" % (i + 1))
            net.plug("agent1")
            check_goes_on(clients)
        for _ in range(5):
            net.replug("agent1")
            check_goes_on(clients)
        end(net, clients)


def test_killed_daemon_is_followed():
    """The XDP program that it left on the interface does not disturb the next
    daemon."""
    with Xdp(agents=1) as net:
        net.start_all()
        net.kill("a")
        check(has_program("a"), "SIGKILL took the XDP program away")
        net.stop("agent0")
        net.start_all()
        run_all(net)


def test_mtu_beyond_a_page():
    with Xdp(agents=1, mtu=9000) as net:
        run_refused(net, "a", r"a has an MTU of 9000: at most 3498, which carries a "
                    r"payload of 3328")


def test_without_the_right():
    """Run in a user namespace; every user can try this."""
    why = lan.why_not("-Urn")
    if why:
        raise rig.Skip(f"no user namespace here: {why}")
    with Lan(agents=1, port={**XDP, "device": "lo"}) as net:
        p = net.run("refused", "unshare", "-Urn", "sh", "-c",
                    f"ip link set lo mtu {MTU} && exec {rig.sumwire()} server "
                    f"--config {net.write_ini('a')}")
        p.wait_error(r"port lan: dpdk refuses .*it needs .*CAP_BPF", code=1)


if __name__ == "__main__":
    lan.enter("-n" if os.geteuid() == 0 else "-Urn")
    rig.main(dict(globals()))
