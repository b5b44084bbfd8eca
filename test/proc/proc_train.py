# proc_train.py - training runs that must succeed, over one server and over two
# SPDX-License-Identifier: BSD-3-Clause
import os
import signal
import subprocess
import tempfile

import rig
from rig import Net, check

STEPS_PER_EPOCH = 22
GRADIENT_BYTES = 4 << 20  # minimum


def check_traffic(result, epochs):
    check(len(result["ranks"]) == 2, "two ranks report")
    for w in result["ranks"]:
        least = STEPS_PER_EPOCH * epochs * GRADIENT_BYTES
        check(w["pushed_bytes"] >= least and
              w["pulled_bytes"] == w["pushed_bytes"],
              f"rank {w['rank']} pushed {w['pushed_bytes']} bytes and "
              f"pulled {w['pulled_bytes']}; at least {least} expected")


def test_one_server():
    with Net() as net:
        net.start_all()
        check_traffic(net.train_ok(epochs=2), 2)
        stats = net.empty_stats("a")
        check(stats["sessions_opened"] == 2 and stats["sessions_closed"] == 2,
              f"sessions: {stats}")


def test_two_servers():
    with Net(servers=2) as net:
        net.start_all()
        check_traffic(net.train_ok(), 1)
        folded = [net.stats(s)["push_bytes"] for s in net.servers]
        check(min(folded) > 0.3 * sum(folded),
              f"stripes are uneven over the servers: {folded}")


@rig.is_long
def test_again_on_the_same_daemons():
    with Net() as net:
        net.start_all()
        first = net.train_ok()
        second = net.train_ok()
        check(first["epochs"] == second["epochs"],
              "the second training has other weights or losses")


def test_gradients_in_other_dtypes():
    with Net() as net:
        net.options = {"a": ["--level", "scalar"]}
        net.start_all()
        net.daemons["a"].await_text("summation kernels: scalar")
        for dtype in ["bf16"] if rig.IS_QUICK else ["f16", "bf16", "f64"]:
            result = net.train_ok("--dtype", dtype)
            check(result["is_reference_identical"] and
                  result["dtype"] == dtype, f"{dtype}: {result}")


def test_faults_on_the_ports():
    keys = {"fault_loss": "1%", "fault_dup": "1%", "fault_reorder": "1%"}
    with Net(port=keys) as net:
        net.start_all()
        rig.run_steps(net, "--tensor", "w:1000000:f32")
        agents = [net.stats(a) for a in net.agents]
        check(all(s["retransmissions"] > 0 for s in agents),
              f"no agent sent anything again: {agents}")
        check(net.stats("a")["push_again"] > 0, "no push came twice")


def test_loss_without_a_number():
    """The sentence appears alone, without a table row of values that are not
    numbers."""
    with Net() as net:
        net.start_all()
        p = net.train("--lr", "100", "--epochs", "1")
        p.wait_error("not finite: choose a smaller --lr")
        check("nan" not in p.out() + p.log(), f"{p.out()}{p.log()}")
    alone = subprocess.run([rig.example_train(), "--alone", "--lr", "100", "--epochs", "1"],
                           capture_output=True, text=True, timeout=rig.RUN_S,
                           check=False)
    check(alone.returncode == 1 and "finite" in alone.stderr and
          "nan" not in alone.stdout, alone)


def loopback(folder, *args):
    return rig.Process("train", folder, [
        "env", "TMPDIR=" + folder, rig.example_train(), "--loopback", *args])


def folders_of(folder):
    return [f for f in os.listdir(folder) if f.startswith("sumwire-run-")]


def test_loopback():
    """Run as apps/quickstart does; nothing is left behind."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        p = loopback(folder, "--epochs", "2")
        try:
            p.wait_ok()
            check("all checks passed" in p.out(), p.out())
            check(not folders_of(folder), "its folder is left")
        finally:
            p.destroy()


def test_loopback_interrupted():
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        p = loopback(folder, "--epochs", "1000")
        try:
            p.await_out("identical")
            children = p.children()
            p.signal(signal.SIGINT)
            check(p.wait(rig.STOP_S) == 128 + signal.SIGINT, "exit code")
            left = [c for c in children if os.path.exists(f"/proc/{c}")]
            check(not left, f"processes are left: {left}")
            check(not folders_of(folder), "its folder is left")
        finally:
            p.destroy()


def test_loopback_or_agents():
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        p = loopback(folder, "--agent", "/nowhere")
        try:
            p.wait_error("give --agent PATH once per rank, --loopback or",
                         code=2)
        finally:
            p.destroy()


def test_three_ranks_sum_exactly():
    with Net(agents=3, servers=2) as net:
        net.start_all()
        clients = [net.client(r, "--tensor", "w:100001:f32", "--tensor",
                              "b:7:i32", "--tensor", "v:70000:i64",
                              "--steps", "5") for r in range(3)]
        for c in clients:
            c.wait_ok()
            check("step 4 exact" in c.out(), f"{c.name} did not see step 4")


def test_broadcasts_between_sums():
    with Net(agents=3, servers=2) as net:
        net.start_all()
        clients = [net.client(r, "--tensor", "w:100001:f32", "--tensor",
                              "b:7:i64", "--copy", "--steps", "7")
                   for r in range(3)]
        for c in clients:
            c.wait_ok()
            for step in range(7):
                check(f"step {step} exact" in c.out(),
                      f"{c.name} did not see step {step}")


if __name__ == "__main__":
    rig.main(dict(globals()))
