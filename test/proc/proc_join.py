# proc_join.py - jobs that cannot start, and their error messages
# SPDX-License-Identifier: BSD-3-Clause
import os
import re
import socket
import time

import rig
from rig import Net, check, run_refused

SMALL = ("--tensor", "w:100:f32")


def run_mismatch(first, second, *patterns):
    """Check that both ranks' calls of w fail with one sentence, that calls of v
    do not, and that the job ends well."""
    with Net() as net:
        net.start_all()
        more = ("--tensor", "v:70000:f32:9", "--mismatch", "none", "--steps",
                "3")
        clients = [net.client(0, *first, *more), net.client(1, *second, *more)]
        said = set()
        for c in clients:
            c.wait_ok()
            waits = re.findall("mismatch wait: (tensor w: .*)", c.out())
            check(len(waits) == 3 and len(set(waits)) == 1,
                  f"{c.name} says {waits}")
            said.add(waits[0])
            for pattern in patterns:
                check(re.search(pattern, waits[0]),
                      f"'{waits[0]}' lacks '{pattern}'")
            for step in range(3):
                check(f"step {step} exact" in c.out(), f"step {step} of v")
        check(len(said) == 1, f"they say {said}")
        declared = [c for c in clients if "mismatch declare: tensor w: "
                    in c.out()]
        # The first rank's sw_declare fails as well if the other one declares
        # before its answer.
        check(declared, "none is told by sw_declare")


def test_other_size():
    run_mismatch(SMALL, ("--tensor", "w:200:f32"),
                 r"rank 0 declare[sd] 100 x f32",
                 r"rank 1 declare[sd] 200 x f32")


def test_other_dtype():
    run_mismatch(SMALL, ("--tensor", "w:100:i32"),
                 r"rank 0 declare[sd] 100 x f32",
                 r"rank 1 declare[sd] 100 x i32")


def test_other_priority():
    run_mismatch(SMALL, ("--tensor", "w:100:f32:5"),
                 r"priority 0\b", r"priority 5\b")


def test_tensor_that_only_one_declares():
    # The processes may start a while apart.
    job = {"stall_warn": "1s", "stall_limit": "6s"}
    with Net(job=job) as net:
        net.start_all()
        one = net.client(0, *SMALL, "--tensor", "extra:9:f32")
        other = net.client(1, *SMALL, "--steps", "2", "--pause")
        other.say()
        one.wait_error(r"SW_ESTALL: .*rank 1 of 2, tensor extra")
        other.say()
        other.wait_error(r"rank 1 of 2, tensor extra")


def test_other_step():
    with Net() as net:
        net.start_all()
        clients = [net.client(0, *SMALL, "--first-step", "7"),
                   net.client(1, *SMALL, "--first-step", "8")]
        for c in clients:
            c.wait_error(r"SW_EMISMATCH: tensor w: rank [01] pushes step [78], "
                         r"rank [01] pushes step [78]")


def test_rank_that_is_taken():
    with Net() as net:
        net.ini["agent0b"] = net.common("agent", "agent0b", 0)
        net.ini["agent0b"]["agent"] = {"socket": net.socket("agent0b")}
        net.ini["agent0b"]["job"]["join_timeout"] = "3s"
        net.add_port("a", 2, "listen")
        net.add_port("agent0b", 2, "connect")
        net.add_server("agent0b", "a", 2)
        net.start("a", "agent0", "agent1", "agent0b")
        first = net.client(0, *SMALL, "--pause")
        first.await_text(r"waiting for agent 1 of 2 at")
        second = net.client(0, *SMALL, name="second", agent="agent0b")
        why = r"agent 0 of job job is node agent0 at 10\.77\.0\.2"
        second.await_text(r"waiting for server a .*" + why)
        second.wait_error(r"error open SW_ETIMEDOUT: .*" + why)
        other = net.client(1, *SMALL)
        first.say()
        first.wait_ok()
        other.wait_ok()


def test_agent_that_is_taken():
    with Net(agents=1) as net:
        net.start_all()
        first = net.client(0, *SMALL, "--pause")
        first.await_out("declared")
        second = net.client(0, *SMALL, name="second")
        second.wait_error(r"error open SW_EBUSY: rank 0 is already taken by process "
                          f"{first.pid}")
        first.say()
        first.wait_ok()


def test_server_not_there():
    with Net(agents=1, job={"join_timeout": "3s"}) as net:
        net.start("agent0")
        start = time.monotonic()
        c = net.client(0, *SMALL)
        who = r"server a \(10\.77\.0\.1:5700\), which does not answer"
        c.await_text(r"waiting for " + who)
        c.wait_error(r"error open SW_ETIMEDOUT: waited 3 s for " + who)
        took = time.monotonic() - start
        check(took > 2.9, f"it gave up after {took:.1f} s, not 3 s")
        net.stop("agent0")
        net.ini["agent0"]["job"]["join_timeout"] = f"{rig.START_S}s"
        net.start("agent0")
        late = net.client(0, *SMALL, name="late")
        late.await_text(r"waiting for " + who)
        net.start("a")
        late.wait_ok()


def test_second_agent_not_there():
    with Net(job={"join_timeout": "3s"}) as net:
        net.start_all()
        c = net.client(0, *SMALL)
        who = (r"agent 1 of 2 at server a \(10\.77\.0\.1:5700\); "
               r"1 rank here: agent 0 10\.77\.0\.2")
        c.await_text(r"waiting for " + who)
        net.daemons["a"].await_text(
            r"job job: waiting for agent 1 of 2; 1 rank here: agent 0 "
            r"10\.77\.0\.2")
        c.wait_error(r"error open SW_ETIMEDOUT: waited 3 s for " + who)


def test_agent_not_there():
    with Net(agents=1) as net:
        net.start("a")
        c = net.client(0, *SMALL, "--timeout", "2")
        c.wait_error(r"error open SW_ECLOSED: no agent listens at "
                     + re.escape(net.socket("agent0")))


def test_other_settings():
    """JOIN compares the job's settings; the error shows both values."""
    settings = [("agents", "3", r"agents = 3, job job has 2"),
                ("crc", "no", r"crc = 0, job job has 1"),
                ("policy", "fifo", r"policy = fifo, job job has bytescheduler"),
                ("credit", "1MiB", r"credit .* = 1048576, job job has 0"),
                ("mode", "asynchronous",
                 r"mode = asynchronous, job job has synchronous")]
    with Net() as net:
        net.start_all()
        first = net.client(0, *SMALL)
        first.await_text(r"waiting for agent 1 of 2 at")
        for key, value, pattern in settings:
            net.stop("agent1")
            job = net.ini["agent1"]["job"]
            was = job.get(key)
            job[key] = value
            net.start("agent1")
            net.client(1, *SMALL, name=key).wait_error(
                r"error open SW_EMISMATCH: .*agent 1 has " + pattern)
            said = re.findall(pattern, net.daemons["agent1"].log())
            check(len(said) == 1, f"agent1 says it {len(said)} times")
            job[key] = was
            if was is None:
                del job[key]
        first.kill()


def test_unlike_payloads():
    """The smallest payload that a node allows applies to the job."""
    with Net() as net:
        net.ini["a"]["job"]["payload"] = "4096"
        net.ini["agent1"]["job"]["payload"] = "1216"
        net.start_all()
        clients = [net.client(r, *SMALL) for r in range(2)]
        for c in clients:
            c.wait_ok()
        check("job job: runs with a payload of 1216 B" in
              net.daemons["a"].log(), "another payload")


def test_quota_of_the_server():
    with Net(agents=1, quota="1MiB") as net:
        net.start_all()
        net.client(0, "--tensor", "big:1000000:f32").wait_error(
            r"error declare SW_EREFUSED: .*quota: .*need 8 MiB.* of 1 MiB")
        net.client(0, "--tensor", "fits:100000:f32", name="fits").wait_ok()


def test_quota_of_the_agent():
    with Net(agents=1) as net:
        net.ini["agent0"]["agent"]["quota"] = "2MiB"
        net.start_all()
        net.client(0, "--tensor", "big:1000000:f32").wait_error(
            r"error declare SW_ENOMEM: .*quota")
        net.client(0, "--tensor", "fits:100000:f32", name="fits").wait_ok()


def test_port_in_a_missing_folder():
    with Net(agents=1) as net:
        path = net.path("missing/link")
        net.ini["a"]["port link0"]["socket"] = path
        net.ini["agent0"]["port link0"]["socket"] = path
        run_refused(net, "a", re.escape(path) + r".*No such file or directory")


def test_port_that_another_process_has():
    with Net(agents=1) as net:
        net.ini["second"] = net.common("server", "second", 0)
        net.add_port("second", 0, "listen")
        net.start_all()
        run_refused(net, "second",
                    re.escape(net.path("link0")) + r".*another process")
        net.client(0, *SMALL).wait_ok()


def test_agent_socket_that_another_process_has():
    with Net(agents=1) as net:
        net.ini["second"] = net.common("agent", "second", 0)
        net.ini["second"]["agent"] = {"socket": net.socket("agent0")}
        net.add_port("second", 1, "connect")
        net.add_server("second", "a", 1)
        net.start_all()
        run_refused(net, "second", re.escape(net.socket("agent0")))
        net.client(0, *SMALL).wait_ok()


def test_users_that_do_not_exist():
    for name in "nobody-of-that-name", "4294967296":
        with Net(agents=1) as net:
            net.ini["agent0"]["agent"]["users"] = "0," + name
            run_refused(net, "agent0", rf'users: unknown user "{name}"')


def test_node_without_a_name():
    """The node gets the name of its machine."""
    with Net(agents=1) as net:
        del net.ini["agent0"]["node"]["name"]
        net.start_all()
        net.client(0, *SMALL).wait_ok()
        host = re.escape(socket.gethostname()[:31])
        net.daemons["a"].await_text(rf"agent 0 joined from node {host}")


def test_stats_socket_in_a_missing_folder():
    with Net(agents=1) as net:
        net.ini["a"]["stats"]["socket"] = net.path("missing/stats")
        run_refused(net, "a", r"missing/stats.*No such file or directory")
        check(not os.path.exists(net.path("a.run")), "a.run was left")


if __name__ == "__main__":
    rig.main(dict(globals()))
