# peers.py - one class per peer: its requirements, and its measurement
# SPDX-License-Identifier: BSD-3-Clause
"""open() starts a peer's two processes, turn(bytes, iterations) lets them sum a
tensor of f32 in place, or another collective (peers_of), and close() ends them.
Peers without a turn are stopped (turns.py). iperf3, which does not sum, has
measure(): the bits per second of one TCP stream."""
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "proc"))
import nets  # noqa: E402
import rig  # noqa: E402
from turns import MARK, Turns  # noqa: E402

LIMIT_S = 600
# Debian's Python has Debian's PyTorch.
PYTHON = os.environ.get("SUMWIRE_TEST_PYTHON", "/usr/bin/python3")


class Missing(Exception):
    """The reason why a peer is skipped."""


def need(program, package):
    path = shutil.which(program)
    if not path:
        raise Missing(f"{program} is not installed (apt install {package})")
    return path


def output(args, **keys):
    p = subprocess.run(args, stdin=subprocess.DEVNULL, capture_output=True,
                       text=True, timeout=LIMIT_S, check=False, **keys)
    if p.returncode:
        raise RuntimeError(f"{args[0]} ended with {p.returncode}: "
                           f"{(p.stdout + p.stderr)[-800:]}")
    return p.stdout


class Peer:
    """A peer's processes, and their turns."""
    is_sum, n_told = True, None  # number of processes that get a turn's line; None: all

    def open(self):
        """Start the peer. Raise Missing if it cannot run."""
        with contextlib.ExitStack() as stack:
            self.launch(stack)
            self.stack = stack.pop_all()

    def launch(self, stack):
        """Set self.turns; put objects to be closed on @stack."""
        raise NotImplementedError

    def turn(self, n_bytes, iterations):
        return self.turns.take(self.name, n_bytes, iterations, self.n_told)

    def close(self):
        self.stack.close()


class Sumwire(Peer):
    """Two nodes, each both agent and server; a process at each."""
    name = "sumwire"
    collective = None  # push_pull of a tensor
    n_lcores = 1  # of each node

    def check(self):
        """Raise Missing if the peer cannot run."""

    def ports(self, net):
        """Change the configuration if necessary."""

    def start(self, net):
        net.start_all()

    def options(self):
        if not self.collective:
            return []
        in_place = self.collective == "all_reduce"  # as the other peers do (gloo.py)
        return ["--collective", self.collective, *["--in-place"] * in_place]

    def launch(self, stack):
        self.check()
        net = stack.enter_context(
            rig.Net(agents=2, servers=0, colocated=True, lcores=self.n_lcores,
                    lanes=[self.n_lcores] * 2))
        self.turns = stack.enter_context(Turns())
        self.ports(net)
        os.environ[MARK] = self.turns.mark  # for the daemons
        try:
            self.start(net)
        finally:
            del os.environ[MARK]
        for agent in net.agents:
            self.turns.start([rig.sumwire(), "bench", "--turns", "--min", "1",
                              "--max", str(self.max_bytes), "--agent",
                              net.socket(agent), *self.options()])


class SumwireMemif(Sumwire):
    where = "shared memory"


class SumwireVeth(Sumwire):
    where, kind = "veth", "udp"

    def __init__(self, veth):
        self.veth = veth

    def check(self):
        types = output([rig.sumwire(), "conf", "--explain", "port.type"])
        if self.kind not in re.search("value: .*", types)[0]:
            raise Missing(f"this version has no {self.kind} port")

    def port(self, i):
        return {"type": "udp", "ip": nets.KERNELS[i] + "/24"}

    def ports(self, net):
        for i, name in enumerate(net.agents):
            ini = net.ini[name]
            for section in [s for s in ini if s.startswith("port ")]:
                del ini[section]
            ini["port p"] = self.port(i)
            for k, server in enumerate(net.agents):
                ini[f"server {server}"] = {
                    "ip": self.port(k)["ip"].split("/")[0], "port": "p"}

    def start(self, net):
        path = net.write_ini("agent1")
        p = net.run("agent1", *self.veth.inside(
            rig.sumwire(), "agent", "--config", path))
        net.daemons["agent1"] = p
        net.start("agent0")
        p.await_text("is ready")


class SumwirePacket(SumwireVeth):
    name, kind = "sumwire af_packet", "af_packet"

    def port(self, i):
        return {"type": "af_packet", "device": f"sw{i}",
                "ip": nets.OURS[i] + "/24"}


class Gloo(Peer):
    name, where = "gloo", "veth"
    collective = "all_reduce"

    def __init__(self, veth):
        self.veth = veth

    def launch(self, stack):
        p = subprocess.run([PYTHON, "-c", "import torch"], check=False,
                           capture_output=True)
        if p.returncode:
            raise Missing(f"{PYTHON} has no torch (apt install python3-torch)")
        self.turns = stack.enter_context(Turns())
        program = os.path.join(HERE, "gloo.py")
        for rank, device in enumerate(("left", "right")):
            args = [PYTHON, program, self.collective, str(rank), "2",
                    f"{nets.LEFT}:29611"]
            self.turns.start(self.veth.inside(*args) if rank else args,
                             OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME=device)


class OpenMpi(Peer):
    name = "OpenMPI"
    btl, n_told = "", 1  # rank 0 of mpirun

    def build(self, folder):
        program = os.path.join(folder, "allreduce")
        mpicc = need("mpicc", "libopenmpi-dev")  # in openmpi-bin as well
        if subprocess.run([mpicc, "-E", "-include", "mpi.h", "-x", "c",
                           "/dev/null"], capture_output=True,
                          check=False).returncode:
            raise Missing("mpi.h is not installed (apt install libopenmpi-dev)")
        output([mpicc, "-O2", "-o", program, os.path.join(HERE, "allreduce.c")])
        return program

    def extra(self, folder):
        """Return more options for mpirun."""
        return ["-np", "2"]

    def launch(self, stack):
        mpirun = need("mpirun", "openmpi-bin")
        folder = stack.enter_context(tempfile.TemporaryDirectory(
            prefix="sumwire-peers-", dir="/tmp"))
        self.turns = stack.enter_context(Turns())
        self.turns.start(
            [mpirun, "--mca", "pml", "ob1", "--mca", "btl", self.btl,
             "--bind-to", "none", "--oversubscribe",
             *self.extra(folder), self.build(folder)],
            OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


class OpenMpiMemory(OpenMpi):
    where, btl = "shared memory", "self,vader"


class OpenMpiVeth(OpenMpi):
    """OpenMPI between namespaces: mpirun takes our nsenter for its ssh."""
    where, btl = "veth", "self,tcp"

    def __init__(self, veth):
        self.veth = veth

    def extra(self, folder):
        shell = os.path.join(folder, "shell")
        with open(shell, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\nshift\nexec "
                    + " ".join(self.veth.inside("sh", "-c")) + ' "$*"\n')
        os.chmod(shell, 0o700)
        network = nets.LEFT + "/24"
        return ["--mca", "plm_rsh_agent", shell, "--mca", "plm", "rsh",
                "--mca", "btl_tcp_if_include", network,
                "--mca", "oob_tcp_if_include", network,
                "--mca", "routed", "direct",
                "-H", f"{nets.LEFT}:1,{nets.RIGHT}:1", "-np", "2"]


class Iperf3:
    """Not a peer: the rate of TCP in one direction."""
    name, where, is_sum = "iperf3, one way", "veth", False

    def __init__(self, veth):
        self.veth = veth

    def measure(self):
        iperf3 = need("iperf3", "iperf3")
        server = subprocess.Popen(
            self.veth.inside(iperf3, "-s", "-1", "--forceflush"),
            stdout=subprocess.PIPE, text=True)
        try:
            for line in server.stdout:
                if "listening" in line:
                    break
            text = output([iperf3, "-c", nets.RIGHT, "-t", "3", "-J"])
        finally:
            server.kill()
            server.wait()
        return json.loads(text)["end"]["sum_received"]["bits_per_second"]


def peers_of(collective, veth):
    """Return the peers that have it, as a collective of a group without a name."""
    peers = [SumwireVeth(veth), Gloo(veth)] if veth else []
    for p in peers:
        p.collective = collective
    return peers


def all_peers(veth):
    peers = [SumwireMemif(), OpenMpiMemory()]
    if veth:
        peers += [SumwireVeth(veth), SumwirePacket(veth), Gloo(veth), OpenMpiVeth(veth),
                  Iperf3(veth)]
    return peers
