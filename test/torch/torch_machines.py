# torch_machines.py - torchrun on two machines: ranks start agents, over veth
# SPDX-License-Identifier: BSD-3-Clause
"""A machine is a network namespace with a boot id, a host name and a /etc/hosts
of its own. Two links join the machines."""
import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
import time

import torch_rig
import torch_site
from backend_rig import Alone, main, site
import lan
import rig
from rig import RUN_S, check
from slurm import free_port

N = 2  # machines, and ranks on each
PORT = 29400  # of the rendezvous
NETS = {"net": "10.78.0.", "second": "10.78.1."}
NETS_V6 = {"net": "fd00:78::", "second": "fd00:78:1::"}
# The process keeps the namespace until its standard input ends.
HOLD = """\
set -e
mount --bind "$1.boot" /proc/sys/kernel/random/boot_id
mount --bind "$1.hosts" /etc/hosts
hostname "$2"
ip link set lo up
echo
exec cat"""


class Machines(Alone):
    """hosts: a machine's own entries in its /etc/hosts."""

    def __init__(self, own="127.0.1.1", nets=None, mtus=(1500, 1500)):
        super().__init__(2 * N)
        nets = nets or NETS
        bits = ["/64", "nodad"] if nets is NETS_V6 else ["/24"]
        self.stores = []
        self.holders = [self.hold(i, own) for i in range(N)]
        for name, net in nets.items():
            lan.ip("link", "add", name, "netns", self.pid(0), "type", "veth",
                   "peer", "name", name, "netns", self.pid(1))
            for i in range(N):
                for words in (("addr", "add", f"{net}{i + 1}{bits[0]}", "dev",
                               name, *bits[1:]),
                              ("link", "set", name, "mtu", str(mtus[i]), "up")):
                    subprocess.run(self.inside(i, "ip", *words), check=True)

    def pid(self, i):
        return str(self.holders[i].pid)

    def hold(self, i, own):
        path = self.path(f"tmp/machine{i}")
        with open(path + ".boot", "w", encoding="ascii") as f:
            f.write(f"0000-{i}\n")
        with open(path + ".hosts", "w", encoding="ascii") as f:
            f.write("127.0.0.1 localhost\n" + "".join(
                f"{own if i == k and own else NETS['net'] + str(k + 1)} node{k}"
                f"\n" for k in range(N)))
        p = subprocess.Popen(
            ["unshare", "-num", "sh", "-c", HOLD, "hold", path, f"node{i}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        p.stdout.readline()
        return p

    def make_sys(self, i, interface, gpu, node):
        """Make a machine's /sys with two NUMA nodes of one CPU each. @interface
        and @gpu are the nodes of the interface and of the GPU of
        cases_machines.py; -1: none. Return the variables that tell the rank to
        expect its agent on @node."""
        cpus = min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))
        for name, text in (("class/net/net/device/numa_node", interface),
                           ("bus/pci/devices/0000:3b:00.0/numa_node", gpu),
                           ("devices/system/node/online", "0-1"),
                           ("devices/system/node/node0/cpulist", cpus[0]),
                           ("devices/system/node/node1/cpulist", cpus[1])):
            path = self.path(f"tmp/sys{i}/{name}")
            os.makedirs(os.path.dirname(path))
            with open(path, "w", encoding="ascii") as f:
                f.write(f"{text}\n")
        return {"TEST_SYS": self.path(f"tmp/sys{i}"), "TEST_GPU": "1",
                "TEST_CPU": str(cpus[node])}

    def of_machine(self, i):
        """Return the machine's namespaces."""
        return [f"/proc/{self.pid(i)}/ns/{kind}" for kind in ("net", "uts", "mnt")]

    def inside(self, i, *args):
        return ["nsenter", "-t", self.pid(i), "-n", "-u", "-m", *args]

    def host_store(self):
        """Host the store on the first machine until the end."""
        p = self.run("rendezvous", os.path.join(torch_rig.HERE, "rendezvous.py"), str(PORT),
                     start=self.for_torchrun(namespaces=self.of_machine(0)))
        p.await_out("listens", RUN_S)
        self.stores.append(p)

    def torchruns(self, *args, rendezvous, env=None, each=None, ranks=N):
        """Start one torchrun on each machine, with variables for all and for
        each. The machines have the same cores, so each agent polls on one."""
        if rendezvous is by_name:
            self.host_store()
        pairs = {"TEST_LIMIT_S": "300", "SUMWIRE_LCORES": "1",
                 "GLOO_SOCKET_IFNAME": None, **(env or {})}
        each = each or [{}] * N
        return [self.run(
            f"torchrun{i}", "-m", "torch.distributed.run", f"--nnodes={N}",
            f"--nproc-per-node={ranks}", *rendezvous(i),
            os.path.join(torch_rig.HERE, "cases_machines.py"), *args,
            start=self.for_torchrun(i, {**pairs, **each[i]},
                                    namespaces=self.of_machine(i)))
            for i in range(N)]

    def torchruns_ok(self, *cases, ranks=N, **how):
        """Run all cases at all ranks; return where their agents are, by
        machine."""
        runs = self.torchruns(*cases, ranks=ranks, **how)
        for p in runs:
            p.wait_ok(rig.TEST_S)
            for name in cases:
                n = p.out().count(f"ok {name}\n")
                check(n == ranks, f"{n} ranks of {p.name} did {name}")
        self.await_nothing()
        return [re.findall(r"agent (\S+) (\S+)\n", p.out()) for p in runs]

    def await_nothing(self):
        for i in range(N):
            for end in "boot", "hosts":
                os.remove(self.path(f"tmp/machine{i}.{end}"))
        for p in self.stores:
            p.popen.stdin.close()
            p.wait_ok(rig.STOP_S)
        super().await_nothing()

    def __exit__(self, kind, value, trace):
        try:
            return super().__exit__(kind, value, trace)
        finally:
            for p in self.holders:
                p.stdin.close()
                p.stdout.close()
                p.wait(30)


def by_name(i):
    """Address the first machine by name; on itself the name is a loopback's, as
    on many machines."""
    del i
    return ("--rdzv-backend=c10d", f"--rdzv-endpoint=node0:{PORT}", "--rdzv-id=job",
            f"--rdzv-conf=is_host=0,read_timeout={RUN_S},keep_alive_max_attempt=60")


def by_address(i):
    return (f"--node-rank={i}", "--master-addr=" + NETS["net"] + "1",
            f"--master-port={PORT}")


def agents_are(agents, net, nets=None):
    """Check for one agent per machine, shared by its ranks."""
    for i, pairs in enumerate(agents):
        check(len(pairs) == 2 and len(set(pairs)) == 1 and
              pairs[0][1] == (nets or NETS)[net] + str(i + 1),
              f"agents {agents}")
    check(agents[0][0][0] != agents[1][0][0], f"agents {agents}")


def test_by_name():
    """The machines' MTUs differ; an overlay's is the smaller one."""
    n = 2 if len(os.sched_getaffinity(0)) >= 4 else 1  # the ranks need two cores
    with Machines(mtus=(9000, 1450)) as net:
        agents_are(net.torchruns_ok(
            "places", "lcores", "sums", "moves", "parts", rendezvous=by_name,
            env={"SUMWIRE_LCORES": None, "TEST_LCORES": str(n)}), "net")


@rig.is_long
def test_by_address():
    """Use the interface that SUMWIRE_IFNAME names."""
    with Machines(own=None) as net:
        agents_are(net.torchruns_ok(
            "places", "sums", "moves", rendezvous=by_address,
            env={"SUMWIRE_IFNAME": "second"}), "second")


def rename_second(net):
    """Rename "second" to nic0 and nic1, as on machines with different hardware."""
    for i in range(N):
        for words in "second down", f"second name nic{i}", f"nic{i} up":
            subprocess.run(net.inside(i, "ip", "link", "set", *words.split()), check=True)


@rig.is_long
def test_by_pattern():
    """One SUMWIRE_IFNAME fits machines whose interfaces have different names."""
    for pattern in rig.layouts("nic0,nic1", "^lo,net", NETS["second"] + "0/24", "nic"):
        with Machines(own=None) as net:
            rename_second(net)
            agents_are(net.torchruns_ok("places", "sums", rendezvous=by_address,
                                        env={"SUMWIRE_IFNAME": pattern}), "second")


@rig.is_long
def test_by_pattern_of_one():
    """The machine without a matching interface lists the existing ones."""
    with Machines(own=None) as net:
        rename_second(net)
        runs = net.torchruns("sums", rendezvous=by_address, ranks=1,
                             env={"SUMWIRE_IFNAME": "nic0"})
        for p in runs:
            check(p.wait(RUN_S), "it did not fail")
        check(re.search(r"SUMWIRE_IFNAME=nic0: .*there are: .*net 10.78.0.2, "
                        r"nic1 10.78.1.2", runs[1].log()), runs[1].log())
        net.await_nothing()


STILL_S = 13  # longer than [job] dead_after, which follows the group's timeout


@rig.is_long
def test_stands_still():
    """A link and an agent stall for less than the group's timeout."""
    with Machines(own=None) as net:
        told = net.path("told")
        runs = net.torchruns("places", "until_told", rendezvous=by_address, ranks=1,
                             env={"SUMWIRE_IFNAME": "second", "TEST_TOLD": told})
        for p in runs:
            p.await_out("goes on", RUN_S)
        pid = int(re.search(r"agent_pid (\d+)\n", runs[1].out())[1])
        subprocess.run(net.inside(1, "ip", "link", "set", "second", "down"), check=True)
        time.sleep(STILL_S)
        subprocess.run(net.inside(1, "ip", "link", "set", "second", "up"), check=True)
        os.kill(pid, signal.SIGSTOP)
        time.sleep(STILL_S)
        os.kill(pid, signal.SIGCONT)
        with open(told, "w", encoding="ascii"):
            pass
        for p in runs:
            p.wait_ok(RUN_S)
            check("ok until_told\n" in p.out(), p.out())
        os.remove(told)
        net.await_nothing()


def test_ipv6():
    """The machines have no IPv4 address except the loopback's."""
    def rendezvous(i):
        return (f"--node-rank={i}", "--master-addr=" + NETS_V6["net"] + "1",
                f"--master-port={PORT}")
    with Machines(nets=NETS_V6) as net:
        agents_are(net.torchruns_ok("places", "sums", "moves",
                                    rendezvous=rendezvous), "net", NETS_V6)


def test_lcores():
    """The machine with the fewest cores decides."""
    with Machines() as net:
        net.torchruns_ok("lcores", rendezvous=by_name, ranks=1,
                         env={"SUMWIRE_LCORES": None, "TEST_LCORES": "1"},
                         each=[{"TEST_CPUS": "4"}, {"TEST_CPUS": "1"}])


NO_UDP = """\
set -e
ip rule add pref 20 lookup local
ip rule del pref 0
ip rule add pref 10 iif net ipproto udp blackhole"""


def test_no_udp():
    """A firewall is between the machines: both sides report it soon."""
    with Machines() as net:
        for i in range(N):
            subprocess.run(net.inside(i, "sh", "-c", NO_UDP), check=True)
        for p in net.torchruns("sums", rendezvous=by_address, ranks=1,
                               env={"SUMWIRE_OPEN_TIMEOUT": "8"}):
            check(p.wait(RUN_S), "it did not fail")
            check(re.search(
                r"have not met after 5 s: .* at UDP 10.78.0.1:\d+, "
                r"10.78.0.2:\d+; TCP .* works: does a firewall", p.log()) and
                re.search(r"SumwireError: .*within 8 s.*firewall", p.log()),
                p.log())
        net.await_nothing()


FIRST = {"SUMWIRE_HIERARCHICAL": "1"}


def test_near():
    """One machine's agent runs on the CPUs near its interface, wherever the
    GPUs are. The other's runs near its GPUs, because its interface is near no
    node."""
    with Machines() as net:
        net.torchruns_ok("near", rendezvous=by_name, ranks=1, each=[
            net.make_sys(0, interface=1, gpu=0, node=1),
            net.make_sys(1, interface=-1, gpu=1, node=1)])


def test_each_machine_first():
    with Machines() as net:
        agents_are(net.torchruns_ok(
            "places", "first", "first_in_order", "first_then",
            "first_trained", "first_aborted", "sums", "streams", "streams_behind",
            "streams_together", "streams_in_order", "streams_future",
            "streams_fail", "streams_closed", rendezvous=by_name, env=FIRST),
            "net")


def test_each_machine_first_refused():
    """All ranks refuse, with rank 0's reason."""
    wrong = (("nccl", "nccl adds tensors of CUDA devices"),
             ("mpi", "gloo or nccl"))
    for wanted, why in wrong[:1] if rig.IS_QUICK else wrong:
        with Machines() as net:
            runs = net.torchruns("sums", rendezvous=by_name,
                                 env={"SUMWIRE_HIERARCHICAL": wanted})
            for p in runs:
                check(p.wait(RUN_S), "it did not fail")
                check(why in p.log() + p.out(), p.log() + p.out())
            net.await_nothing()


@rig.is_long
def test_each_machine_first_late():
    """One rank is absent: all others end."""
    with Machines() as net:
        runs = net.torchruns("first_late", rendezvous=by_name,
                             env=FIRST)
        for p in runs:
            p.wait(RUN_S)
        said = "".join(p.out() for p in runs)
        check(said.count("late: ") == 3, said)
        check(all("timed out after 4 s, missing rank 1 of this machine" in line or
                  re.search("missing: rank [01] of 4", line)
                  for line in said.splitlines() if "late: " in line), said)
        net.await_nothing()


def test_killed():
    """Kill all ranks of one machine, then all of the other: the agents end."""
    with Machines() as net:
        runs = net.torchruns("places", "for_ever", rendezvous=by_name)
        for p in runs:
            p.await_out("goes on")
        check(len(net.running()) >= N, f"agents: {net.running()}")
        for p in runs:
            os.killpg(p.pid, signal.SIGKILL)
            for pid in map(int, re.findall(r"pid (\d+)\n", p.out())):
                os.kill(pid, signal.SIGKILL)
        net.await_nothing()


def end(p):
    """End it; it continues and ends the processes that it has stopped."""
    if p.code() is None:
        p.signal(signal.SIGTERM)
        with contextlib.suppress(rig.Failure):
            p.wait(2 * rig.STOP_S)
    p.destroy()


@rig.is_long
def test_beside_gloo():
    """Run the collectives and trainings of test/peers/backend."""
    torch_site.need_fsdp()
    work = rig.layouts("reduce_scatter 25 MB", "fsdp_memory text-wide",
                       "ddp digits")
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        p = rig.Process("backend", folder, [
            "env", f"PYTHONPATH={site() or ''}",
            os.path.join(torch_rig.ROOT, "test", "peers", "backend"), "--json",
            "--build", rig.BUILD, "--rounds", "1",
            *(word for w in work for word in ("--work", w))])
        try:
            p.wait_ok(2 * RUN_S)
        except rig.Failure:
            print(p.log()[-2000:])
            raise
        finally:
            end(p)
        rows = [r for r in json.loads(p.out())["results"]
                if r["other"] == "gloo"]
    check(len(rows) == len(work) and all(r["ratio"] > 0 for r in rows), f"{rows}")


if __name__ == "__main__":
    site()  # while the network is still reachable
    lan.enter()
    main(dict(globals()))
