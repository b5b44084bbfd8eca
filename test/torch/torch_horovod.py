# torch_horovod.py - what Horovod's scripts call beside allreduce and broadcast
# SPDX-License-Identifier: BSD-3-Clause
import collections
import json
import os
import subprocess
import tempfile

import torch_rig
import rig
from proc_ps import named, unique
from rig import check
from torch_rig import TorchNet

CASES = ["join_refuses", "timeline", "reductions", "allgather", "allgather_gradient",
         "differences", "alltoall", "reducescatter", "process_sets", "sparse", "compressors",
         "optimizers", "join", "join_training", "again"]


@rig.is_long
def test_three_ranks_of_an_agent():
    with TorchNet(1, local=(3,)) as net:
        net.start_all()
        net.ranks_ok("cases_horovod.py", *CASES)


def test_two_agents():
    with TorchNet(2) as net:
        net.start_all()
        net.ranks_ok("cases_horovod.py", *CASES)


def rounds_of(path, rank):
    """Rounds of the gradient in a finished trace of that rank, in their order."""
    with open(path, encoding="utf-8") as f:
        events = json.load(f)
    check({e["pid"] for e in events} == {rank}, f"{path}: {events}")
    rows = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    begun = [e for e in events if e["ph"] == "b" and "gradient" in rows[e["tid"]]]
    ended = {e["id"]: e["ts"] for e in events if e["ph"] == "e"}
    check(all(ended[e["id"]] >= e["ts"] and e["args"]["bytes"] == 4000 for e in begun),
          f"{path}: {events}")
    return [e["args"]["round"] for e in begun]


def test_horovod_timeline():
    """HOROVOD_TIMELINE: rank 0 writes the file, and nobody else."""
    with TorchNet(1, local=(2,)) as net, tempfile.TemporaryDirectory() as folder:
        net.start_all()
        path = os.path.join(folder, "hvd.json")
        net.ranks_ok("cases_horovod.py", "rounds", env={"HOROVOD_TIMELINE": path})
        check(os.listdir(folder) == ["hvd.json"], "other files")
        check(len(rounds_of(path, 0)) == 25, f"{rounds_of(path, 0)}")


def test_byteps_trace():
    """BYTEPS_TRACE_ON: DIR/LOCAL_RANK/comm.json has rounds START_STEP to END_STEP."""
    with TorchNet(1, local=(2,)) as net, tempfile.TemporaryDirectory() as folder:
        net.start_all()
        net.ranks_ok("cases_horovod.py", "rounds", "variables", env={
            "BYTEPS_TRACE_ON": "1", "BYTEPS_TRACE_DIR": folder,
            "BYTEPS_TRACE_START_STEP": "3", "BYTEPS_TRACE_END_STEP": "12"})
        for i in range(2):
            got = rounds_of(os.path.join(folder, str(i), "comm.json"), i)
            check(got == list(range(3, 13)), f"local rank {i}: {got}")


def copies_of(net, path):
    """How many copies of each kind and tensor a trace of a second has."""
    p = subprocess.run([rig.sumwire(), "trace", "--time", "1s", "--output", path,
                        *(unique(n) for n in net.daemons)], check=False,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                       timeout=rig.RUN_S)
    check(p.returncode == 0, p.stderr)
    with open(path, encoding="utf-8") as f:
        return collections.Counter(
            (e["name"], e["args"]["bytes"]) for e in json.load(f)["traceEvents"]
            if e["name"].startswith("copy ") and "tensor" in e["args"])


def test_copies_in_a_trace():
    """Tensors that PyTorch copies into and out of shared memory are copies of
    their calls; gradients, whose sums stay there, are copied in alone."""
    with named(TorchNet(2)) as net, tempfile.TemporaryDirectory() as folder:
        net.start_all()
        done = os.path.join(folder, "done")
        ranks = net.cases("cases_horovod.py", "recorded", env={"RECORDED": done})
        rig.wait_until(lambda: all(copies_of(net, os.path.join(folder, "t.json"))[what]
                                   for what in (("copy in", 100000), ("copy out", 100000),
                                                ("copy in", 40000))),
                       rig.RUN_S, "copies of both kinds")
        with open(done, "w", encoding="utf-8"):
            pass
        for p in ranks:
            p.wait_ok(rig.RUN_S)
        net.remove_files()


BY_HOROVOD = ["sums", "averages", "extremes", "factors", "disagreements",
              "arguments", "gathers", "broadcasts", "exchanges", "parts",
              "gradients", "sets", "joins", "states"]


def test_by_horovod():
    with TorchNet(2, local=(2, 1)) as net:
        net.start_all()
        net.ranks_ok("cases_horovods.py", *BY_HOROVOD)


@rig.is_long
def test_many_parameters():
    with TorchNet(1, local=(2,)) as net:
        net.start_all()
        net.ranks_ok("cases_horovod.py", "many_parameters")


def test_gives_up():
    """A rank that waits for too long ends the sum at all ranks."""
    with TorchNet(2, job={"stall_warn": "1s"}) as net:
        net.start_all()
        net.ranks_ok("cases_horovod.py", "gives_up",
                     env={"SUMWIRE_WAIT_TIMEOUT": "4"})


if __name__ == "__main__":
    torch_rig.main(dict(globals()))
