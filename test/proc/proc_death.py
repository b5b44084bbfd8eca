# proc_death.py - processes that die or stop in mid-job, and the errors they cause
# SPDX-License-Identifier: BSD-3-Clause
import os
import re
import resource
import signal
import socket
import time

import rig
from rig import Net, check, start_forever

DEAD_AFTER_S = 2
SLACK_S = 30  # for a busy machine, added to milliseconds
TENSOR = ("--tensor", "fc1.weight:1000000:f32")


def check_still_works(net):
    net.check_alive(*net.servers, *net.agents)
    clients = [net.client(r, *TENSOR, name=f"later{r}")
               for r in range(net.n_agents)]
    for c in clients:
        c.wait_ok()


def check_within(start, limit_s, what):
    took = time.monotonic() - start
    check(took < limit_s + SLACK_S,
          f"{what} took {took:.1f} s, {limit_s} s are allowed")


def test_rank_killed_in_mid_push():
    """The error does not wait for dead_after."""
    with Net(job={"dead_after": "600s"}) as net:
        net.start_all()
        victim = net.client(1, *TENSOR, "--misbehave", "die", "--steps", "2")
        other = net.client(0, *TENSOR, "--steps", "9")
        code = victim.wait(rig.RUN_S)
        check(code == -signal.SIGKILL, f"the victim ended with {code}")
        other.wait_error(r"error wait SW_EPEER: .*rank 1 \(node agent1\)")
        check_still_works(net)


def test_rank_of_a_training_killed():
    with Net() as net:
        net.start_all()
        train = net.train("--epochs", "1000")
        train.await_text(r"\n +1 .*identical")
        os.kill(train.children()[1], signal.SIGKILL)
        train.wait_error(r"killed by signal 9", r"rank 0 .*rank 1")
        check_still_works(net)


def test_agent_killed():
    with Net(job={"dead_after": f"{DEAD_AFTER_S}s"}) as net:
        net.start_all()
        clients = start_forever(net, *TENSOR, step=0)
        net.kill("agent1")
        start = time.monotonic()
        clients[1].wait_error(r"SW_ECLOSED: .*agent1.sock has ended")
        clients[0].wait_error(r"SW_EPEER: .*rank 1 \(node agent1\) "
                              rf"silent for {DEAD_AFTER_S} s")
        check_within(start, DEAD_AFTER_S, "the other rank's error")
        net.check_alive("a", "agent0")
        net.start("agent1")
        check_still_works(net)


def test_agent_killed_after_an_error():
    """The agent's processes report the last error of its log."""
    with Net(job={"dead_after": f"{DEAD_AFTER_S}s"}) as net:
        net.start_all()
        clients = start_forever(net, *TENSOR, step=0)
        pid = net.daemons["agent1"].pid
        n_files = len(os.listdir(f"/proc/{pid}/fd"))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (n_files, n_files))
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.connect(net.socket("agent1"))
            net.daemons["agent1"].await_text("no process can attach")
        net.kill("agent1")
        clients[1].wait_error(r"SW_ECLOSED: .*agent1.sock has ended; its last "
                              r"error: no process can attach")
        clients[0].wait_error(r"SW_EPEER: ")
        net.start("agent1")  # which removes the first one's files
        check_still_works(net)


def test_server_killed():
    with Net(servers=2, job={"dead_after": f"{DEAD_AFTER_S}s"}) as net:
        net.start_all()
        clients = start_forever(net, *TENSOR, step=0)
        net.kill("b")
        start = time.monotonic()
        for c in clients:
            c.wait_error(r"SW_ESERVER: .*server b \(10\.77\.[23]\.1\) "
                         rf"silent for {DEAD_AFTER_S} s")
        check_within(start, DEAD_AFTER_S, "the ranks' errors")
        net.check_alive("a", "agent0", "agent1")
        net.start("b")
        check_still_works(net)


def test_server_stopped_in_mid_training():
    with Net() as net:
        net.start_all()
        clients = start_forever(net, *TENSOR, step=0)
        log = net.stop("a")
        check(re.search(r"shutting down: draining open requests", log) and
              re.search(r"drained|dropped \d+ chunks", log),
              f"the server does not say what it finished or dropped: {log}")
        for c in clients:
            c.wait_error(r"SW_ESERVER: .*server")
        net.check_alive("agent0", "agent1")
        net.start("a")
        check_still_works(net)


def test_agent_stopped_in_mid_training():
    with Net() as net:
        net.start_all()
        clients = start_forever(net, *TENSOR, step=0)
        log = net.stop("agent1")
        check(re.search(r"shutting down: draining open requests", log) and
              re.search(r"drained|dropped \d+ unfinished push_pulls", log),
              f"the agent does not say what it finished or dropped: {log}")
        clients[1].wait_error(r"SW_ECLOSED: .*the agent stops")
        clients[0].wait_error(r"SW_EPEER: .*rank 1 \(node agent1\)")
        net.check_alive("a", "agent0")
        net.start("agent1")
        check_still_works(net)


def test_stop_while_idle():
    with Net(servers=2) as net:
        for ini in net.ini.values():
            del ini["node"]["runtime_dir"]
            del ini["stats"]
        net.start_all()
        sockets = set()
        for daemon in net.daemons.values():
            found = re.search(r"sumwire stats (\S+/stats-\d+\.sock)\n",
                              daemon.log())
            check(found and os.path.exists(found[1]),
                  f"no socket of counters in the log of {daemon.name}")
            sockets.add(found[1])
        for name in [*net.agents, *net.servers]:
            start = time.monotonic()
            net.stop(name)
            check_within(start, 1, f"the end of {name}")
        left = [f for f in sockets if os.path.exists(f)]
        check(len(sockets) == 4 and not left, f"left behind: {left}")


def test_agent_stopped_while_joining():
    with Net() as net:
        net.start_all()
        alone = net.client(0, *TENSOR)
        alone.await_text(r"waiting for agent 1 of 2 at")
        net.stop("agent0")
        alone.wait_error(r"error open SW_ECLOSED: .*the agent stops")


def test_server_restarted_between_jobs():
    with Net() as net:
        net.start_all()
        check_still_works(net)
        net.stop("a")
        net.start("a")
        rig.run_steps(net)


def test_server_restarted_in_a_job():
    with Net() as net:
        net.start_all()
        clients = start_forever(net, *TENSOR, step=0)
        net.kill("a")
        net.start("a")
        for c in clients:
            c.wait_error(r"SW_ESERVER: .*server a no longer knows this agent|"
                         r"SW_EPEER: .*server a no longer knows this agent")
        check_still_works(net)


def run_agent_ends_while_it_connects(end):
    """Repeatedly: the server must survive and serve others."""
    with Net(agents=1) as net:
        net.ini["brief"] = net.common("agent", "brief", 0)
        net.ini["brief"]["agent"] = {"socket": net.path("brief.sock")}
        net.add_port("a", 1, "listen")
        net.add_port("brief", 1, "connect")
        net.add_server("brief", "a", 1)
        net.start_all()
        for i in range(15):
            p = net.launch("brief")
            p.await_text(r"port link1: memif")
            time.sleep(0.0005 * i)
            end(net, "brief")
            net.check_alive("a")
        if "brief" in net.killed:
            net.start("brief")  # it removes the killed agent's files
        check_still_works(net)


def test_agent_stopped_while_it_connects():
    run_agent_ends_while_it_connects(Net.stop)


def test_agent_killed_while_it_connects():
    run_agent_ends_while_it_connects(Net.kill)


def test_rank_that_does_not_push_is_named():
    job = {"stall_warn": "1s", "stall_limit": "4s"}
    with Net(job=job) as net:
        net.start_all()
        lazy = net.client(1, *TENSOR, "--pause")
        eager = net.client(0, *TENSOR)
        eager.await_text(r"waiting \d s for rank 1 of 2, tensor fc1\.weight")
        eager.wait_error(r"SW_ESTALL: .*rank 1.*fc1\.weight")
        lazy.say()
        lazy.wait_error(r"SW_ESTALL|rank 1.*fc1\.weight")
        check_still_works(net)


if __name__ == "__main__":
    rig.main(dict(globals()))
