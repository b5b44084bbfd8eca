# proc_device.py - tensors of a software device, by real daemons
# SPDX-License-Identifier: BSD-3-Clause
import os
import subprocess

import rig
from rig import Net, check, program


def start(net, rank, device="fake:gbit=40,latency_us=10", name="", env=(),
          **keys):
    args = [f"--{k}={v}" for k, v in keys.items()]
    return net.run(f"device{rank}{name}", "env", f"SUMWIRE_DEVICE={device}",
                   *env, program("test/proc/proc_device"), "--agent",
                   net.socket(f"agent{rank}"), *args)


def run(n, k, local=None, steps=6, seed=1, **keys):
    with Net(agents=n, servers=k, local=local, **keys) as net:
        net.start_all()
        procs = [start(net, i, name=f".{j}", steps=steps, seed=seed)
                 for i, m in enumerate(local or (1,) * n) for j in range(m)]
        for p in procs:
            p.wait_ok()
            check("exact" in p.out(), p.out())
            check("pinned" not in p.log(), p.log())


def test_two_nodes_alone():
    run(2, 0, colocated=True)


def test_three_nodes_and_two_servers():
    run(3, 2, colocated=True, seed=2)


def test_two_agents_one_server_with_faults():
    run(2, 1, seed=3, steps=3,
        port={"fault_loss": "1%", "fault_dup": "1%", "fault_reorder": "1%"})


def test_local_ranks():
    run(2, 0, colocated=True, local=(2, 2), seed=4)


def test_a_device_is_lost():
    """The job ends at all ranks, and every error names the rank with the
    device."""
    with Net(agents=2, servers=1) as net:
        net.start_all()
        good = start(net, 0, steps=1000)
        bad = start(net, 1, "fake:lost_after=60", steps=1000)
        lost = "fake device: device lost by option lost_after"
        bad.wait_error("SW_EDEVICE", f"rank 1: {lost}")
        good.wait_error("SW_EPEER", f"rank 1 .*{lost}")


def collectives(n, k, local=None,
                devices=("fake:gbit=40,latency_us=10,check",), **keys):
    """Run collectives drawn from a seed, some with buffers in device memory."""
    with Net(agents=n, servers=k, local=local, **keys) as net:
        net.start_all()
        places = [(i, j) for i, m in enumerate(local or (1,) * n)
                  for j in range(m)]
        procs = [net.run(f"coll{i}.{j}", "env",
                         f"SUMWIRE_DEVICE={devices[at % len(devices)]}",
                         program("test/proc/proc_coll"), "--agent",
                         net.socket(f"agent{i}"), "--seed=18", "--device")
                 for at, (i, j) in enumerate(places)]
        yield procs


def test_collectives():
    """Some ranks use memory, others a device, in all kinds and groups."""
    for procs in collectives(3, 1, colocated=True):
        for p in procs:
            p.wait_ok()
            check("exact" in p.out(), p.out())


def test_collectives_of_local_ranks():
    for procs in collectives(2, 0, colocated=True, local=(2, 2)):
        for p in procs:
            p.wait_ok()


def test_a_device_is_lost_in_a_collective():
    """The job ends at all ranks, and every error names the rank with the
    device."""
    for good, bad in collectives(2, 1, devices=("fake",
                                                "fake:lost_after=60")):
        lost = "fake device: device lost by option lost_after"
        bad.wait_error("SW_EDEVICE", f"rank 1: {lost}")
        good.wait_error("SW_EPEER", f"rank 1 .*{lost}")


def measured(*args, **env):
    p = subprocess.run(args, capture_output=True, text=True, check=False,
                       timeout=rig.RUN_S, env={**os.environ, **env})
    check(p.returncode == 0 and "done\n" in p.stdout, p.stdout + p.stderr)
    return p.stdout


def test_measure():
    """Run the measurement for a machine with a GPU."""
    program_of = program("test/cuda/measure")
    fake = {"SUMWIRE_CUDART": program("test/cuda/cudart-fake-13.so")}
    for device, env in ("fake:gbit=100", {}), ("cuda", fake):
        out = measured(program_of, "copies", device, "2", **env)
        check("pinned 8 MiB in " in out and "   2 MiB: bare " in out, out)
        out = measured(rig.sumwire(), "run", "-np", "2", program_of,
                       "sums", device, "8", **env)
        check("8 MiB: from memory " in out and "64 KiB: p50 " in out, out)


def test_no_runtime():
    with Net(agents=2, servers=1) as net:
        net.start_all()
        nowhere = "/nowhere/libcudart.so"
        for p in [start(net, i, "cuda", env=[f"SUMWIRE_CUDART={nowhere}"])
                  for i in range(2)]:
            p.wait_error(f"SUMWIRE_CUDART: {nowhere} cannot be loaded|SW_EPEER")


if __name__ == "__main__":
    rig.main(dict(globals()))
