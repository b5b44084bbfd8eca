# proc_lcores.py - servers that poll on several cores, on two shared ones
# SPDX-License-Identifier: BSD-3-Clause
import re
import subprocess

import rig
from rig import Net, check, run_steps, start_forever

TENSORS = ("--tensor", "w:1000001:f32", "--tensor", "b:7:i32",
           "--tensor", "v:350000:i64")
FAULTS = {"fault_loss": "1%", "fault_dup": "1%", "fault_reorder": "1%"}
DEAD_AFTER_S = 2


def check_lcores(net, name, lcores):
    """Check that each lcore has its part, and that lcores without ports got it
    through a ring."""
    stats = net.empty_stats(name)
    parts = [stats[f"lcore{i}.push_bytes"] for i in range(lcores)]
    check(min(parts) > 0.5 * sum(parts) / lcores,
          f"{name}: uneven over lcores: {parts}")
    check(stats["lcores"] == lcores and stats["handoff_rx"] > 0 and
          stats["handoff_tx"] > 0, f"{name}: {stats}")


def run_job(lcores, agents=2, servers=1, steps=5, **keys):
    with Net(agents=agents, servers=servers, lcores=lcores, **keys) as net:
        net.start_all()
        for _ in range(2):  # the second job reuses freed memory
            run_steps(net, *TENSORS, steps=steps)
        for name in net.servers:
            check_lcores(net, name, lcores)
        if keys.get("colocated"):
            for name in net.agents:
                check_lcores(net, name, lcores)


def test_two_lcores():
    run_job(2)


def test_jobs_are_of_all_lcores():
    """Bytes of jobs and members in the metrics cover all lcores."""
    with Net(lcores=2) as net:
        net.start_all()
        clients = [net.client(r, *TENSORS, "--steps", "1000", "--pause", name=f"c{r}")
                   for r in range(2)]
        for step in range(3):
            for c in clients:
                c.say()
            for c in clients:
                c.await_out(f"step {step} exact")
        folded = net.stats("a")["push_bytes"]
        text = subprocess.run([rig.sumwire(), "metrics", str(net.daemons["a"].pid)],
                              check=True, stdout=subprocess.PIPE, text=True,
                              timeout=rig.START_S).stdout
        for family in "job_push_bytes", "job_member_push_bytes":
            rows = re.findall(rf"^sumwire_{family}_total{{.*}} (\S+)$", text, re.MULTILINE)
            check(sum(map(float, rows)) == folded > 0, f"{family}: {rows} of {folded}")
        for c in clients:
            c.kill()


def test_four_lcores_and_faults():
    run_job(4, steps=3, port=FAULTS)


def test_two_servers_of_two_lcores():
    run_job(2, servers=2)


def test_colocated_with_two_lcores():
    run_job(2, servers=0, colocated=True)


def test_colocated_beside_a_server_of_two_lcores():
    run_job(2, servers=1, steps=3, colocated=True)


def test_quota_is_of_all_lcores():
    """With a tensor slightly larger than two stripes, one of four lcores needs
    more than a quarter of the quota, which suffices for the whole tensor."""
    with Net(agents=1, lcores=4, quota="3MiB") as net:
        net.start_all()
        net.client(0, "--tensor", "w:300000:f32", "--steps", "2").wait_ok()
        net.empty_stats("a")
        net.client(0, "--tensor", "v:500000:f32").wait_error(
            r"quota: the tensors need \d+ MiB, \d of 3 MiB are left")


def test_agent_killed():
    """The lcores release memory of a dead member's job."""
    with Net(lcores=2, job={"dead_after": f"{DEAD_AFTER_S}s"}) as net:
        net.start_all()
        clients = start_forever(net, *TENSORS, step=0)
        net.kill("agent1")
        clients[0].wait_error(r"rank 1 \(node agent1\) silent")
        clients[1].wait_error(r"agent1.sock has ended")
        rig.wait_until(
            lambda: net.stats("a")["memory_used_bytes"] == 0, rig.STOP_S,
            "memory given back")
        net.start("agent1")
        clients = [net.client(r, *TENSORS, name=f"later{r}") for r in range(2)]
        for c in clients:
            c.wait_ok()


def test_server_stops_in_mid_job():
    with Net(lcores=2) as net:
        net.start_all()
        clients = start_forever(net, *TENSORS, step=0)
        net.stop("a")
        for c in clients:
            c.wait_error(r"error wait SW_ESERVER: .*the server at node a stops")


def test_other_number_than_the_server_has():
    with Net(agents=1, lcores=2) as net:
        net.ini["agent0"]["job"]["server_lcores"] = 4
        net.start_all()
        net.client(0, *TENSORS).wait_error(
            r"agent 0: servers of 4 polling cores; this one has 2")


def test_bad_numbers():
    cases = ((("serve", "lcores", 17), r"17.*1 to 16"),
             (("serve", "udp_port", 65535), r"2 ports.*65534 at most"),
             (("lcore", "cpus", "0"), r"1.*2 lcores|2.*lcores"))
    for (section, key, value), pattern in cases:
        with Net(agents=1, lcores=2) as net:
            net.ini["a"].setdefault(section, {})[key] = value
            net.run("bad", rig.sumwire(), "server", "--config",
                    net.write_ini("a")).wait_error(pattern, code=1)


if __name__ == "__main__":
    rig.main(dict(globals()))
