# torch_horovod.py - calls of Horovod's scripts besides allreduce and broadcast
# SPDX-License-Identifier: BSD-3-Clause
import json
import os
import tempfile

import torch_rig
import rig
from proc_ps import named
from recorded import await_copies
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
    """Return the gradient's rounds in a finished trace of that rank, in order."""
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
    """HOROVOD_TIMELINE: only rank 0 writes the file."""
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


def test_copies_in_a_trace():
    """PyTorch copies some tensors into and out of shared memory, and their
    calls show these copies. Gradients are only copied in, because their sums
    stay there."""
    with named(TorchNet(2)) as net:
        await_copies(net, "cases_horovod.py", lambda copies: all(
            copies[what] for what in (("copy in", 100000), ("copy out", 100000),
                                      ("copy in", 40000))))


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
    """A rank that gives up ends the sum at all ranks."""
    with TorchNet(2, job={"stall_warn": "1s"}) as net:
        net.start_all()
        net.ranks_ok("cases_horovod.py", "gives_up",
                     env={"SUMWIRE_WAIT_TIMEOUT": "4"})


if __name__ == "__main__":
    torch_rig.main(dict(globals()))
