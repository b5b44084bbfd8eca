# torch_device.py - training with gradients that pass a device's stage
# SPDX-License-Identifier: BSD-3-Clause
"""SUMWIRE_DEVICE=fake (pmd/cuda/fake.h) selects the device: threads and memcpy;
PyTorch has only the CPU."""
import json
import os
import subprocess
import tempfile

import torch_rig
import torch_site
import backend_rig
import rig
from rig import check
from torch_rig import HERE, TorchNet

# check: detects writes to a gradient during its sum.
HOST = {"SUMWIRE_DEVICE": "fake:gbit=40,latency_us=10,check"}


def test_train():
    """Losses and weights equal gloo's, bit by bit, as without the stage."""
    with TorchNet(2) as net:
        net.start_all()
        net.ranks_ok("cases_train.py", "equal_to_gloo", env=HOST)
        net.ranks_ok("cases_device.py", "staged", "held",
                     "held_to_the_end", env=HOST)


def test_options():
    """Use other types on the wire, several passes, clipping, updates past the
    barrier, and local ranks."""
    with TorchNet(1, local=[2]) as net:
        net.start_all()
        net.ranks_ok("cases_train.py", "barrier_is_crossed", env=HOST)
        net.ranks_ok("cases_parallel.py", "passes", "clipping", "scaler",
                     "compressed", env=HOST)


def test_calls():
    """Call allreduce, alone and in groups, and broadcast; with local ranks."""
    with TorchNet(2, local=[2, 1]) as net:
        net.start_all()
        net.ranks_ok("cases_device.py", "summed", "summed_by_streams", "hook",
                     env=HOST)
        net.ranks_ok("cases_ops.py", "averages", "handles", "new_names",
                     "new_sizes", "groups", "compression", "autograd",
                     "copied_types", "broadcast",
                     "threads", "refused", env=HOST)
    with TorchNet(2) as net:
        net.start_all()
        net.ranks_ok("cases_device.py", "differing", env=HOST)


def test_compiled():
    """torch.compile gives the same weights as in memory."""
    torch_rig.need_compile()
    with TorchNet(2) as net:
        net.start_all()
        net.ranks_ok("cases_train.py", "compiled", env=HOST)


def check_ranks(net, file, names, devices):
    """Run each rank with a device of its own."""
    with net:
        net.start_all()
        net.n_runs += 1
        for p in [net.rank(r, os.path.join(HERE, file), *names,
                           env={"SUMWIRE_DEVICE": d})
                  for r, d in enumerate(devices)]:
            p.wait_ok()


# This device detects an early write, and is then lost.
FAULTY = "fake:latency_us=1000,check,lost_after=1000"


def test_one_rank_has_none():
    check_ranks(TorchNet(2), "cases_device.py", ["not_at_all"],
                ["fake", "fake:no_such_option"])


def test_a_gradient_is_written_and_a_device_lost():
    check_ranks(TorchNet(2), "cases_device.py", ["written", "lost"],
                ["fake", FAULTY])


BACKEND = ["sums", "averages", "operations", "premultiplied", "broadcasts",
           "gathers", "scatters", "asynchronous", "coalesced", "empty",
           "compiled_ones", "threads", "refused", "differing", "aborted", "split"]


def test_backend():
    """Run collectives of torch.distributed on tensors of the device."""
    with backend_rig.Net(2, local=(2, 1)) as net:
        net.start_all()
        net.ranks_ok("cases_backend.py",
                     *(BACKEND[:6] if rig.IS_QUICK else BACKEND), env=HOST)
        net.ranks_ok("cases_place.py", "placed", "held", "mixed", "trained",
                     env=HOST)


def test_backend_with_faults():
    check_ranks(backend_rig.Net(2), "cases_place.py", ["written", "lost"],
                ["fake", FAULTY])


def test_script_for_a_gpu():
    """Run test/cuda/run over the fake device: each step passes and prints
    values."""
    quick = ["--step", "hold", "--step", "copies", "--step", "two agents"]
    env = {**os.environ, "PYTHONPATH": torch_site.site() or ""}
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "cuda.json")
        p = subprocess.run(
            [torch_rig.python(), os.path.join(torch_rig.ROOT, "test/cuda/run"),
             "--fake", "--build", rig.BUILD, "--json", file,
             *(quick if rig.IS_QUICK else [])], env=env, text=True, check=False,
            capture_output=True, timeout=480)
        check(p.returncode == 0, p.stdout + p.stderr)
        with open(file, encoding="utf-8") as f:
            done = {step["name"]: step for step in json.load(f)["steps"]}
    keys = {key for step in done.values() for value in step.get("values", ())
            for key in value}
    for key in ["pinned_mib", "word_us", "while_held", "slices_kib",
                "tensors_mib", "streams"] + (
                    [] if rig.IS_QUICK else ["push_pull_mib",
                                             "all_reduce_bytes"]):
        check(key in keys, f"{key} is not in {keys}")
    waits = {value["while_held"]: value["waits_for_stream"]
             for value in done["hold"]["values"] if "while_held" in value}
    check(len(waits) == 4 and waits["cudaHostUnregister"], waits)


if __name__ == "__main__":
    torch_rig.main(dict(globals()))
