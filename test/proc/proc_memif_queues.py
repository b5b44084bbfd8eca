# proc_memif_queues.py - memif with a queue pair for each of several lcores
# SPDX-License-Identifier: BSD-3-Clause
import rig
from rig import Net, check, run_steps, start_forever

TENSORS = ("--tensor", "w:2000001:f32", "--tensor", "b:7:i32",
           "--tensor", "v:700000:i64")
FAULTS = {"fault_loss": "1%", "fault_dup": "1%", "fault_reorder": "1%"}
TWO = {"queues": 2}


def run_all(net, **keys):
    run_steps(net, *TENSORS, **keys)


def by_queue(stats, link, n=2):
    return [stats[f"port.link{link}.queue{i}.rx_frames"] for i in range(n)]


def test_each_lcore_its_own():
    """Lane i's server is lcore i: no lcore hands over a frame."""
    with Net(agents=2, lcores=2, lanes=(2, 2), port=TWO) as net:
        net.start_all()
        for again in "first", "second":  # the second job reuses freed memory
            run_all(net, name=again)
        for name in ("a", *net.agents):
            stats = net.stats(name)
            for link in range(2) if name == "a" else (
                    net.agents.index(name),):
                parts = by_queue(stats, link)
                check(min(parts) > 0.3 * sum(parts), f"{name}: {parts}")
            check(not stats.get("handoff_rx") and not stats.get("handoff_tx"),
                  f"{name}: frames were handed over: {stats}")
        check("2 queue pairs; frames come to the lcore with the sender's "
              "number" in net.daemons["a"].log(), "how frames come")


def test_colocated():
    with Net(agents=2, servers=0, colocated=True, lcores=2, lanes=(2, 2),
             port=TWO) as net:
        net.start_all()
        run_all(net)


def test_fewer_queues_than_lcores_and_faults():
    """The other lcores send and receive through the first ones, by rings."""
    with Net(agents=2, lcores=4, lanes=(4, 2), port={**TWO, **FAULTS}) as net:
        net.start_all()
        run_all(net, steps=3)
        check(net.stats("a")["handoff_rx"] > 0, "nothing was handed over")


def test_agent_killed_and_back():
    with Net(agents=2, lcores=2, lanes=(2, 2), port=TWO,
             job={"dead_after": "2s"}) as net:
        net.start_all()
        clients = start_forever(net, *TENSORS, step=1)
        net.kill("agent1")
        clients[0].wait_error(r"rank 1 \(node agent1\)")
        clients[1].kill()
        net.start("agent1")
        run_all(net, name="later")
        net.check_alive("a", *net.agents)


def refused(listener, connecter):
    """Ends with different numbers of queues get no link, and the agent reports
    why."""
    with Net(agents=1, lcores=2, lanes=(2,),
             job={"join_timeout": "3s"}) as net:
        net.ini["a"]["port link0"]["queues"] = listener
        net.ini["agent0"]["port link0"]["queues"] = connecter
        net.start_all()
        net.client(0, *TENSORS).wait_error(r"server a\.0 \(10\.77\.0\.1:5700\)")
        net.daemons["agent0"].await_text(
            r"port link0: no link through .*/link0 yet: nothing listens "
            rf"there, or its number of queue pairs is not "
            rf"{connecter} \(queues\)")
        # Both continue, and connect once the numbers agree.
        net.stop("agent0")
        net.ini["agent0"]["port link0"]["queues"] = listener
        net.start("agent0")
        run_all(net)


def test_listener_has_more():
    refused(2, 1)


def test_connecter_has_more():
    refused(1, 2)


if __name__ == "__main__":
    rig.main(dict(globals()))
