# proc_udp_net.py - ports of type udp between namespaces, and their failures
# SPDX-License-Identifier: BSD-3-Clause
import re
import signal
import subprocess
import time

import lan
import rig
from hosts import Hosts
from lan import ip
from proc_lan import check_payload, check_dscp
from proc_udp import TENSORS, check_joined, check_quiet, run_all
from rig import check, check_goes_on, end, run_refused, start_forever


def await_count(net, name, text, n):
    """Wait for the n-th line with this text in its log."""
    log = net.daemons[name].log
    rig.wait_until(lambda: log().count(text) >= n, rig.START_S,
                   f'"{text}" number {n} from {name}')


def run_job(mtu, size, **keys):
    with Hosts(mtu=mtu, **keys) as net:
        net.start_all()
        check_payload(net, size)
        run_all(net)
        check_joined(net, *net.agents, port="lan")
        check_quiet(net)


def test_two_nodes_jumbo():
    run_job(9000, 8192, agents=1)


def test_two_nodes_mtu_1500():
    run_job(1500, 1344, agents=1)


def test_four_nodes_jumbo():
    run_job(9000, 8192, agents=2, servers=2)


def test_four_colocated_nodes_mtu_1500():
    run_job(1500, 1344, agents=4, servers=0, colocated=True)


def test_four_colocated_nodes_ipv6():
    run_job(1500, 1344, agents=4, servers=0, colocated=True, is_v6=True)


def test_many_agents_fit_the_receive_buffer():
    """The server's socket buffers all bytes that agents may send at once."""
    with Hosts(mtu=1500, agents=4) as net:
        for name in net.hosts:  # each frame takes a buffer of its own
            no_large_ones(name)(net)
        net.start_all()
        clients = start_forever(net, "--tensor", "w:1500000:f32", rest_ms=0)
        for _ in range(2 if rig.IS_QUICK else 4):  # no thread reads the socket meanwhile
            net.daemons["a"].signal(signal.SIGSTOP)
            time.sleep(0.1)
            net.daemons["a"].signal(signal.SIGCONT)
            check_goes_on(clients, 2)
        stats = net.stats("a")
        lost, came = (stats[f"port.lan.rx_{x}"] for x in ("overrun", "frames"))
        check(came > 20000 and lost * 1000 <= came,
              f"{lost} of {came} frames overran the server's receive buffer")
        end(net, clients)


def test_two_lcores():
    with Hosts(agents=2, lcores=2) as net:
        net.start_all()
        run_all(net)


def test_dscp_by_class():
    """Each frame is split where it leaves, and visible behind that point."""
    def cut(**keys):
        net = Hosts(**keys)
        for name in net.hosts:
            no_large_ones(name)(net)
        return net
    check_dscp(cut)


def test_device_is_found():
    with Hosts(agents=1) as net:
        for name in net.hosts:
            del net.ini[name]["port lan"]["device"]
        net.start_all()
        check("port lan: udp on a," in net.daemons["a"].log(), "device")
        run_all(net)


def test_address_with_a_label():
    """The kernel then calls it a:1; the interface is a, configured or detected."""
    with Hosts(agents=1) as net:
        what = (net.address("a") + "/24", "dev", "a")
        net.ip("a", "address", "del", *what)
        net.ip("a", "address", "add", *what, "label", "a:1")
        net.start_all()
        run_all(net)
        net.stop("a")
        del net.ini["a"]["port lan"]["device"]
        net.start("a")
        check("port lan: udp on a," in net.daemons["a"].log(), "device")


def test_device_without_the_address():
    with Hosts(agents=1) as net:
        net.ini["a"]["port lan"]["device"] = "lo"
        run_refused(net, "a", r"the kernel does not have our address "
                    r"10\.9\.0\.1 on lo")


def test_interface_down_and_up():
    with Hosts(agents=2) as net:
        net.start_all()
        clients = start_forever(net, *TENSORS, step=1)
        for name in "agent1", "a":
            ups = net.daemons[name].log().count(f"{name} is up")
            net.ip(name, "link", "set", "dev", name, "down")
            await_count(net, name, f"port lan: {name} is down", 1)
            time.sleep(0.3)
            net.ip(name, "link", "set", "dev", name, "up")
            await_count(net, name, f"port lan: {name} is up", ups + 1)
            check_goes_on(clients, 2)
        end(net, clients)


def test_address_is_taken_and_put_back():
    with Hosts(agents=2) as net:
        net.start_all()
        clients = start_forever(net, *TENSORS, step=1)
        for name in "agent1", "a":
            what = (net.address(name) + "/24", "dev", name)
            ups = net.daemons[name].log().count(f"{name} is up")
            net.ip(name, "address", "del", *what)
            await_count(net, name, f"port lan: {name} lost our address", 1)
            net.ip(name, "address", "add", *what)
            await_count(net, name, f"port lan: {name} is up", ups + 1)
            check_goes_on(clients, 2)
        end(net, clients)
        # Frames leave in joined datagrams again.
        before = {n: net.stats(n) for n in net.agents}
        run_all(net, name="later")
        for name in net.agents:
            after = net.stats(name)
            frames, writes = (after[k] - before[name][k] for k in
                              ("port.lan.tx_frames", "port.lan.tx_writes"))
            check(frames > writes, f"{name}: {frames} in {writes}")


def test_interface_vanishes_and_returns():
    with Hosts(agents=2) as net:
        net.start_all()
        clients = start_forever(net, *TENSORS, step=1)
        net.unplug("agent1")
        net.daemons["agent1"].await_text("port lan: agent1 was removed")
        net.plug("agent1")
        check_goes_on(clients, 2)
        end(net, clients)


def test_no_route():
    with Hosts(agents=1, job={"join_timeout": "3s"}) as net:
        net.ini["agent0"]["server a"]["ip"] = "10.10.0.1"
        net.start_all()
        net.client(0, *TENSORS).wait_error(
            r"waited 3 s for server a \(10\.10\.0\.1:5700\)")
        said = (r"port lan: the kernel does not send some frames: Network is "
                r"unreachable")
        net.daemons["agent0"].await_text(said)
        # It has tried more than six times, or more on a busy machine; it repeats
        # the line after 2 s.
        n = len(re.findall(said, net.daemons["agent0"].log()))
        check(n <= 4, f"said {n} times")
        time.sleep(3)  # longer than the port remembers
        net.client(0, *TENSORS, name="next").wait_error("server a")
        net.daemons["agent0"].await_text(f"(?s)({said}.*){{{n + 1}}}")


def test_server_of_another_network():
    """A route of the kernel leads there: no gateway is configured."""
    with Hosts(agents=1) as net:
        net.ip("a", "address", "add", "10.10.0.1/24", "dev", "a")
        net.ip("a", "route", "add", "10.9.0.0/24", "dev", "a", "src",
               "10.10.0.1", "metric", "1")
        net.ini["a"]["port lan"]["ip"] = "10.10.0.1/24"
        net.ini["agent0"]["server a"]["ip"] = "10.10.0.1"
        net.ip("agent0", "route", "add", "10.10.0.0/24", "via",
               net.address("a"))
        net.start_all()
        run_all(net)


ROUTER = """\
set -e
ip link set dev a-lan nomaster
ip address add 10.9.0.254/24 dev lan
ip route add 10.9.0.1 dev a-lan mtu lock 1500
ip route add 10.9.0.101 dev lan mtu lock 1500
for dev in lan a-lan; do echo 1 >/proc/sys/net/ipv4/conf/$dev/proxy_arp; done
echo 1 >/proc/sys/net/ipv4/ip_forward"""


def test_router_with_a_smaller_mtu():
    """It answers large packets by ICMP (fragmentation needed). Probes find the
    limit; frames fit the path and are not fragmented."""
    with Hosts(agents=1) as net:
        subprocess.run(["sh", "-c", ROUTER], check=True)
        net.start_all()
        run_all(net)
        net.daemons["a"].await_text("runs with a payload of 1408 B")
        names, counts = [line.split() for line in subprocess.run(
            net.inside("agent0", "cat", "/proc/net/snmp"), capture_output=True,
            check=True, text=True).stdout.splitlines() if line.startswith("Icmp:")]
        check(int(counts[names.index("InDestUnreachs")]), "no ICMP came")


def test_mtu_falls_in_mid_job():
    """A bridge drops larger frames silently. If the event passes, the job
    continues; otherwise it ends with an error that names path and size, and the
    next job uses smaller frames."""
    with Hosts(agents=2, job={"dead_after": "10s"}) as net:
        for name in net.hosts:  # the bridge passes unsplit datagrams
            no_large_ones(name)(net)
        net.start_all()
        clients = start_forever(net, *TENSORS, step=1)
        for _ in range(2):  # longer than the interval of path checks
            ip("link", "set", "dev", "a-lan", "mtu", "1500")
            time.sleep(1.5)
            ip("link", "set", "dev", "a-lan", "mtu", "9000")
            check_goes_on(clients, 2)
        ip("link", "set", "dev", "a-lan", "mtu", "1500")
        # Both directions are cut; the error names the first that lacks a frame.
        us, server = r"10\.9\.0\.10[12]", r"server a \(10\.9\.0\.1\)"
        for c in clients:
            c.wait_error(r"SW_EIO: .*packets of 8274 B \(payload 8192\) no "
                         rf"longer pass from ({us} to {server}|{server} to "
                         rf"{us}), smaller ones do")
        run_all(net)
        net.daemons["a"].await_text("runs with a payload of 1408 B")


# --- with a node whose port is of type af_packet ---
# Nothing on the path between two namespaces splits a large datagram, so
# af_packet receives 64 KB at once, unless the sender makes none.

def run_beside(packet, prepare, mtu, **keys):
    with Hosts(agents=1, mtu=mtu, packet=[packet], **keys) as net:
        prepare(net)
        net.start_all()
        check("port lan: af_packet," in net.daemons[packet].log(), "type")
        run_all(net)
        check_quiet(net)


def test_to_af_packet_uncut():
    """The job is slow, or fails: the log gives the remedy."""
    with Hosts(agents=1, packet=["a"]) as net:
        net.start_all()
        client = net.client(0, *TENSORS, "--steps", "1000000")
        net.daemons["a"].await_text(
            r"port lan: .*\(rx_short\).* set burst = 1 on its port")
        client.kill()


def no_large_ones(name):
    return lambda net: net.ip(name, "link", "set", "dev", name,
                              "gso_max_segs", "1")


def one_by_one(name):
    return lambda net: net.ini[name]["port lan"].update(burst=1)


def test_to_af_packet_by_a_device_that_cuts():
    run_beside("a", no_large_ones("agent0"), 9000)
    run_beside("agent0", no_large_ones("a"), 1500)


def test_to_af_packet_one_by_one():
    run_beside("a", one_by_one("agent0"), 1500)
    run_beside("agent0", one_by_one("a"), 9000)


def test_to_af_packet_ipv6():
    """The kernel resolves our address and verifies our UDP checksums."""
    run_beside("a", one_by_one("agent0"), 1500, is_v6=True)
    run_beside("agent0", one_by_one("a"), 9000, is_v6=True)


if __name__ == "__main__":
    lan.enter()
    rig.main(dict(globals()))
