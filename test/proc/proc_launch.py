# proc_launch.py - ranks from real launchers: mpirun, srun, torchrun
# SPDX-License-Identifier: BSD-3-Clause
"""A launcher starts the agents and gives them rank and number of agents; their
files have neither. It also starts the training processes, and libsumwire
compares their ranks with those of the agents."""
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile

import rig
from rig import Net, Skip, check
from slurm import Slurm, free_port

N = 2
SHORT_S = rig.RUN_S
TENSOR = "--tensor t:100000:f32 --steps 3"


class Launcher:
    """How a launcher starts N processes."""
    rank = "RANK"  # name of the variable

    def __init__(self):
        self.env = dict(os.environ)
        self.env.pop("SUMWIRE_LAUNCHER", None)

    def command(self, script):
        raise NotImplementedError


class Mpirun(Launcher):
    rank = "OMPI_COMM_WORLD_RANK"

    def __init__(self):
        super().__init__()
        if not shutil.which("mpirun"):
            raise Skip("mpirun is not installed (test/packages)")
        # A test may run as root, and on few cores.
        self.options = ["--oversubscribe", "--bind-to", "none"]
        if os.getuid() == 0:
            self.options.append("--allow-run-as-root")

    def command(self, script):
        return ["mpirun", *self.options, "-np", str(N), script]


class Torchrun(Launcher):
    def __init__(self):
        super().__init__()
        if not shutil.which("torchrun"):
            raise Skip("torchrun is not installed")

    def command(self, script):
        # With Python 3.11, PyTorch 1.13 requires redirection.
        return ["torchrun", "--no_python", "--nnodes=1", "--redirects=1",
                "--tee=1", "--monitor_interval=0.1",
                f"--master_port={free_port()}",
                f"--nproc_per_node={N}", script]


class Srun(Launcher):
    def __init__(self, slurm, mpi, rank):
        super().__init__()
        self.env, self.mpi, self.rank = slurm.env, mpi, rank

    def command(self, script):
        return ["srun", f"--mpi={self.mpi}", "-n", str(N), "--overlap", script]


def launch(net, launcher, name, text):
    """Run a shell script in N processes; $RANK is the launcher's variable."""
    path = net.path(name + ".ini")  # so that the rig knows of it
    net.ini[name] = {}
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"#!/bin/sh\ncd {net.folder}\nR=${launcher.rank}\n{text}\n")
    os.chmod(path, 0o700)
    command = launcher.command(path)
    pairs = [f"{k}={v}" for k, v in launcher.env.items()]
    return net.run(name, "env", "-i", *pairs, *command)


def agents_of(net, launcher, job):
    """Start the agents; @job sets rank and agents in their files."""
    for i, name in enumerate(net.agents):
        net.ini[name]["job"] = job(i)
        net.write_ini(name)
    return launch(net, launcher, "agents",
                  f"exec {rig.sumwire()} agent --config agent$R.ini")


def clients_of(net, launcher, name, agent):
    client = rig.program("test/proc/proc_client")
    return launch(net, launcher, name,
                  f"exec {client} --agent {agent} {TENSOR}")


def stop(net, agents):
    """Send SIGTERM to the agents themselves, because launchers forward signals
    differently."""
    for pid, _, _, words in rig.processes():
        with contextlib.suppress(OSError):  # another agent's process, already dead
            if (words[1:2] == ["agent"] and
                    os.readlink(f"/proc/{pid}/cwd") == net.folder):
                os.kill(pid, signal.SIGTERM)
    agents.wait_ok(rig.STOP_S)
    left = [a for a in net.agents if os.path.exists(net.socket(a))]
    check(not left, f"sockets are left: {left}")


def check_sums(clients):
    clients.wait_ok(SHORT_S)
    for rank in range(N):
        check(f"attached {rank} of {N}" in clients.out(), f"no rank {rank}")
    check(clients.out().count("step 2 exact") == N, "sums")


def ranks_of_agents(net, launcher):
    """Agents get rank and number of agents from the launcher."""
    agents = agents_of(net, launcher, lambda i: {})
    for rank in range(N):
        agents.await_text(rf"agent {rank} of {N}\) is ready", SHORT_S,
                          lambda: agents.log() + agents.out())
    check_sums(clients_of(net, launcher, "clients", "./agent$R.sock"))
    # Attach each process to the other agent.
    bad = clients_of(net, launcher, "crossed", f"./agent$(({N - 1} - R)).sock")
    bad.wait_error(r"open SW_ECONF: the environment has "
                   rf"{launcher.rank}=\d \(\w+\), but for the agent at .* this "
                   r"is rank \d of 2", limit_s=SHORT_S)
    stop(net, agents)


def local_ranks(launcher):
    """Training processes of one machine get their local ranks from the
    launcher."""
    with Net(agents=1) as net:
        net.ini["agent0"]["agent"]["local_ranks"] = N
        net.start_all()
        for name in ("first", "again"):
            check_sums(clients_of(net, launcher, name, "./agent0.sock"))


def contradiction_of(net, launcher):
    agents = agents_of(net, launcher, lambda i: {"agent": N - 1 - i})
    agents.wait_error(r"agent1\.ini:\d+: \[job\] agent: is 0, but in the "
                      rf"environment {launcher.rank}=1 ", limit_s=SHORT_S)


def all_of(launcher):
    with Net(agents=N) as net:
        net.start("a")
        ranks_of_agents(net, launcher)
    with Net(agents=N) as net:
        contradiction_of(net, launcher)
    local_ranks(launcher)


def test_mpirun():
    all_of(Mpirun())


@rig.is_long
def test_torchrun():
    all_of(Torchrun())


def test_fewer_processes_than_local_ranks():
    launcher = Mpirun()
    with Net(agents=1) as net:
        net.ini["agent0"]["agent"]["local_ranks"] = N + 1
        net.start_all()
        bad = clients_of(net, launcher, "few", "./agent0.sock --timeout 8")
        bad.wait_error(rf"waiting for 1 of {N + 1} local ranks",
                       limit_s=SHORT_S)


def test_mpirun_beside_a_stale_rank():
    launcher = Mpirun()
    launcher.env.update(RANK="0", WORLD_SIZE="2")
    launcher.command = lambda script: [
        "mpirun", *launcher.options, "-x", "RANK", "-x", "WORLD_SIZE", "-np",
        str(N), script]
    with Net(agents=N) as net:
        agents_of(net, launcher, lambda i: {}).wait_error(
            r"RANK=0 \(torchrun\) contradicts OMPI_COMM_WORLD_RANK=1 "
            r"\(OpenMPI\)", limit_s=SHORT_S)


def test_run_inside_mpirun():
    """sumwire run sets the ranks, whatever launcher started it."""
    launcher = Mpirun()
    client = rig.program("test/proc/proc_client")
    with Net(agents=N) as net:
        p = launch(net, launcher, "runs",
                   f"exec {rig.sumwire()} run -np 2 {client} {TENSOR}")
        p.wait_ok(SHORT_S)
        check(p.out().count("attached 0 of 2") == N and
              p.out().count("step 2 exact") == 2 * N, "two jobs of two ranks")


def test_slurm():
    """Use srun, and mpirun in a batch script, whose own rank is ignored."""
    folder = tempfile.mkdtemp(prefix="sumwire-proc-", dir="/tmp")
    try:
        with Slurm(folder) as slurm:
            all_of(Srun(slurm, "none", "SLURM_PROCID"))
            all_of(Srun(slurm, "pmi2", "PMI_RANK"))
            batch(slurm)
    finally:
        shutil.rmtree(folder)


def batch(slurm):
    try:
        launcher = Mpirun()
    except Skip as e:
        print(f"  not mpirun in a batch script: {e}")
        return
    launcher.env = slurm.env
    command = launcher.command
    launcher.command = lambda script: [
        "sbatch", "--wait", "-n", str(N), "-o", os.path.join(
            os.path.dirname(script), "batch.out"), "--wrap",
        " ".join(command(script))]
    with Net(agents=N) as net:
        net.start_all()
        p = clients_of(net, launcher, "batch", "./agent$R.sock")
        p.wait_ok(SHORT_S)
        with open(net.path("batch.out"), encoding="utf-8") as f:
            text = f.read()
        check(text.count("step 2 exact") == N, text)


def test_dmlc():
    """Set BytePS's variables by hand: role, ranks and the server's address."""
    net = Net(agents=1)
    for name, role in (("a", "server"), ("agent0", "worker")):
        del net.ini[name]["node"]["role"]
        net.ini[name]["job"] = {}
        net.ini[name].pop("server a", None)
        net.write_ini(name)
    env = dict(os.environ, DMLC_NUM_WORKER="1", DMLC_NUM_SERVER="1",
               DMLC_PS_ROOT_URI="10.77.0.1", DMLC_PS_ROOT_PORT="9123")
    env.pop("SUMWIRE_LAUNCHER", None)
    with net:
        for name, command, role in (("a", "server", "server"),
                                    ("agent0", "agent", "worker")):
            pairs = [f"{k}={v}" for k, v in env.items()]
            p = net.run(name, "env", "-i", *pairs, "DMLC_WORKER_ID=0",
                        f"DMLC_ROLE={role}", rig.sumwire(), command,
                        "--config", net.path(name + ".ini"))
            net.daemons[name] = p
            p.await_text("is ready")
        net.client(0, "--tensor", "t:1000:f32").wait_ok()
        check("9123" in printed(net, env), "UDP port of the root")


def printed(net, env):
    p = subprocess.run(
        [rig.sumwire(), "conf", "--print", net.path("agent0.ini")],
        env=dict(env, DMLC_ROLE="worker", DMLC_WORKER_ID="0"),
        capture_output=True, text=True, check=False, timeout=SHORT_S)
    check(p.returncode == 0, p.stderr)
    check("; DMLC_PS_ROOT_PORT of DMLC" in p.stdout and
          "; DMLC_ROLE of DMLC" in p.stdout, f"origins: {p.stdout}")
    return p.stdout


if __name__ == "__main__":
    rig.main(dict(globals()))
