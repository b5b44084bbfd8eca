# torch_async.py - asynchronous training with real daemons
# SPDX-License-Identifier: BSD-3-Clause
import os
import signal
import tempfile

import torch_rig
import rig
from rig import check
from torch_rig import HERE, ROOT, TorchNet

ASYNC = {"mode": "asynchronous"}


def test_two_ranks():
    with TorchNet(2, job=ASYNC) as net:
        net.start_all()
        net.ranks_ok("cases_async.py", "exact", "two_speeds", "options",
                     "sparse_and_steps")


def test_local_ranks():
    """Ranks of one agent start together."""
    with TorchNet(2, local=[1, 2], job=ASYNC) as net:
        net.start_all()
        net.ranks_ok("cases_async.py", "exact")


def test_a_rank_is_killed():
    with TorchNet(2, job=ASYNC) as net:
        net.start_all()
        zero, one = net.cases("cases_async.py", "death")
        got = one.wait(rig.RUN_S)
        check(got == -signal.SIGKILL, f"rank 1 ended with {got}")
        zero.wait_ok(rig.RUN_S)
        check("ok death\n" in zero.out(), "rank 0 went on")


def test_sumwire_run():
    """sumwire run starts server and agents in that mode, and does not end the
    others after a rank's death."""
    with tempfile.TemporaryDirectory() as folder:
        p = rig.Process("run", folder, [
            "env", "PYTHONPATH=" + os.path.join(ROOT, "apps", "torch"),
            "PYTHONDONTWRITEBYTECODE=1", "OMP_NUM_THREADS=1",
            "SUMWIRE_LIBRARY=" + rig.program("pmd/client/libsumwire.so"),
            f"TEST_STORE={folder}/store", rig.sumwire(), "run",
            "--asynchronous", "--grace", "10ms", "-np", "2",
            torch_rig.python(), os.path.join(HERE, "cases_async.py"), "death"])
        try:
            p.wait_error("rank 1 was killed by signal 9",
                         code=128 + signal.SIGKILL)
            check("[0] ok death\n" in p.out(), "rank 0 went on")
        finally:
            print(p.out() + p.log())
            p.destroy()


def test_mode_of_the_job():
    """A tensor of the other mode is refused, and so is an agent."""
    with TorchNet(2) as net:
        net.start_all()
        net.ranks_ok("cases_async.py", "synchronous_job")
    with TorchNet(2) as net:
        net.ini["agent1"]["job"]["mode"] = "asynchronous"
        net.start_all()
        script = os.path.join(HERE, "cases_async.py")
        zero = net.rank(0, script, "exact")
        zero.await_text("waiting for")
        net.rank(1, script, "exact").wait_error(
            "SumwireError", "mode = asynchronous, job .* has synchronous",
            code=1)
        zero.kill()


if __name__ == "__main__":
    torch_rig.main(dict(globals()))
