# torch_device.py - trainings whose gradients pass the stage of a device
# SPDX-License-Identifier: BSD-3-Clause
"""The device is that of SUMWIRE_DEVICE=host (pmd/cuda/host.h): threads and
memcpy; PyTorch has the CPU alone."""
import os

import torch_rig
import backend_rig
from torch_rig import HERE, IS_QUICK, TorchNet

# check: no gradient is written while it is summed
HOST = {"SUMWIRE_DEVICE": "host:gbit=40,latency_us=10,check"}


def test_train():
    """Losses and weights are gloo's, bit by bit, as without the stage."""
    with TorchNet(2) as net:
        net.start_all()
        net.ranks_ok("cases_train.py", "equal_to_gloo", env=HOST)
        net.ranks_ok("cases_device.py", "staged", env=HOST)


def test_options():
    """Other types on the wire, several passes, clipping, updates past the
    barrier; with local ranks."""
    with TorchNet(1, local=[2]) as net:
        net.start_all()
        net.ranks_ok("cases_train.py", "barrier_is_crossed", env=HOST)
        net.ranks_ok("cases_parallel.py", "passes", "clipping", "scaler",
                     "compressed", env=HOST)


def ranks(net, case, devices):
    """Each rank with a device of its own."""
    net.n_runs += 1
    return [net.rank(r, os.path.join(HERE, "cases_device.py"), case,
                     env={"SUMWIRE_DEVICE": d})
            for r, d in enumerate(devices)]


def test_one_rank_has_none():
    with TorchNet(2) as net:
        net.start_all()
        for p in ranks(net, "not_at_all", ["host", "host:no_such_option"]):
            p.wait_ok()


def test_a_gradient_is_written():
    with TorchNet(2) as net:
        net.start_all()
        for p in ranks(net, "written", ["host", "host:latency_us=50000,check"]):
            p.wait_ok()


def test_a_device_is_lost():
    with TorchNet(2) as net:
        net.start_all()
        for p in ranks(net, "lost", ["host", "host:lost_after=300"]):
            p.wait_ok()


BACKEND = ["sums", "averages", "operations", "premultiplied", "broadcasts",
           "gathers", "scatters", "asynchronous", "coalesced", "empty",
           "threads", "refused", "differing", "aborted", "split"]


def test_backend():
    """Collectives of torch.distributed, of tensors of the device."""
    with backend_rig.Net(2, local=(2, 1)) as net:
        net.start_all()
        net.ranks_ok("cases_backend.py",
                     *(BACKEND[:6] if IS_QUICK else BACKEND), env=HOST)
        net.ranks_ok("cases_place.py", "placed", "held", "mixed", "trained",
                     env=HOST)


def check_places(case, devices):
    """Each rank with a device of its own."""
    with backend_rig.Net(2) as net:
        net.start_all()
        net.n_runs += 1
        for p in [net.rank(r, os.path.join(HERE, "cases_place.py"), case,
                           env={"SUMWIRE_DEVICE": d})
                  for r, d in enumerate(devices)]:
            p.wait_ok()


def test_backend_finds_a_tensor_that_is_written():
    check_places("written", ["host", "host:latency_us=50000,check"])


def test_backend_loses_a_device():
    check_places("lost", ["host", "host:lost_after=30"])


if __name__ == "__main__":
    torch_rig.main(dict(globals()))
