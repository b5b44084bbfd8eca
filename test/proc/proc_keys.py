# proc_keys.py - jobs with a secret: on the wire, with wrong keys, with new keys
# SPDX-License-Identifier: BSD-3-Clause
"""The attacker sees each frame, because the bridge forgets learned addresses at
once. SUMWIRE_TEST_ATTEMPTS sets the number of attempts."""
import contextlib
import os
import re
import signal
import socket
import statistics
import subprocess
import time

import lan
import rig
from hosts import Hosts
from rig import check, check_goes_on, end, is_long, program, start_forever

ATTEMPTS = int(os.environ.get("SUMWIRE_TEST_ATTEMPTS", "0")) or (
    50000 if rig.IS_QUICK else 1000000)
TENSORS = "--tensor", "w:200000:f32", "--tensor", "v:3:f32"
SLICE_S = 0.2
GRACE_S = 20  # for what follows a new key on a busy machine
GOODPUT = 0.9  # minimum of results per CPU second, relative to those without the attack
SURE = 3.1  # standard deviations: one run in 1,000 fails by chance
MEMORY_GROWS = 8 << 20  # most bytes by which an attacked daemon may grow


@contextlib.contextmanager
def supervised():
    """Daemons that start here read their files again on SIGHUP."""
    os.environ["NOTIFY_SOCKET"] = "@sumwire-nobody"
    try:
        yield
    finally:
        del os.environ["NOTIFY_SOCKET"]


class Keyed(Hosts):
    """Nodes with the same secret, unless a case changes it."""

    def __init__(self, *args, required=True, **keys):
        super().__init__(*args, **keys)
        for name in self.hosts:
            self.give(name, "job.key")
            if name in self.servers and required:
                self.ini[name].setdefault("serve", {})["require_key"] = "yes"

    def key(self, name):
        """Write a file with a secret."""
        path = self.path(name)
        if not os.path.exists(path):
            subprocess.run([rig.sumwire(), "key", path], check=True,
                           stdout=subprocess.DEVNULL)
        return path

    def give(self, node, name):
        section = "serve" if node in self.servers else "job"
        self.ini[node].setdefault(section, {})["key_file"] = self.key(name)

    def check_clean(self):
        for name in os.listdir(self.folder):
            if name.endswith(".key"):
                os.unlink(self.path(name))
        super().check_clean()


def attack(net, attempts, seed):
    lan.ip("link", "set", "dev", "lan", "type", "bridge", "ageing_time", "0")
    lan.batch("link add name mallory type veth peer name mallory-lan\n"
              "link set dev mallory mtu 9000 up\n"
              "link set dev mallory-lan mtu 9000 master lan up\n")
    net.interfaces.append("mallory-lan")
    return net.run("mallory", program("test/proc/proc_attack"), "mallory",
                   str(attempts), str(seed))


def memory(net, name):
    with open(f"/proc/{net.daemons[name].pid}/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def results(net, name):
    """Return (CPU seconds, results) of the daemon; other users of its core do
    not count."""
    tasks = f"/proc/{net.daemons[name].pid}/task"
    spent = 0
    for task in os.listdir(tasks):
        with open(f"{tasks}/{task}/schedstat", encoding="ascii") as f:
            spent += int(f.read().split()[0])
    return spent / 1e9, net.stats(name)["results"]


def goodput(net, mallory, name):
    """Compare results per CPU second under the attack with those while the
    attacker sends the same frames to an unused address, in short slices in
    turn, until it ends. If the ratio equals the median, half of the pairs are
    below it."""
    mallory.await_out("attacks")
    rates = {signal.SIGUSR1: [], signal.SIGUSR2: []}
    while mallory.code() is None:
        for mode, of_mode in rates.items():
            mallory.signal(mode)
            from_s, before = results(net, name)
            time.sleep(SLICE_S)
            to_s, after = results(net, name)
            if mallory.code() is None:
                of_mode.append((after - before) / (to_s - from_s))
    if len(rates[signal.SIGUSR2]) < 3:
        print("the attack was too short for a rate")
        return
    pairs = list(zip(*rates.values()))
    worse = sum(under < GOODPUT * aside for aside, under in pairs)
    aside, under = (statistics.quantiles(r, n=4) for r in rates.values())
    print(f"{name}: {under[1]:.0f} results/CPU s under attack (quartiles "
          f"{under[0]:.0f} to {under[2]:.0f}), {aside[1]:.0f} beside "
          f"({aside[0]:.0f} to {aside[2]:.0f}): {under[1] / aside[1]:.3f} in "
          f"{len(pairs)} slices each, {worse} below {GOODPUT}")
    check(worse <= (len(pairs) + SURE * len(pairs) ** 0.5) / 2,
          "the attack takes the goodput")


def attacked(attempts, **keys):
    """Check that each sum during the attack is right, that the job continues,
    and that memory and most of the goodput stay."""
    with Keyed(mtu=1500, agents=2, **keys) as net:
        for name in net.hosts:  # so that the attacker sees each frame separately
            net.ip(name, "link", "set", "dev", name, "gso_max_segs", "1")
        net.start_all()
        clients = start_forever(net, *TENSORS)
        nodes = [*net.servers, *net.agents]
        before = {n: memory(net, n) for n in nodes}
        mallory = attack(net, attempts, 1)
        goodput(net, mallory, nodes[0])
        mallory.wait_ok(600)
        print(mallory.out(), end="")
        check(f"attempts {attempts}," in mallory.out(), "all were made")
        check_goes_on(clients)
        stats = {n: net.stats(n) for n in nodes}
        for name in nodes:
            s = {**stats[name]}
            tag, replay = s["rx_tag"], s["rx_replay"]
            print(f"{name}: rx_tag {tag}, rx_replay {replay}, rx_session "
                  f"{s['rx_session']}")
            check(tag > attempts / 100 and replay > 0, "frames were refused")
            grown = memory(net, name) - before[name]
            check(grown < MEMORY_GROWS, f"{name} has {grown} bytes more")
            log = net.daemons[name].log()
            check(not re.search(" error | left| dead", log), log)
        for name in net.servers:
            check(stats[name]["sessions_opened"] == 2, "both sessions live")
        end(net, clients)


def test_attack():
    attacked(ATTEMPTS)


@is_long
def test_attack_on_colocated():
    attacked(ATTEMPTS // 4, servers=0, colocated=True)


@is_long
def test_the_attack_ends_a_job_without_a_key():
    """Verify the attack: without a secret, a forged message suffices to end a
    job."""
    with Keyed(mtu=1500, agents=2, required=False) as net:
        for name in net.hosts:
            for section in net.ini[name].values():
                section.pop("key_file", None)
            net.ip(name, "link", "set", "dev", name, "gso_max_segs", "1")
        net.start_all()
        clients = start_forever(net, *TENSORS)
        attack(net, ATTEMPTS, 1).wait_ok(600)
        for c in clients:
            c.wait_error("error")
            check("has no key: whoever" in net.daemons["agent0"].log(),
                  "the agent warned")


def test_keyed_by_files():
    """Agents have [job] key_file, the server the job's file in key_dir, and a key
    for other jobs.  One that is taken away ends the sessions under it, alone."""
    with supervised(), Keyed(agents=3) as net:
        net.ini["a"]["serve"]["key_dir"] = net.folder
        net.give("a", "all.key")
        net.give("agent2", "all.key")
        for name in "agent0", "agent1":
            net.ini[name]["job"]["agents"] = 2
        net.ini["agent2"]["job"].update(name="blue", agents=1, agent=0)
        net.start_all()
        clients = start_forever(net, agents=net.agents[:2])
        blue = start_forever(net, agents=net.agents[2:], name="blue")
        check(net.stats("agent0")["keyed"] == 1, "keyed")
        out = subprocess.run([rig.sumwire(), "status"], check=True, text=True,
                             stdout=subprocess.PIPE).stdout
        check(re.search(r"job job at server a .*, keyed", out), out)
        os.unlink(net.key("job.key"))
        reload(net, "a", "the key of agent . was taken away")
        for c in clients:
            c.wait_error("the server has taken this agent's key away")
        check_goes_on(blue)
        end(net, blue)


def seen(encrypts):
    """Capture frames of a job; return how many contain its tensor's name, and
    the fraction of zero bytes in large frames."""
    with Keyed(agents=2, job={"encrypt": encrypts}) as net, socket.socket(
            socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
        sock.setblocking(False)
        net.start_all()
        clients = start_forever(net, "--tensor", "nobody-reads-it:3000:f32")
        check(net.stats("agent0")["encrypted"] == (encrypts == "yes"), "said")
        out = subprocess.run([rig.sumwire(), "status"], check=True, text=True,
                             stdout=subprocess.PIPE).stdout
        check(("keyed, encrypted" in out) == (encrypts == "yes"), out)
        frames = []
        with contextlib.suppress(BlockingIOError):
            while len(frames) < 20000:
                frames.append(sock.recv(1 << 16)[96:])
        end(net, clients)
    large = b"".join(f for f in frames if len(f) > 1000)
    check(len(large) > 100000, f"{len(large)} bytes")
    return (sum(b"nobody-reads-it" in f for f in frames),
            large.count(0) / len(large))


def test_encrypted():
    """Captured frames reveal nothing; without encryption they reveal
    everything."""
    names, zeros = seen("no")
    check(names >= 2 and zeros > 0.1, f"{names} names, {zeros:.3f} zeros")
    names, zeros = seen("yes")
    check(not names and zeros < 0.02, f"{names} names, {zeros:.3f} zeros")


def refused(change, *patterns, **keys):
    """Check that the job never starts, and that agents report why before
    join_timeout."""
    with Keyed(agents=1, job={"join_timeout": "3s"}, **keys) as net:
        change(net)
        net.start_all()
        client = net.client(0, *TENSORS, "--steps", "1")
        client.wait_error(*patterns)
        check(not net.stats("a")["sessions_opened"], "no session")
        return net.daemons["a"].log()


def test_another_key():
    log = refused(lambda net: net.give("agent0", "other.key"), "server|key")
    check("has another key than this server" in log, log)


def test_no_key_where_one_is_required():
    def change(net):
        del net.ini["agent0"]["job"]["key_file"]
    refused(change, "no agent without a key: give it .job. key_file")


def test_a_key_where_nobody_has_one():
    def change(net):
        del net.ini["a"]["serve"]["key_file"]
    refused(change, "server", required=False)


def test_trusted_memif():
    """One agent's memif is trusted, the other's is not: both join one job."""
    with rig.Net(agents=2) as net:
        key = os.path.join(net.folder, "job.key")
        subprocess.run([rig.sumwire(), "key", key], check=True,
                       stdout=subprocess.DEVNULL)
        net.ini["a"]["serve"] = {"key_file": key, "require_key": "yes"}
        net.ini["a"]["port link1"]["trusted"] = "yes"
        net.ini["agent0"]["job"]["key_file"] = key
        net.ini["agent1"]["port link1"]["trusted"] = "yes"
        net.start_all()
        rig.run_steps(net, *TENSORS)
        check(net.stats("agent0")["keyed"], "one has tags")
        check(not net.stats("agent1")["keyed"], "the other has none")
        os.unlink(key)


def reload(net, name, pattern):
    """Reload; wait for the n-th log line that confirms it."""
    daemon = net.daemons[name]
    n = len(re.findall(pattern, daemon.log()))
    daemon.signal(signal.SIGHUP)
    rig.wait_until(lambda: len(re.findall(pattern, daemon.log())) > n,
                   rig.START_S, pattern)


def one_job(net, name):
    """Run a whole job of the agent, with a process of this name."""
    net.client(0, *TENSORS, "--steps", "2", name=name).wait_ok()


def test_key_is_replaced():
    """The server takes the new key and, for a while, the old one. A job that
    runs goes on."""
    with supervised(), Keyed(agents=1) as net:
        net.ini["a"]["serve"]["key_grace"] = f"{GRACE_S}s"
        net.start_all()
        clients = start_forever(net)
        old = net.key("job.key")
        os.rename(old, net.path("old.key"))
        net.key("job.key")
        reload(net, "a", "still knows the replaced key")
        end_s = time.monotonic() + GRACE_S
        check_goes_on(clients)
        for c in clients:
            c.kill()
        one_job(net, "by_the_old")
        check(net.stats("a")["keys"] == 2, "both are valid")
        reload(net, "agent0", "read the key files again")
        one_job(net, "by_the_new")
        net.stop("agent0")
        net.give("agent0", "old.key")
        net.ini["agent0"]["job"]["join_timeout"] = "2s"
        time.sleep(max(end_s - time.monotonic(), 0))
        net.start("agent0")
        client = net.client(0, *TENSORS, "--steps", "1", name="late")
        client.wait_error("server")


def test_clock_jumps():
    """A job, and the time for which the old key is valid, ignore jumps of the
    time of day by hours, days and years."""
    os.environ["LD_PRELOAD"] = program("test/proc/libproc_jumping_clock.so")
    try:
        test_key_is_replaced()
    finally:
        del os.environ["LD_PRELOAD"]


def test_server_is_restarted():
    """The server has lost the keys of its former sessions, but proves that they
    are gone: no agent waits for dead_after."""
    with Keyed(agents=2, job={"dead_after": "30s"}) as net:
        net.start_all()
        clients = start_forever(net, *TENSORS)
        net.kill("a")
        net.start("a")
        for c in clients:
            c.wait_error("server a no longer knows this agent: it was "
                         "restarted")
            check("silent" not in c.log(), c.log())
        rig.run_steps(net, *TENSORS)


def test_bad_key_while_running():
    """It is named, and the current one stays."""
    with supervised(), Keyed(agents=1) as net:
        net.start_all()
        os.chmod(net.key("job.key"), 0o644)
        reload(net, "a", "the current keys stay valid")
        check("has mode 0644" in net.daemons["a"].log(), "the reason")
        one_job(net, "goes_on")


def test_bad_key_files():
    with Keyed(agents=1) as net:
        path = net.key("job.key")
        os.chmod(path, 0o640)
        for name in "a", "agent0":
            rig.run_refused(net, name, "has mode 0640: it must be 0600")
        os.unlink(path)
        for name in "a", "agent0":
            rig.run_refused(net, name, "job.key does not exist")


if __name__ == "__main__":
    lan.enter()
    rig.main(dict(globals()))
