# proc_signals.py - signals that end daemons, once and repeatedly
# SPDX-License-Identifier: BSD-3-Clause
import json
import os
import signal
import socket
import sys
import tempfile
import time
import unittest.mock

import rig
from rig import Net, check

# A process that notices an end only by silence waits longer than a test.
FOREVER = {"dead_after": "600s"}


def hang_up(net, name):
    """Send SIGHUP: the daemon ends as by SIGTERM; the rig checks for leftovers."""
    p = net.daemons.pop(name)
    p.signal(signal.SIGHUP)
    code = p.wait(rig.STOP_S)
    check(code == 0, f"{name} ended with {code} after SIGHUP")


def test_hangup_of_a_server():
    """All ranks get an error."""
    with Net(job=FOREVER) as net:
        net.start_all()
        clients = rig.start_forever(net)
        hang_up(net, "a")
        for c in clients:
            c.wait_error(r"error (wait|push) SW_ESERVER: .*the server at node a stops")


def test_hangup_of_an_agent():
    """Its own process and the others' get an error."""
    with Net(job=FOREVER) as net:
        net.start_all()
        clients = rig.start_forever(net)
        hang_up(net, "agent1")
        clients[1].wait_error(r"error \w+ SW_ECLOSED: .*agent")
        clients[0].wait_error(r"error \w+ SW_EPEER: .*rank 1")


def test_hangup_that_is_ignored():
    """nohup made it ignore the signal."""
    with Net(agents=1) as net:
        p = net.run("a", "nohup", rig.sumwire(), "server", "--config",
                    net.write_ini("a"))
        net.daemons["a"] = p
        p.await_text(r"is ready")
        p.signal(signal.SIGHUP)
        for _ in range(3):  # the control thread has checked for signals
            net.stats("a")


IGNORED = signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGPIPE


def test_signals_for_the_ranks():
    """Schedulers signal all processes of a job shortly before it ends."""
    with Net() as net:
        net.start_all()
        clients = rig.start_forever(net)
        for p in net.daemons.values():
            for number in IGNORED:
                p.signal(number)
        rig.check_goes_on(clients)
        rig.end(net, clients)


def run_drained(net, numbers, **daemons):
    """Signalled daemons drain until their clients have ended."""
    for name in daemons["told"]:
        net.ini[name]["node"]["drain"] = "600s"
    net.start_all()
    clients = rig.start_forever(net)
    for number in numbers:
        for name in daemons["told"]:
            net.daemons[name].signal(number)
            time.sleep(0.1)
    for name in daemons["told"]:
        net.daemons[name].await_text("draining attached")
    rig.check_goes_on(clients)
    for c in clients:
        c.kill()
    for name in daemons["told"]:
        p = net.daemons.pop(name)
        check(p.wait(rig.STOP_S) == 0, f"{name} did not end well")
        check(p.log().count("draining attached") == 1, p.log())


def test_drain():
    """Repeated signals do not shorten the drain."""
    numbers = signal.SIGTERM, signal.SIGINT, signal.SIGTERM
    with Net() as net:
        run_drained(net, numbers, told=[*net.servers, *net.agents])
    with Net(servers=0, colocated=True) as net:
        run_drained(net, numbers, told=net.agents)


def test_service_manager():
    """The service manager gets READY, keepalives and STOPPING; SIGHUP reloads."""
    with Net(agents=1) as net, tempfile.TemporaryDirectory() as folder, \
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(os.path.join(folder, "notify"))
        manager.settimeout(rig.START_S)
        net.ini["a"]["share x"] = {"weight": 2}
        net.options["a"] = ("--log-format", "json")
        for name in "a", "agent0":
            with unittest.mock.patch.dict(os.environ, {
                    "NOTIFY_SOCKET": manager.getsockname(),
                    "WATCHDOG_USEC": "200000"}):
                net.launch(name)
            for word in b"READY=1\nSTATUS=serving", b"WATCHDOG=1":
                rig.wait_until(lambda w=word: manager.recv(999) == w,
                               rig.START_S, f"{word} of {name}")
        p = net.daemons["a"]
        net.ini["a"]["share x"] = {"weight": 3}
        net.ini["a"]["log"] = {"level": "warn"}
        net.ini["a"]["serve"] = {"quota": "1GiB"}
        net.write_ini("a")
        p.signal(signal.SIGHUP)
        p.await_text(r"these changes need a restart: \[serve\] quota")
        p.await_text(r"reloaded: \[log\] level, \[share x\] weight|"
                     r"reloaded: \[share x\] weight, \[log\] level")
        net.ini["a"]["share x"] = {"wait": 4}
        net.write_ini("a")
        p.signal(signal.SIGHUP)
        p.await_text(r"is not reloaded; the previous configuration stays in use")
        rig.run_steps(net, *rig.SMALL)
        check("opened" not in p.log(), f"level info:\n{p.log()}")
        for row in p.log().splitlines():
            check(set(json.loads(row)) == {"time", "level", "text"}, row)
        net.stop("a")
        rig.wait_until(lambda: b"STOPPING=1" in manager.recv(999), rig.STOP_S,
                       "word of its end")


ATTACH = """\
from sumwire.client import Client
client = Client()
print("attached", flush=True)
input()
"""


def test_drain_of_a_job_without_tensors():
    """One process is attached and has declared nothing."""
    with Net(agents=1) as net:
        net.ini["a"]["node"]["drain"] = "600s"
        net.start_all()
        root = os.path.join(os.path.dirname(__file__), "..", "..")
        p = net.run("client", "env", f"PYTHONPATH={root}/apps/torch",
                    "PYTHONDONTWRITEBYTECODE=1",
                    "SUMWIRE_AGENT=" + net.socket("agent0"),
                    "SUMWIRE_LIBRARY=" + rig.program(
                        "pmd/client/libsumwire.so"), sys.executable, "-c",
                    ATTACH)
        p.await_out("attached")
        server = net.daemons.pop("a")
        server.await_text("agent 0 joined")  # the agent joins by itself after the attach
        server.signal(signal.SIGTERM)
        server.await_text("draining")
        time.sleep(1)
        check(server.code() is None, "the server has ended")
        p.say()
        p.wait_ok()
        check(server.wait(rig.STOP_S) == 0, "the server did not end well")


def test_drain_has_a_limit():
    """SIGQUIT reduces the limit to zero."""
    for drain, number in ("1s", signal.SIGTERM), ("600s", signal.SIGQUIT):
        with Net(job=FOREVER) as net:
            for name in net.ini:
                net.ini[name]["node"]["drain"] = drain
            net.start_all()
            clients = rig.start_forever(net)
            p = net.daemons.pop("agent1")
            p.signal(number)
            check(p.wait(rig.STOP_S) == 0, "it did not end well")
            clients[1].wait_error(r"error \w+ SW_ECLOSED: .*agent")
            clients[0].wait_error(r"error \w+ SW_EPEER: .*rank 1")


def state(p):
    with open(f"/proc/{p.pid}/stat", encoding="ascii") as f:
        return f.read().rsplit(")", 1)[1].split()[0]


def test_a_command_that_stood_still():
    """Stop and continue a command, as by Ctrl-Z and fg, while it waits for an
    answer."""
    with Net(agents=1) as net:
        net.start("a")
        net.daemons["a"].signal(signal.SIGSTOP)
        p = net.run("stats", rig.sumwire(), "stats", "--json",
                    net.stats_socket("a"))
        rig.wait_until(lambda: state(p) == "S", rig.START_S, "a reader")
        time.sleep(0.3)
        p.signal(signal.SIGSTOP)
        rig.wait_until(lambda: state(p) == "T", rig.START_S, "a stop")
        p.signal(signal.SIGCONT)
        net.daemons["a"].signal(signal.SIGCONT)
        p.wait_ok()
        check("chunks_done" in p.out(), p.out())


def tell_twice(p):
    """Send the second signal after the log line about the first."""
    p.signal(signal.SIGTERM)
    p.await_text(r"shutting down: draining open requests")
    p.signal(signal.SIGTERM)


def tell_at_once(p):
    """Send both signals before the process can act on either."""
    p.signal(signal.SIGTERM)
    p.signal(signal.SIGINT)


def run_hurried(name, tell, *patterns):
    """The daemon stops waiting for a sum that cannot complete."""
    with Net() as net:
        net.start_all()
        eager = net.client(0, *rig.SMALL, "--steps", "2")
        lazy = net.client(1, *rig.SMALL, "--steps", "2", "--pause")
        lazy.say()
        eager.await_out(r"step 0 exact")
        rig.wait_until(lambda: net.stats("a")["open_chunks"], rig.RUN_S,
                       "chunk that waits for rank 1")
        p = net.daemons.pop(name)
        tell(p)
        for pattern in (r"received a second signal, stopping at once",
                        *patterns):
            p.await_text(pattern)
        check(p.wait(rig.STOP_S) == 0, f"{name} did not end well")
        for c in eager, lazy:
            c.destroy()


def test_server_told_twice():
    for tell in tell_twice, tell_at_once:
        run_hurried("a", tell, r"dropped \d+ chunks that wait for agents")


def test_agent_told_twice():
    for tell in tell_twice, tell_at_once:
        run_hurried("agent0", tell, r"dropped 1 unfinished push_pulls")


if __name__ == "__main__":
    rig.main(dict(globals()))
