# backend_rig.py - jobs of the backend of torch.distributed
# SPDX-License-Identifier: BSD-3-Clause
"""Requires a PyTorch that accepts backends from Python (torch_site.py)."""
import contextlib
import functools
import os
import shutil

import torch_rig
import torch_site
import forks
import rig
from rig import check
from slurm import free_port
from torch_rig import TorchNet

OF_RANKS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "TEST_STORE", "SUMWIRE_LAUNCHER")
site = functools.lru_cache(maxsize=None)(torch_site.site)


class Served(TorchNet):
    """A server and agents."""

    def environment(self, rank):
        env = super().environment(rank)
        if site():
            env["PYTHONPATH"] += ":" + site()
        return env


class Net(Served):
    """Colocated agents without other servers."""

    def __init__(self, agents=2, **keys):
        super().__init__(agents, servers=0, colocated=True, **keys)


def agents_in(tmp):
    """Return the agent processes whose ranks have that TMPDIR."""
    found = []
    for pid, _, _, words in rig.processes():
        if words[1:2] != ["agent"]:
            continue
        with contextlib.suppress(OSError), open(
                f"/proc/{pid}/environ", "rb") as f:
            if f"TMPDIR={tmp}".encode() in f.read().split(b"\0"):
                found.append(pid)
    return found


def folders_in(tmp):
    return [os.path.join(tmp, name) for name in os.listdir(tmp)
            if name.startswith("sumwire-torch-")]


class Alone(Net):
    """Ranks that start agents of their own."""

    def __init__(self, agents=2):
        super().__init__(agents)
        os.mkdir(self.path("tmp"))

    def environment(self, rank):
        env = {**super().environment(rank), "TMPDIR": self.path("tmp")}
        del env["SUMWIRE_AGENT"]
        return env

    def running(self):
        """Return the agents of its ranks."""
        return agents_in(self.path("tmp"))

    def await_nothing(self):
        """Wait until neither a process nor a file is left."""
        rig.wait_until(lambda: not self.running(), rig.START_S, "end of agents")
        left = [f for f in os.listdir(self.path("tmp")) if "sumwire" in f]
        check(not left, f"left behind: {left}")
        shutil.rmtree(self.path("tmp"))  # torchrun's folders

    def torchrun(self, *args, restarts=0):
        """Start one program on two ranks."""
        return self.run("torchrun", "-m", "torch.distributed.run",
                        "--nnodes=1", f"--master_port={free_port()}",
                        f"--max-restarts={restarts}", "--nproc-per-node=2",
                        *args, start=self.for_torchrun())

    def for_torchrun(self, i=0, env=None, **where):
        """Give ranks their own environment and arguments."""
        return forks.starter(torch_rig.python(), {
            **self.environment(0), **dict.fromkeys(OF_RANKS),
            "PYTHON_EXEC": os.path.join(torch_rig.HERE, "forked"),
            "TEST_PYTHON": torch_rig.python(), **(env or {})}, i, **where)


class WithServer(Alone):
    """A separate server, which the ranks do not start."""

    def start_server(self, name="a", ip="127.0.0.1/8"):
        """Start the server; return the settings that the ranks need."""
        port = free_port()
        self.ini[name] = {**self.common("server", name, 0),
                          "serve": {"udp_port": port},
                          "port udp": {"type": "udp", "ip": ip}}
        self.start(name)
        return {"SUMWIRE_SERVERS": f"localhost:{port}"}


def main(tests):
    site()
    rig.main(tests)
