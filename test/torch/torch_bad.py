# torch_bad.py - bad input of the backend: one sentence at every rank, in time
# SPDX-License-Identifier: BSD-3-Clause
import torch_rig
from backend_rig import Net, main
from slurm import free_port

STORE = """\
import sys, torch.distributed as dist
store = dist.TCPStore("127.0.0.1", int(sys.argv[1]), is_master=True)
print("is there", flush=True)
sys.stdin.read()
"""


def run(n, *cases):
    with Net(n) as net:
        net.start_all()
        net.ranks_ok("cases_bad.py", *cases)


def test_two_ranks():
    run(2, "tensors", "orders", "kinds", "sizes", "alone", "own_store")


def test_three_ranks():
    run(3, "groups")


def test_frozen_store():
    with Net(2) as net:
        port = str(free_port())
        pairs = net.environment(0)
        store = net.run("keeper", "env", f"PYTHONPATH={pairs['PYTHONPATH']}",
                        torch_rig.python(), "-c", STORE, port)
        store.await_out("is there")
        net.start_all()
        net.ranks_ok("cases_bad.py", "store", env={
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TEST_STORE": "",
            "TORCHELASTIC_USE_AGENT_STORE": "True",
            "TORCHELASTIC_RESTART_COUNT": "0",
            "TEST_STORE_PID": str(store.pid)})
        store.kill()


if __name__ == "__main__":
    main(dict(globals()))
