# proc_colocated.py - agents that are also servers, with k = 0, 1, 2 other servers
# SPDX-License-Identifier: BSD-3-Clause
import json
import re
import signal
import time

import rig
from rig import Net, check, run_steps, start_forever

TENSORS = ("--tensor", "w:1000001:f32", "--tensor", "b:7:i32",
           "--tensor", "v:700000:i64")
DEAD_AFTER_S = 2
SLACK_S = 30
STRIPE_BYTES = 64 * 8192


def folded(net, name):
    """Return the payload bytes that this node has summed."""
    key = "push_bytes" if name in net.servers else "server.push_bytes"
    return net.stats(name)[key]


def check_shares(net, n, k, pushes):
    """Check each machine's share of all pushed bytes (theorem 1 of BytePS), to
    a stripe of every push."""
    bytes_by_node = {m: folded(net, m) for m in net.servers + net.agents}
    total = sum(bytes_by_node.values())
    for name, got in bytes_by_node.items():
        if k == 0:
            want = 1 / n
        elif name in net.servers:
            want = 2 * (n - 1) / (n * n + k * n - 2 * k)
        else:
            want = (n - k) / (n * n + k * n - 2 * k)
        check(abs(got - want * total) < pushes * STRIPE_BYTES,
              f"{name} sums {got / total:.3f} of the bytes, not {want:.3f}")


def run_job(n, k, steps=5, **keys):
    with Net(agents=n, servers=k, colocated=True, **keys) as net:
        net.start_all()
        run_steps(net, *TENSORS, steps=steps)
        check_shares(net, n, k, n * steps)
        for name in net.agents:
            stats = net.empty_stats(name)
            # A server may repeat an answer after its worker has left.
            check(stats["rx_endpoint"] < 20, f"{name}: {stats}")


def test_two_nodes_alone():
    run_job(2, 0)


def test_three_nodes_alone():
    run_job(3, 0)


def test_two_nodes_and_one_server():
    run_job(2, 1)


def test_two_nodes_and_two_servers():
    run_job(2, 2)


def test_three_nodes_and_one_server_with_faults():
    run_job(3, 1, steps=3, port={"fault_loss": "1%", "fault_dup": "1%",
                                 "fault_reorder": "1%"})


def sent_by_ports(stats):
    """Return the bytes that all ports have sent, without the counts by queue."""
    return sum(v for key, v in stats.items()
               if re.fullmatch(r"port\.[^.]+\.tx_bytes", key))


def test_own_share_never_touches_the_port():
    """Each of two nodes sends half of its pushes to the other, and half of the
    results: one tensor in all, while 2 x its bytes are summed."""
    with Net(agents=2, servers=0, colocated=True) as net:
        net.start_all()
        clients = [net.client(r, "--tensor", "w:4194304:f32", "--steps", "4")
                   for r in range(2)]
        for c in clients:
            c.wait_ok()
        for name in net.agents:
            stats = net.stats(name)
            port = sent_by_ports(stats)
            pushed = stats["push_bytes"]
            check(pushed == 4 * (16 << 20), f"{name}: {stats}")
            check(port < 1.1 * pushed,
                  f"{name} sent {port} bytes for {pushed} pushed ones")


def test_own_parts_never_touch_the_port():
    """Each of two nodes sends only the other's part of a reduce_scatter, half
    of its push, and no result."""
    with Net(agents=2, servers=0, colocated=True) as net:
        net.start_all()
        p = net.run("bench", rig.sumwire(), "bench", "--collective",
                    "reduce_scatter", "--min", "16MiB", "--max", "16MiB",
                    "--iters", "4",
                    *[w for a in net.agents for w in ("--agent", net.socket(a))])
        p.wait_ok()
        for name in net.agents:
            stats = net.stats(name)
            port = sent_by_ports(stats)
            pushed = stats["push_bytes"]
            check(0.45 * pushed < port < 0.6 * pushed,
                  f"{name} sent {port} bytes for {pushed} pushed ones")


def test_a_node_is_named_by_its_address():
    """A node's own server is in its list by address, although it needs no port."""
    with Net(agents=2, servers=0, colocated=True) as net:
        net.start("agent0")
        first = net.client(0, *rig.SMALL)
        first.await_text(r"waiting for agent 1 of 2 at server agent0 "
                         r"\(10\.77\.0\.1:5700\); 1 rank here: agent 0 10\.77\.0\.1\b")
        net.daemons["agent0"].await_text(
            r"agent 0 joined from node agent0 at 10\.77\.0\.1 ")
        first.kill()


@rig.is_long
def test_trains_again_on_the_same_daemons():
    with Net(agents=2, servers=0, colocated=True) as net:
        net.start_all()
        first = net.train_ok()
        second = net.train_ok()
        check(first["epochs"] == second["epochs"],
              "the second training has other weights or losses")


def test_benchmark():
    """sumwire bench measures two such nodes and checks every element."""
    for local_ranks in "1", "2":
        with Net(agents=1) as net:
            p = net.run("bench", rig.sumwire(), "bench", "--loopback",
                        "--colocated", "--min", "64KiB", "--max", "64KiB",
                        "--iters", "20", "--local-ranks", local_ranks,
                        "--json")
            p.wait_ok()
            row = json.loads(p.out())["results"][0]
            check(row["wrong"] == 0 and row["ranks"] ==
                  2 * int(local_ranks), f"the benchmark: {row}")


def node_killed(victim, servers):
    with Net(agents=3, servers=servers, colocated=True,
             job={"dead_after": f"{DEAD_AFTER_S}s"}) as net:
        net.start_all()
        clients = start_forever(net, *TENSORS, step=0)
        net.kill(f"agent{victim}")
        start = time.monotonic()
        clients[victim].wait_error(rf"agent{victim}.sock has ended")
        for r in range(3):
            if r != victim:
                clients[r].wait_error(rf"agent{victim}\b.* silent")
        took = time.monotonic() - start
        check(took < DEAD_AFTER_S + SLACK_S, f"that took {took:.1f} s")
        net.start(f"agent{victim}")  # the other nodes are unharmed
        clients = [net.client(r, *TENSORS, "--steps", "2", name=f"later{r}")
                   for r in range(3)]
        for c in clients:
            c.wait_ok()


def test_coordinating_node_killed():
    node_killed(0, 0)


def test_node_killed_beside_a_server():
    node_killed(2, 1)


def test_agent_stops_in_mid_job():
    """SIGTERM to a node that sums for the others: all ranks get the error."""
    with Net(agents=2, servers=0, colocated=True) as net:
        net.start_all()
        clients = start_forever(net, *TENSORS, step=0)
        agent = net.daemons.pop("agent1")
        agent.signal(signal.SIGTERM)
        clients[1].wait_error(r"the agent stops")
        clients[0].wait_error(
            r"error wait SW_(EPEER|ESERVER): .*\bagent1\b")
        check(agent.wait(rig.STOP_S) == 0, "agent1 did not end well")


def refuse(change, *patterns):
    """Check that agent0 refuses its configuration after @change(ini), with
    these messages."""
    with Net(agents=2, servers=0, colocated=True) as net:
        change(net.ini["agent0"])
        p = net.run("bad", rig.sumwire(), "agent", "--config",
                    net.write_ini("agent0"))
        p.wait_error(*patterns, code=1)


def test_bad_lists_of_servers():
    def swap(ini):
        for server in "server agent0", "server agent1":
            ini[server] = ini.pop(server)
        ini["server agent0"] = ini.pop("server agent0")
    refuse(lambda ini: ini["job"].update(agent=1),
           r"server agent0.*number 1 of the list, but agent 1 must be number 2")
    refuse(swap, r"server agent0.*number 2 of the list, but agent 0 must be number 1")
    refuse(lambda ini: ini.pop("server agent0"),
           r"1 \[server NAME\] for 2 agents")
    refuse(lambda ini: ini["server agent0"].update(ip="10.77.0.3"),
           r"no \[server NAME\] is this node.*number 1")
    refuse(lambda ini: ini["server agent0"].update(udp_port="5800"),
           r"5800 differs from \[serve\] udp_port \(5700\)")
    refuse(lambda ini: ini.update(serve={"udp_port": "65535"}),
           r"65534 at most")


def test_not_all_agents_are_servers():
    """One node is colocated, the other not: the coordinator names both
    values."""
    with Net(agents=2, servers=1, colocated=True) as net:
        plain = net.ini["agent1"]
        plain["node"]["role"] = "agent"
        plain.pop("server agent1")
        net.start("a", "agent0", "agent1")
        first = net.client(0, *TENSORS)
        net.daemons["a"].await_text("agent 0 joined")
        net.client(1, *TENSORS).wait_error(
            r"MISMATCH.*agent 1 has servers = 2, job job has 3")
        first.kill()


def test_a_reason_is_logged_once():
    """Each part of a colocated node may report it."""
    with Net(agents=2, servers=0, colocated=True) as net:
        net.ini["agent1"]["serve"] = {"quota": "1MiB"}
        net.start_all()
        clients = [net.client(r, *TENSORS) for r in range(2)]
        for c in clients:
            c.wait_error(r"SW_EREFUSED.*quota")
        for name in net.agents:
            net.empty_stats(name)
            # The worker ends; its server detected the cause, or another member
            # told its server.
            said = [line.split()[1] for line in
                    net.daemons[name].log().splitlines()
                    if "quota: the tensors" in line]
            check(said.count("error") == 1 and said.count("info") <= 1,
                  f"{name} says it {len(said)} times: {said}")


def transient(**job):
    """Configure agents to end with their last process."""
    net = Net(agents=2, servers=0, colocated=True, job=job)
    for name in net.agents:
        net.ini[name]["agent"]["stay"] = "no"
    return net


def end_alone(net):
    for name in net.agents:
        net.daemons.pop(name).wait_ok(rig.STOP_S)


def test_end_with_the_last_process():
    with transient() as net:
        net.start_all()
        run_steps(net, *rig.SMALL)
        end_alone(net)


def test_end_with_killed_processes():
    with transient() as net:
        net.start_all()
        for c in start_forever(net):
            c.kill()
        end_alone(net)


def test_end_told_before_the_first_process():
    """The launcher signals all processes of the job, and the ranks still start."""
    with transient() as net:
        for name in net.agents:
            net.ini[name]["node"]["drain"] = "600s"
        net.start_all()
        for name in net.agents:
            net.daemons[name].signal(signal.SIGTERM)
        time.sleep(1)
        run_steps(net, *rig.SMALL)
        end_alone(net)


def test_end_without_any_process():
    with transient(join_timeout="1s") as net:
        net.start_all()
        end_alone(net)


if __name__ == "__main__":
    rig.main(dict(globals()))
