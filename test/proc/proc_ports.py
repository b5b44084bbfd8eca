# proc_ports.py - several ports per node, k separate servers, wrong addresses
# SPDX-License-Identifier: BSD-3-Clause
import lan
import rig
from lan import Lan, ip
from proc_lan import check_payload, run_all
from rig import check, check_goes_on, end, start_forever


def check_both_carry(net, *names):
    """Check that each link carried more than control frames."""
    for name in names:
        stats = net.stats(name)
        for port in map(net.port, net.links):
            check(stats[f"port.{port}.tx_bytes"] > 1000000,
                  f"{name} has sent nothing over {port}: {stats}")


def test_two_servers_on_two_links():
    """2 agents, 2 servers, 2 networks: each server is reached through its own."""
    with Lan(agents=2, servers=2, links=2) as net:
        net.start_all()
        check_payload(net, 8192)
        run_all(net, "--tensor", "w:1000000:f32")
        check_both_carry(net, *net.agents)


def test_one_server_reached_over_different_links():
    """The agents reach one server through different links, and answers return
    on the same link."""
    with Lan(agents=2, servers=1, links=2) as net:
        net.ini["agent1"]["server a"] = {"ip": net.address("a", 1),
                                         "port": net.port(1)}
        net.start_all()
        run_all(net)
        check_both_carry(net, "a")


def test_colocated_on_two_links():
    """k = 0, 1, 2: the servers of the list alternate between the links."""
    for k in (0, 1, 2):
        with Lan(agents=2, servers=k, links=2, colocated=True) as net:
            net.start_all()
            run_all(net)


def test_four_nodes_on_one_bridge():
    """Run with k = 0, 1 and 2, and MTU 9000 and 1500."""
    for k, mtu in ((0, 9000), (1, 9000), (2, 1500)):
        with Lan(agents=4, servers=k, mtu=mtu, colocated=True) as net:
            net.start_all()
            check_payload(net, 8192 if mtu == 9000 else 1344)
            run_all(net)


def test_links_of_different_mtu():
    """The payload is that of the link with the smallest MTU."""
    with Lan(agents=1, servers=2, links=2) as net:
        for name in net.hosts:
            ip("link", "set", "dev", net.interface(name, 1), "mtu", "3600")
        net.start_all()
        check_payload(net, 3456)
        run_all(net)


def test_one_link_down_the_other_goes_on():
    """agent1 uses the second link, which is down for a while."""
    with Lan(agents=2, servers=1, links=2) as net:
        net.ini["agent1"]["server a"] = {"ip": net.address("a", 1),
                                         "port": net.port(1)}
        net.start_all()
        clients = start_forever(net)
        log = net.daemons["a"].log
        before = log().count("port lan: a is down")  # at the start
        ip("link", "set", "dev", net.interface("a", 1), "down")
        net.daemons["a"].await_text("port lan1: a_1 is down")
        check(log().count("port lan: a is down") == before, "both down")
        ip("link", "set", "dev", net.interface("a", 1), "up")
        check_goes_on(clients)
        end(net, clients)


def test_unused_port_vanishes_while_the_other_works():
    with Lan(agents=2, servers=1, links=2) as net:
        net.start_all()
        clients = start_forever(net)
        gone = net.interface("a", 1)
        net.unplug(gone)
        net.daemons["a"].await_text(f"port lan1: {gone} was removed")
        check_goes_on(clients)
        net.plug(gone, 1)
        rig.wait_until(
            lambda: net.daemons["a"].log().count("lan1: a_1 is up") >= 2,
            rig.START_S, "return of a_1")
        check_goes_on(clients)
        end(net, clients)


def test_port_vanishes_and_returns_under_load():
    with Lan(agents=2, servers=2, links=2) as net:
        net.start_all()
        clients = start_forever(net)
        gone = net.interface("agent1", 1)
        net.unplug(gone)
        net.daemons["agent1"].await_text(f"port lan1: {gone} was removed")
        net.plug(gone, 1)
        check_goes_on(clients)
        end(net, clients)


def test_two_servers_with_one_address():
    """The answers to each other's questions tell both servers."""
    with Lan(agents=1, servers=2, job={"join_timeout": "4s"}) as net:
        net.ini["b"]["port lan"]["ip"] = net.address("a") + "/24"
        net.start_all()
        for name in net.servers:
            net.daemons[name].await_text(
                r"port lan: two nodes have our address 10\.9\.0\.1")


def test_wrong_gateway_of_one_port():
    """The port without the gateway continues; the error names the server behind
    it."""
    with Lan(agents=1, servers=2, links=2,
             job={"join_timeout": "5s"}) as net:
        ini = net.ini["agent0"]
        ini["port lan1"]["gateway"] = "10.9.1.77"
        ini["server b"]["ip"] = "10.10.0.1"
        net.start_all()
        net.client(0, "--tensor", "w:1000:f32").wait_error(
            r"server b \(10\.10\.0\.1:5700\)")
        net.daemons["agent0"].await_text(
            r"no ARP answer from gateway 10\.9\.1\.77 on port lan1")
        check("on port lan (" not in net.daemons["agent0"].log(),
              "the other port is accused, too")


if __name__ == "__main__":
    lan.enter()
    rig.main(dict(globals()))
