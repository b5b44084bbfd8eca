# proc_udp.py - ports of type udp on lo, without namespaces or rights
# SPDX-License-Identifier: BSD-3-Clause
import os
import re
import signal
import socket
import sys

import proc_lanes
import rig
from hosts import UDP, Lo, no_rights
from rig import (Skip, check, check_goes_on, end, run_refused, run_steps,
                 start_forever)

# Tensors of all sizes: many frames, one short frame, and an odd last frame.
TENSORS = ("--tensor", "w:1000001:f32", "--tensor", "b:7:i32",
           "--tensor", "v:300000:i64", "--tensor", "h:12345:f16")
FLOOD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "flood.py")


def run_all(net, **keys):
    run_steps(net, *TENSORS, **keys)


def check_joined(net, *names, port="lo"):
    """Check that datagrams left with several frames in them. How many share one
    depends on the machine's load; proc_port_udp counts that."""
    for name in names:
        stats = net.stats(name)
        frames, writes = (stats[f"port.{port}.{key}"] for key in
                          ("tx_frames", "tx_writes"))
        check(frames > writes > 0,
              f"{name}: {frames} frames left in {writes} datagrams")


def check_quiet(net):
    """Check that no datagram was split wrongly or misdirected. Frames may be
    repeated after their worker has left, more of them on a busy machine."""
    for name in net.hosts:
        stats = net.stats(name)
        odd = {k: v for k, v in stats.items() if v and re.search(
            r"rx_(short|magic|head_crc|length|source|payload_crc)$|"
            r"tx_(refused|denied|link_down)$", k)}
        late = stats["rx_session"] + stats["rx_endpoint"]
        came = sum(v for k, v in stats.items()
                   if re.fullmatch(r"port\.\w+\.rx_frames", k))
        check(not odd and late < 20 + came / 100,
              f"{name}: {odd}, {late} of {came} too late")


def test_two_agents_two_servers():
    with Lo() as net:
        net.start_all()
        check("payload: up to 8192 B" in net.daemons["a"].log(), "payload")
        for _ in range(2):  # the second job reuses freed memory
            run_all(net)
        # A server sends results to its agents in turn.
        check_joined(net, *net.hosts)
        stats = net.stats("a")
        check(stats["port.lo.rx_frames"] > stats["port.lo.rx_reads"],
              f"the kernel joins nothing: {stats}")
        check_quiet(net)


def test_small_queue():
    """One frame at a time is granted: servers and agents take turns."""
    with Lo() as net:
        for name in net.hosts:
            net.ini[name]["node"]["queue"] = "1KiB"
        net.start_all()
        run_all(net)
        check_quiet(net)
        for name in net.hosts:
            stats = net.stats(name)
            check(stats["acks"] > 0.2 * stats["results"],
                  f"{name}: grants were not one by one: {stats}")


def test_no_right_is_needed():
    with Lo(servers=1) as net:
        if os.geteuid() == 0 and not no_rights():
            raise Skip("this root cannot put its capabilities down")
        net.start_all()
        for name, p in net.daemons.items():
            with open(f"/proc/{p.pid}/status", encoding="ascii") as f:
                caps = re.findall(r"Cap(?:Prm|Eff):\s*([0-9a-f]+)", f.read())
            check(not any(int(c, 16) for c in caps), f"{name} has {caps}")
        run_all(net)


def test_small_frames():
    """Datagrams join dozens of frames, up to the kernel's limit of pieces."""
    with Lo(servers=1, job={"payload": "1344"}, port={"burst": 64}) as net:
        net.start_all()
        run_all(net)
        check_joined(net, *net.agents)
        check_quiet(net)


def test_colocated():
    with Lo(servers=0, colocated=True) as net:
        net.start_all()
        run_all(net)
        check_joined(net, *net.agents)
        check_quiet(net)


def test_two_lcores():
    """Every frame arrives at its own lcore: each lcore has its sockets."""
    with Lo(lcores=2, lanes=(2, 2)) as net:
        net.start_all()
        run_all(net)
        for name in net.hosts:
            stats = net.stats(name)
            kinds = [k for k in ("rules", "rss", "handoff")
                     if stats[f"port.lo.steering_{k}"]]
            check(kinds == ["rules"], f"{name}: steering is {kinds}")
            parts = [stats[f"port.lo.queue{i}.rx_frames"] for i in range(2)]
            check(min(parts) > 0.3 * sum(parts), f"{name}: uneven: {parts}")
            check(not stats.get("handoff_rx") and
                  not stats.get("handoff_tx"), f"{name}: handed over: {stats}")


def test_colocated_with_two_lcores():
    with Lo(servers=1, colocated=True, lcores=2, lanes=(2, 2)) as net:
        net.start_all()
        run_all(net)


def test_collectives_of_two_lcores():
    """Run groups and local ranks, with chunks of several lcores."""
    proc_lanes.run_colls((2, 2), 6, local=(2, 1), servers=1, lcores=2,
                         colocated=True, make=Lo)


def test_one_queue_for_two_lcores():
    """steering = handoff: lcore 0 has all sockets and hands frames over."""
    with Lo(servers=1, lcores=2, port={"steering": "handoff"}) as net:
        net.start_all()
        run_all(net)
        stats = net.stats("a")
        check(stats["port.lo.steering_handoff"] == 1 and
              stats["handoff_rx"] > 0, f"a: {stats}")


def test_two_jobs_on_one_server():
    red, blue = ("agent0", "agent1"), ("agent2", "agent3")
    with Lo(agents=4, servers=1) as net:
        for name, agents in (("red", red), ("blue", blue)):
            for rank, agent in enumerate(agents):
                net.ini[agent]["job"].update(name=name, agents=2, agent=rank)
        net.start_all()
        both = [net.client(0, *TENSORS, "--steps", "5", agent=a, name=f"on-{a}")
                for a in red + blue]
        for c in both:
            c.wait_ok()
        net.await_stats("a", lambda s: s["sessions_closed"] == 4, "four ends")


def test_two_local_ranks():
    with Lo(servers=1, local=(2, 2)) as net:
        net.start_all()
        run_all(net, agents=[a for a in net.agents for _ in range(2)])


@rig.is_long
def test_stats_at_any_time():
    """Read while jobs start, change their tuning and end; no figure decreases."""
    kept = r"(?:rx|tx)_frames$|push_bytes$|chunks_done$"
    with Lo(servers=1, colocated=True, lcores=2, lanes=(2, 2)) as net:
        net.start_all()
        old = {name: {} for name in net.hosts}
        for args in ("--dtype", "f32"), ("--tune",):
            run = net.train("--epochs", "1", *args, name="train" + args[-1])
            while run.code() is None:
                for name in net.hosts:
                    new = net.stats(name)
                    less = [f"{key} {new[key]} after {value}"
                            for key, value in old[name].items()
                            if re.search(kept, key) and new[key] < value]
                    check(not less, f"{name}: {less}")
                    old[name] = new
            run.wait_ok()


# --- failures ---

def test_flood_of_garbage():
    """Flood server and agents in mid-job; counters show the drops."""
    with Lo(servers=1) as net:
        net.start_all()
        clients = start_forever(net, *TENSORS, step=1)
        flood = net.run("flood", sys.executable, FLOOD, *(
            f"{net.address(name)}:{UDP}" for name in net.hosts))
        flood.await_out("round 5")
        for _ in range(3):
            check_goes_on(clients, 2)
        flood.kill()
        # The five rounds have about sixty pieces each. Sockets of a daemon
        # without a core may drop many of them.
        for name in net.hosts:
            short = net.stats(name)["port.lo.rx_short"]
            check(short > 10, f"{name}: {short} pieces")
        end(net, clients)


def test_more_than_a_socket_holds():
    """Each of a node's two sockets has its own count of drops."""
    n = 1000
    with Lo(servers=0, colocated=True) as net:
        net.start_all()
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

        def lost():
            for udp in UDP, UDP + 1:  # the next datagram carries the count
                sock.sendto(b"x", (net.address("agent0"), udp))
            return net.stats("agent0")["port.lo.rx_overrun"]

        check(lost() == 0, "lost before it began")
        for _ in range(2):
            before = lost()
            net.daemons["agent0"].signal(signal.SIGSTOP)
            for udp, times in (UDP, 2 * n), (UDP + 1, n):
                for _ in range(times):
                    sock.sendto(bytes(60000), (net.address("agent0"), udp))
            net.daemons["agent0"].signal(signal.SIGCONT)
            rig.wait_until(lambda: lost() > before + n, rig.START_S,
                           "count of lost datagrams")
        check(lost() <= 6 * n, f"{lost()} of {6 * n} are counted as lost")
        run_all(net)


def test_address_that_nobody_has():
    with Lo(servers=1) as net:
        net.ini["a"]["port lo"]["ip"] = "10.254.254.1/24"
        run_refused(net, "a", r"port lo: the kernel does not have our address "
                    r"10\.254\.254\.1; type = udp needs it there")


def test_no_socket_before_the_port():
    """A process that finds the agent's socket finds an agent that can serve."""
    with Lo(servers=1) as net:
        net.ini["agent0"]["port lo"]["ip"] = "10.254.254.1/24"
        p = net.launch("agent0")
        while p.code() is None:
            check(not os.path.exists(net.socket("agent0")),
                  "the socket is there before the port")
        net.daemons.pop("agent0").wait_error(
            r"the kernel does not have our address", code=1)


def test_device_without_the_address():
    with Lo(servers=1) as net:
        net.ini["a"]["port lo"]["device"] = "eth77"
        run_refused(net, "a", r"the kernel does not have our address "
                    r"127\.77\.0\.1 on eth77")


def test_port_is_taken():
    with Lo(servers=1) as net:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind((net.address("a"), UDP))
            run_refused(net, "a", rf"a socket for 127\.77\.0\.1:{UDP}: bind: "
                        r"Address already in use")
        net.start_all()
        run_all(net)


def test_daemon_started_twice():
    with Lo(servers=1) as net:
        net.start("a")
        net.ini["twin"] = {**net.ini["a"], "stats": {
            "socket": net.stats_socket("twin")}}
        run_refused(net, "twin", rf"127\.77\.0\.1:{UDP}: bind: Address already")


def test_second_lcores_port_is_taken():
    with Lo(servers=1, lcores=2) as net:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind((net.address("a"), UDP + 1))
            run_refused(net, "a", rf"127\.77\.0\.1:{UDP + 1}: bind: Address")


def test_small_receive_buffer():
    """The daemon reports the machine's limit; the job is exact."""
    with open("/proc/sys/net/core/rmem_max", encoding="ascii") as f:
        limit = int(f.read())
    if limit > 1024 * 8192:
        raise Skip(f"net.core.rmem_max is {limit}, which is enough")
    with Lo(servers=1, port={"ring": 1024}) as net:
        net.start_all()
        said = net.daemons["a"].await_text(
            r"port lo: its sockets hold only (\d+) of 1024 frames.*: "
            r"set net\.core\.rmem_max to (\d+)")
        holds, want = map(int, said.groups())
        check(holds < 1024 and want > limit, said[0])
        run_all(net)


def test_no_such_server():
    with Lo(servers=1, job={"join_timeout": "2s"}) as net:
        net.start("agent0", "agent1")
        for c in [net.client(r, *TENSORS) for r in range(2)]:
            c.wait_error(rf"server a \(127\.77\.0\.1:{UDP}\)")


if __name__ == "__main__":
    rig.main(dict(globals()))
