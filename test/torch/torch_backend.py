# torch_backend.py - init_process_group("sumwire") beside gloo
# SPDX-License-Identifier: BSD-3-Clause
"""Needs a PyTorch that takes backends from Python (torch_site.py)."""
import os
import re
import shutil

import torch_rig
import torch_site
import rig
from rig import check
from slurm import free_port
from torch_rig import TorchNet

CASES = ["sums", "averages", "operations", "premultiplied", "broadcasts",
         "gathers", "scatters", "by_gloo", "objects", "asynchronous",
         "coalesced", "empty", "compiled_ones", "threads", "refused", "late",
         "differing"]


class Net(TorchNet):
    """Agents that sum, too; no server."""

    def __init__(self, workers=2, **keys):
        super().__init__(workers, servers=0, colocated=True, **keys)

    def environment(self, rank):
        env = super().environment(rank)
        if SITE:
            env["PYTHONPATH"] += ":" + SITE
        return env


def losses(ranks):
    """By rank, of programs that ended well."""
    for p in ranks:
        p.wait_ok()
    return [[float(x) for x in re.findall(r"loss \d+ ([\d.]+)", p.out())]
            for p in ranks]


def run_cases(local, *names):
    with Net(len(local), local=local) as net:
        net.start_all()
        net.ranks_ok("cases_backend.py", *names)


def test_two_ranks():
    run_cases((1, 1), *CASES, "again")


def test_three_ranks():
    run_cases((2, 1), *CASES)


def test_four_ranks():
    """Quick: three have most of it."""
    run_cases((1, 1, 1, 1), *(CASES[:2] if torch_rig.IS_QUICK else CASES))


def test_detail():
    with Net(2) as net:
        net.start_all()
        net.ranks_ok("cases_backend.py", "sums", "gathers",
                     env={"TORCH_DISTRIBUTED_DEBUG": "DETAIL"})


def trained(n, *kinds):
    """Losses are gloo's, within what other orders of adding change."""
    with Net(n) as net:
        net.start_all()
        both = [losses(net.ranks(os.path.join(
            torch_rig.HERE, "train_backend.py"), backend, *kinds))
            for backend in ("gloo", "sumwire")]
        net.remove_stores()
    for rank, (a, b) in enumerate(zip(*both)):
        check(len(a) == len(b) == 6 * len(kinds), f"{len(a)} losses")
        for i, (x, y) in enumerate(zip(a, b)):
            check(abs(x - y) <= 2e-3 * x, f"rank {rank}, {kinds[i // 6]}, step "
                  f"{i % 6}: {y} is not gloo's {x}")


def test_two_train():
    trained(2, "plain", "views", "static", "unused", "zero", "fsdp")


def test_four_train():
    trained(4, "hsdp")


class Alone(Net):
    """Ranks that start agents of their own."""

    def __init__(self, workers=2):
        super().__init__(workers)
        os.mkdir(self.path("tmp"))

    def environment(self, rank):
        env = {**super().environment(rank), "TMPDIR": self.path("tmp")}
        del env["SUMWIRE_AGENT"]
        return env

    def running(self):
        """Processes that have to do with the folder."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", encoding="utf-8",
                          errors="replace") as f:
                    line = f.read()
            except OSError:
                continue
            if self.path("tmp/sumwire") in line and "agent" in line:
                found.append(int(pid))
        return found

    def await_nothing(self):
        """Neither a process nor a file is left."""
        rig.wait_until(lambda: not self.running(), rig.START_S, "end of agents")
        left = [f for f in os.listdir(self.path("tmp")) if "sumwire" in f]
        check(not left, f"left behind: {left}")
        shutil.rmtree(self.path("tmp"))  # torchrun has folders there


def test_torchrun():
    with Alone() as net:
        env = net.environment(0)
        for name in "RANK", "WORLD_SIZE", "LOCAL_RANK", "TEST_STORE":
            del env[name]
        p = net.run("torchrun", "/usr/bin/env", "-u", "SUMWIRE_LAUNCHER",
                    *[f"{k}={v}" for k, v in env.items()],
                    torch_rig.python(), "-m", "torch.distributed.run",
                    "--nnodes=1", f"--master_port={free_port()}",
                    "--nproc-per-node=2", os.path.join(
                        torch_rig.HERE, "train_backend.py"), "sumwire", "plain")
        [both] = losses([p])
        check(len(both) == 12, f"losses: {both}")
        net.await_nothing()


def test_killed():
    """Agents go with processes that were killed."""
    with Alone() as net:
        ranks = net.cases("cases_backend.py", "forever")
        for p in ranks:
            p.await_out("goes on")
        check(net.running(), "no agent was found")
        for p in ranks:
            p.kill()
        net.await_nothing()


def test_one_leaves():
    """Its agent stays while others need what it sums."""
    with Alone(3) as net:
        net.ranks_ok("cases_backend.py", "left")
        net.await_nothing()


def test_no_agent():
    with Alone() as net:
        for p in net.cases("cases_backend.py", "no_agent"):
            p.wait_ok()
            check("ok no_agent" in p.out(), p.out())
        net.remove_stores()
        net.await_nothing()


if __name__ == "__main__":
    SITE = torch_site.site()
    rig.main(dict(globals()))
