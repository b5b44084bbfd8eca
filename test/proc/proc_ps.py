# proc_ps.py - sumwire ps, and commands that take a daemon's name
# SPDX-License-Identifier: BSD-3-Clause
"""Daemons of other tests run at the same time, so these tests use unique names."""
import json
import os
import re
import signal
import socket
import socketserver
import subprocess
import threading

import rig
from rig import SMALL, Net, check

UNIQUE = f"ps{os.getpid()}"


def named(net):
    """Give the daemons of @net unique names."""
    for name, ini in net.ini.items():
        ini["node"]["name"] = unique(name)
        ini["job"]["name"] = UNIQUE
    return net


def unique(name):
    return f"{UNIQUE}.{name}"


def ps(net):
    """Return our daemons, by their name in the net."""
    p = subprocess.run([rig.sumwire(), "ps", "--json"], check=True,
                       stdout=subprocess.PIPE, timeout=rig.START_S)
    pids = {d.pid: name for name, d in net.daemons.items()}
    return {pids[d["pid"]]: d for d in json.loads(p.stdout)["daemons"]
            if d["pid"] in pids}


def await_ps(net, fn, what):
    rig.wait_until(lambda: fn(ps(net)), rig.START_S, what)


def stats(*args):
    return subprocess.run([rig.sumwire(), "stats", *args], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=rig.START_S, text=True)


def test_daemons_and_jobs():
    with named(Net(agents=2)) as net:
        net.start_all()
        found = ps(net)
        check(set(found) == {"a", "agent0", "agent1"}, f"ps has {found}")
        for name, d in found.items():
            check(d["name"] == unique(name) and d["state"] == "idle" and
                  not d["jobs"], f"{name}: {d}")
        first = net.client(0, *SMALL, "--steps", "100000")
        await_ps(net, lambda f: f["a"]["state"] == "forming",
                 "the server forms the job")
        job, = ps(net)["a"]["jobs"]
        check(job["name"] == UNIQUE and job["agents_here"] == 1 and
              job["agents"] == 2 and job["missing"] == "agent 1" and
              "ranks" not in job, f"forming: {job}")
        second = net.client(1, *SMALL, "--steps", "100000")
        await_ps(net, lambda f: all(d["state"] == "running"
                                    for d in f.values()), "the job runs")
        found = ps(net)
        job, = found["a"]["jobs"]
        check(job["ranks_here"] == 2 and job["ranks"] == 2, f"server: {job}")
        job, = found["agent1"]["jobs"]
        check(job["first_rank"] == 1 and job["ranks"] == 2, f"agent: {job}")
        for p in first, second:
            p.signal(signal.SIGKILL)
        await_ps(net, lambda f: all(d["state"] == "idle"
                                    for d in f.values()), "all are idle")


def test_names():
    """A name, a pid and a path show the same daemon; an unknown name lists the
    existing ones."""
    with named(Net(agents=1)) as net:
        net.start_all()
        for word in (unique("a"), str(net.daemons["a"].pid),
                     net.stats_socket("a")):
            p = stats("--json", word)
            check(p.returncode == 0 and
                  "memory_quota_bytes" in json.loads(p.stdout),
                  f"stats {word}: {p.stderr}")
        for word, text in ((unique("b"), "no daemon has this name"),
                           ("\x1b[2J", "?[2J: no daemon has this name"),
                           ("", "no daemon has this name"),
                           ("/nowhere", "no daemon is listening there")):
            p = stats(word)
            check(p.returncode == 1 and text in p.stderr and not p.stdout and
                  "\x1b" not in p.stderr, f"stats {word}: {p.stderr}")


def test_one_name_twice():
    with named(Net(agents=2)) as net:
        net.ini["agent1"]["node"]["name"] = unique("agent0")
        net.start_all()
        p = stats(unique("agent0"))
        check(p.returncode == 1 and "several daemons: give a pid" in p.stderr
              and str(net.daemons["agent1"].pid) in p.stderr, p.stderr)


def test_a_daemon_that_hangs_and_dies():
    with named(Net(agents=1)) as net:
        net.start_all()
        server = net.daemons["a"]
        server.signal(signal.SIGSTOP)
        await_ps(net, lambda f: f["a"]["state"] == "no answer" and
                 f["agent0"]["state"] == "idle", "one hangs, the other is idle")
        p = stats(unique("a"))
        check(p.returncode == 1, "a daemon without an answer has a name")
        server.signal(signal.SIGKILL)
        server.wait(rig.STOP_S)
        check("a" not in ps(net), "a dead daemon is shown")
        net.daemons.pop("a")
        net.start("a")  # removes the killed daemon's files
        net.stop("a")
        os.rmdir(net.path("a.run"))  # the first daemon made it


def test_bench_by_name():
    with named(Net(agents=1)) as net:
        net.start_all()
        p = net.run("bench", rig.sumwire(), "bench", "--agent",
                    unique("agent0"), "--min", "64KiB", "--max", "64KiB")
        p.wait_ok()
        p = net.run("wrong", rig.sumwire(), "bench", "--agent", unique("a"))
        p.wait_error("is no agent")


def test_every_counter_is_explained():
    with named(Net(agents=2, servers=1, colocated=True, lcores=2)) as net:
        net.start_all()
        of_kind = {re.sub(r"\d+", "N", name): name
                   for daemon in ("a", "agent0") for name in net.stats(daemon)}
        net.stop("a", "agent0", "agent1")  # otherwise they take the cores
        left = [name for name in of_kind.values()
                if stats("--explain", name).returncode]
        check(not left, f"no meaning of {left}")
        p = stats("--explain", "rx_framse")
        check(p.returncode == 1 and "did you mean rx_frames?" in p.stderr,
              p.stderr)


def test_rates():
    """Rates are per second, until SIGINT or the daemon's end."""
    with named(Net(agents=1)) as net:
        net.start_all()
        client = net.client(0, "--tensor", "w:1000000:f32", "--steps",
                            "1000000")
        rows = stats("--interval", "0.2", "--count", "25", "--json",
                     unique("a")).stdout.splitlines()
        check(len(rows) == 25, f"{len(rows)} lines")
        rates = [json.loads(row)["push_bytes_per_s"] for row in rows]
        check(max(rates) > 1e6, f"rates {rates}")
        p = stats("--interval", "0.1", "--count", "21", "--counter",
                  "open_chunks", "--counter", "push_bytes", unique("a"))
        check(len(re.findall(r"open_chunks +push_bytes", p.stdout)) == 2 and
              p.stdout.count("(now)") == 2, p.stdout + p.stderr)
        p = stats("--interval", "1", "--counter", "rx", unique("a"))
        check(p.returncode == 1 and "has no counter rx" in p.stderr, p.stderr)
        running = [net.run(f"rates{i}", rig.sumwire(), "stats", "--interval",
                           "0.1", unique("a")) for i in range(2)]
        for p in running:
            p.await_out(r"\d\d:\d\d:\d\d ")
        running[0].signal(signal.SIGINT)
        running[0].wait_ok()
        client.kill()
        net.stop("a")
        running[1].wait_ok()
        check("the daemon has ended" in running[1].log(), running[1].log())


def status(*args):
    return subprocess.run([rig.sumwire(), "status", *args], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=rig.START_S, text=True)


def status_of(daemon):
    job, = json.loads(status("--json", str(daemon.pid)).stdout)["jobs"]
    return job


def ras(*lines):
    p = subprocess.run([rig.sumwire(), "ras"], check=True, text=True,
                       input="".join(line + "\n" for line in lines),
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       timeout=rig.START_S)
    return p.stdout


class Inetd(socketserver.ForkingTCPServer):
    """Starts a process for each reader, as sumwire-ras.socket does."""

    class RequestHandlerClass(socketserver.BaseRequestHandler):
        def handle(self):
            subprocess.run([rig.sumwire(), "ras"], stdin=self.request,
                           stdout=self.request, check=False)

    def __init__(self):
        super().__init__(("127.0.0.1", 0), self.RequestHandlerClass)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class NcclRas:
    """The steps of ncclras (NCCL, src/ras/client.cc): it gives the greeting a second, awaits
    each answer up to its newline, then copies the status until the other end closes.
    Without -t and -f it sends neither TIMEOUT nor SET FORMAT."""

    def __init__(self, address, timeout_s=None, form=None):
        self.sock = socket.create_connection(address, rig.START_S)
        said = self.ask("CLIENT PROTOCOL 2")
        check(said == "SERVER PROTOCOL 2\n", said)
        if timeout_s is not None:
            check(self.ask(f"TIMEOUT {timeout_s}") == "OK\n", "TIMEOUT")
        if form:
            check(self.ask(f"SET FORMAT {form}") == "OK\n", "SET FORMAT")

    def ask(self, line):
        """An answer; bytes behind its newline would stay unread in ncclras's buffer."""
        self.sock.sendall(line.encode() + b"\n")
        said = b""
        while not said.endswith(b"\n"):
            said += self.sock.recv(1023) or b"(closed)\n"
        return said.decode()

    def status(self, command):
        self.sock.sendall(command.encode() + b"\n")  # and it keeps its end open
        return b"".join(iter(lambda: self.sock.recv(4095), b"")).decode()

    def monitor(self, pattern, groups=""):
        """Events, until one matches."""
        self.sock.sendall(f"MONITOR{groups}\n".encode())
        said = ""
        while not re.search(pattern, said):
            more = self.sock.recv(4095).decode()
            check(more, f"closed after {said}")
            said += more
        check(said.startswith("OK\n"), said)
        self.sock.shutdown(socket.SHUT_RDWR)  # forks of ours have it, too
        return said[3:].splitlines()


def check_ncclras():
    """Check ncclras' output, its JSON form and its monitor."""
    with Inetd() as inetd:
        at = inetd.server_address
        for command in "STATUS", "VERBOSE STATUS":
            check(f"job {UNIQUE} at server" in NcclRas(at).status(command), command)
            NcclRas(at, 0, "text").status(command)
        found = json.loads(NcclRas(at, 5, "json").status("VERBOSE STATUS"))
        check({"nccl_version", "cuda_runtime_version", "cuda_driver_version", "timestamp",
               "communicators_count", "communicators"} <= set(found) and
              set(found["ras"]) == {"collection_time_sec", "timeouts_count"}, f"{set(found)}")
        for c in found["communicators"]:
            check({"hash", "secondary_hash", "size", "ranks_count", "missing_ranks_count",
                   "ranks", "missing_ranks"} <= set(c), f"{set(c)}")
            for r in c["ranks"]:
                check(set(r) == {"rank", "host", "pid", "cuda_dev", "nvml_dev", "status",
                                 "collective_counts"}, f"{r}")
                check(set(r["status"]) == {"init_state", "async_error", "finalize_called",
                                           "destroy_flag", "abort_flag"}, f"{r}")
        for line in NcclRas(at).monitor(f"BEGIN: job {UNIQUE} is running\n"):
            check(re.match(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] \w+: ", line), line)
        lines = NcclRas(at, form="json").monitor(f"job {UNIQUE} is running.*\n",
                                                 " lifecycle,trace")
        check(all(set(json.loads(line)) == {"timestamp", "group", "event", "details"}
                  for line in lines), f"{lines}")
        inetd.shutdown()


def check_ras():
    """What NCCL's readers ask and need; rank 2 is a collective behind."""
    head, _, text = ras("client protocol 7\r", "timeout 2.5", "TIMEOUT 5s", "timeout -1",
                        "nonsense", "STATUS of all", "SET FORMAT xml", "monitor all,some",
                        "SET FORMAT json", "VERBOSE STATUS", "STATUS").partition("{")
    check(head == "SERVER PROTOCOL 2\nOK\nERROR: Invalid timeout value 5s\n"
          "ERROR: Invalid timeout value -1\nERROR: Unknown command nonsense\n"
          "ERROR: Unknown command STATUS of all\nERROR: Invalid format xml\n"
          "ERROR: Invalid event group 'some'\nOK\n", head)
    check(ras("CLIENT PROTOCOL 2", "x" * 300, "STATUS") == "SERVER PROTOCOL 2\n",
          "a long line ends the connection")
    found = json.loads("{" + text)
    comms = [c for c in found["communicators"] if c["job"] == UNIQUE]
    check(found["communicators_count"] >= len(comms) == 2 and
          len({c["hash"] for c in comms}) == 2, f"{comms}")
    for c in comms:
        counts = [r["collective_counts"]["AllReduce"] for r in c["ranks"]]
        check(counts == [1, 1, 0] and not c["missing_ranks"] and
              c["size"] == 3 == c["ranks_count"], f"{c}")
    check(f"job {UNIQUE} at server" in ras("STATUS"), "no text")
    said = ras("MONITOR")
    check(f"BEGIN: job {UNIQUE}: w waits for agents 0x4\n" in said and
          f"BEGIN: job {UNIQUE} is running\n" in said, said)


def test_status_names_who_is_late():
    with named(Net(agents=3)) as net:
        net.start_all()
        server = net.daemons["a"]
        p = status("--json", str(server.pid))
        check(json.loads(p.stdout) == {"jobs": []} and p.returncode == 1,
              f"idle: {p}")
        args = "--tensor", "w:1000000:f32", "--tensor", "b:10:f64"
        early = [net.client(r, *args, "--steps", "1000") for r in (0, 1)]
        await_ps(net, lambda f: f["a"]["state"] == "forming", "it forms")
        rig.wait_until(lambda: [a["state"] for a in status_of(server)["agents"]]
                       == ["here", "here", "missing"], rig.START_S,
                       "two agents are here, one is missing")
        late = net.client(2, *args, "--steps", "2", "--pause")
        late.await_out(r"declared")
        rig.wait_until(lambda: len(status_of(server)["waits"]) == 2,
                       rig.START_S, "both tensors wait")
        job = status_of(server)
        waits = {w["name"]: w for w in job["waits"]}
        check(waits["w"]["missing_agents"] == [2] == waits["b"][
            "missing_agents"] and waits["b"]["chunks"] == 1 and
            waits["w"]["chunks"] > 1 and waits["w"]["number"] == 1 and
            waits["w"]["call"] == "push_pull", f"waits {job['waits']}")
        rig.wait_until(lambda: status_of(server)["waits"][0]["still_ms"] >
                       1500, rig.START_S, "tensors wait ever longer")
        check([a["first_rank"] for a in job["agents"]] == [0, 1, 2] and
              job["agents"][2]["node"] == unique("agent2"), f"{job}")
        check_ras()
        check_ncclras()
        said = status(str(net.daemons["agent0"].pid)).stdout
        check(re.search(r"local ranks?: ranks? 0(-\d)? of 3\n", said) and
              re.search(r"tensor w, [\d.]+ s: \d+ chunks for rank 2 of 3", said),
              said)
        said = status(UNIQUE).stdout
        check(re.search(rf"tensor w, round 1, [\d.]+ s: \d+ chunks for rank "
                        rf"2 \(node "
                        rf"{unique('agent2')}\)", said) and
              "3 of 3 ranks" in said, said)
        late.signal(signal.SIGKILL)
        for p in early:
            p.wait_error("SW_EPEER")
        rig.wait_until(lambda: status(UNIQUE).returncode == 1, rig.START_S,
                       "the job has ended")
        p = status("nobody" + UNIQUE)
        check(p.returncode == 1 and "no daemon has this name" in p.stderr,
              p.stderr)


COMPLETE = """source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($#-1))
_sumwire "$SUMWIRE"; printf '%s\\n' "${COMPREPLY[@]}" """


def complete(*words):
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                          "../../apps/cli/completion.bash")
    p = subprocess.run(["bash", "-c", COMPLETE, "bash", script, "sumwire",
                        *words], check=True, stdout=subprocess.PIPE, text=True,
                       env={**os.environ, "SUMWIRE": rig.sumwire()})
    return p.stdout.split()


def test_every_command_has_the_common_options():
    commands = [w for w in complete("") if w[0] != "-"]
    check({"agent", "server", "ps", "stats", "bench"} <= set(commands),
          f"{commands}")
    for command in commands:
        for options, begin in (("-h", "--help"), f"sumwire {command} - "), \
                (("-V", "--version"), "sumwire "):
            said = {subprocess.run([rig.sumwire(), command, option],
                                   check=True, stdout=subprocess.PIPE,
                                   text=True).stdout for option in options}
            check(len(said) == 1 and said.pop().startswith(begin),
                  f"{command}: {options}")
        check("--help" in complete(command, "-"), f"completion of {command}")


def test_completion():
    with named(Net(agents=1)) as net:
        net.start_all()
        for command in "stats", "capture":
            check(complete(command, UNIQUE) == [unique("a"), unique("agent0")],
                  f"{command}: daemons are not completed")
        check(complete("bench", "--mi") == ["--min"], "no option")
        check(complete("stats", "--explain", "rx_b") == ["rx_bytes"],
              "no counter")


if __name__ == "__main__":
    rig.main(dict(globals()))
