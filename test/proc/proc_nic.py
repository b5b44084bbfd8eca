# proc_nic.py - ports that DPDK drives directly, as it does NICs
# SPDX-License-Identifier: BSD-3-Clause
"""Test machines have no NIC to spare. DPDK's software drivers take the NIC's
place, and each reports other capabilities: net_tap creates a kernel interface,
and the kernel's bridge joins them."""
import os
import subprocess

import lan
import rig
from lan import Lan, ip
from proc_lan import check_payload, run_all, take_down
from rig import check, check_goes_on, end, run_refused, start_forever


class Taps(Lan):
    """Nodes whose daemons create their own interfaces, named as in a Lan."""

    def __init__(self, port=None, **keys):
        if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
            raise rig.Skip("no /dev/net/tun")
        super().__init__(**keys)
        for name in self.hosts:
            self.ini[name]["port lan"].update({
                "type": "vdev", "device": "net_tap0", "args": f"iface={name}",
                "mtu": self.mtu, **(port or {})})

    def plug(self, device, link=0):
        self.interfaces.append(device)

    def join(self, device):
        # The driver has the same address; a bridge would keep frames for it.
        ip("link", "set", "dev", device, "address",
           f"02:54:00:00:00:{self.hosts[device]:02x}")
        ip("link", "set", "dev", device, "master", "lan", "up")

    def start(self, *names):
        super().start(*names)
        for name in names:
            if self.ini[name]["port lan"].get("device") == "net_tap0":
                self.join(name)


def test_tap_mtu_1500():
    with Taps(agents=2, mtu=1500) as net:
        net.start_all()
        check_payload(net, 1344)
        run_all(net)
        for name in net.daemons:
            stats = net.stats(name)
            check(stats["port.lan.rx_bad_udp"] == 0, f"{name}: {stats}")
            # The device's own counter.
            check(stats["port.lan.device.rx_good_packets"] >=
                  stats["port.lan.rx_frames"] > 0, f"{name}: {stats}")
            for counter in ("rx_missed_errors", "rx_mbuf_allocation_errors"):
                check(stats[f"port.lan.device.{counter}"] == 0,
                      f"{name}: {stats}")


def test_tap_mtu_as_it_is():
    """Without an mtu setting the port uses the device's."""
    with Taps(agents=1, port={"mtu": 0}) as net:
        net.start_all()
        check_payload(net, 1344)
        run_all(net)


def test_tap_takes_no_jumbo_frames():
    """The network carries them, but the driver reports that it does not."""
    with Taps(agents=2, mtu=9000) as net:
        net.start_all()
        check_payload(net, 1344)
        check("checksums by the device: IPv4 UDP" in net.daemons["a"].log(),
              "no offloads were asked for")
        run_all(net)


def test_pcap_jumbo():
    """libpcap over one end of a veth."""
    with Taps(agents=1, mtu=9000) as net:
        for name in net.hosts:
            Lan.plug(net, name)
            net.ini[name]["port lan"].update({
                "device": "net_pcap0",
                "args": f"iface={name},phy_mac=1"})
        net.start_all()
        check_payload(net, 8192)
        run_all(net)


def test_tap_vlan_and_faults():
    with Taps(agents=2, mtu=1500, port={"vlan": 9, "fault_loss": "1%",
                                         "fault_reorder": "1%"}) as net:
        net.start_all()
        run_all(net)


def test_tap_two_lcores():
    """Two queue pairs, with the steering that the driver offers."""
    with Taps(agents=2, mtu=1500, lcores=2) as net:
        net.start_all()
        run_all(net)
        stats = net.stats("a")
        check(stats["lcore1.push_bytes"] > 0, f"one lcore did all: {stats}")
        ways = [k for k in ("rules", "rss", "handoff")
                if stats[f"port.lan.steering_{k}"]]
        check(len(ways) == 1, f"steering: {ways}")


def test_with_af_packet():
    """Sums by the device and sums by us are the same on the wire."""
    with Taps(agents=1, mtu=1500) as net:
        Lan.plug(net, "agent0")
        net.ini["agent0"]["port lan"] = {
            "type": "af_packet", "device": "agent0",
            "ip": net.address("agent0") + "/24"}
        net.start_all()
        run_all(net)


def test_link_down_and_up():
    with Taps(agents=2) as net:
        net.start_all()
        clients = start_forever(net)
        for name in ("agent1", "a"):
            take_down(net, name, "net_tap0")
            ip("link", "set", "dev", name, "up")
            check_goes_on(clients)
        end(net, clients)


def test_other_drivers_open_and_close():
    """They carry no frames between processes, but answer the same queries."""
    for device, args in (("net_null0", ""), ("net_ring0", ""),
                         ("net_pcap0", "iface=a")):
        with Taps(agents=1, port={"device": device, "args": args},
                  mtu=1500) as net:
            Lan.plug(net, "a")
            net.launch("a")
            net.daemons["a"].await_text("is ready")


def test_mtu_that_is_too_small():
    with Taps(agents=1, port={"mtu": 1240}) as net:
        run_refused(net, "a", r"net_tap0 carries an MTU of 1240 .*the smallest "
                    r"frames need 1250")


def test_no_such_driver():
    with Taps(agents=1, port={"device": "net_tab0"}) as net:
        run_refused(net, "a", r"port lan: dpdk refuses net_tab0 with iface=a: "
                    r".*DPDK has no such driver here")


def test_arguments_that_are_refused():
    with Taps(agents=1, port={"device": "net_pcap0",
                               "args": "iface=eth7"}) as net:
        run_refused(net, "a", r"port lan: dpdk refuses net_pcap0 with "
                    r"iface=eth7")


def test_pci_without_hugepages():
    with open("/proc/meminfo", encoding="ascii") as f:
        if "HugePages_Free:        0" not in f.read():
            raise rig.Skip("this machine has hugepages")
    with Lan(agents=1, port={"type": "pci", "device": "0000:ff:1f.7"}) as net:
        run_refused(net, "a", r"type pci need \d+ MiB of hugepages, but 0 MiB")


if __name__ == "__main__":
    lan.enter()
    rig.main(dict(globals()))
