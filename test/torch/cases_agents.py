# cases_agents.py - agents started by ranks: signals, logs, unusual machines
# SPDX-License-Identifier: BSD-3-Clause
"""By torch_agents.py. Each case starts the group itself."""
import gc
import os
import re
import resource
import shutil
import signal
import socket
import sys
import tempfile
import time
import warnings

import torch
import torch.distributed as dist

from cases_backend import start
from deny import deny
from own_agent import agent_of_rank, agent_pid
from sumwire import SumwireError
from sumwire.distributed import agents, numa
from sumwire.distributed.servers import appliances
from torch_rig import check, raises, run_cases

AFTER_S = 3  # seconds for a checkpoint


def sums():
    x = torch.ones(1000)
    dist.all_reduce(x)
    check(bool((x == dist.get_world_size()).all()), x)


def case_sums():
    start()
    sums()
    dist.destroy_process_group()


def case_is_keyed():
    """The agent has a secret for its own job, which appears neither in its
    arguments nor in its environment nor in this rank's environment."""
    start()
    sums()
    path, conf = agent_of_rank()
    pid = agent_pid(path)
    [fd] = re.findall(r"^key_file = /dev/fd/(\d+)$", conf, re.M)
    with open(f"/proc/{pid}/fd/{fd}", encoding="ascii") as f:
        key = f.read().strip()
    check(re.fullmatch("[0-9a-f]{64}", key), "the key has 64 digits")
    for which, each in ("self", "environ"), (pid, "environ"), (pid, "cmdline"):
        with open(f"/proc/{which}/{each}", "rb") as f:
            check(key.encode() not in f.read(), f"{each} of {which} shows it")
    check(key not in conf, "its configuration shows it")
    keys = [None] * dist.get_world_size()
    dist.all_gather_object(keys, key)
    check(len(set(keys)) == 1, "each rank's agent has the same key")
    dist.destroy_process_group()


def case_has_a_key_file():
    """The user sets a key file: each agent reads it."""
    start()
    sums()
    check("key_file" not in agent_of_rank()[1], "the backend drew a key")
    dist.destroy_process_group()


def case_has_a_bad_key_file():
    with raises(SumwireError, "the agent of this machine did not start",
                "has mode 0644: it must be 0600"):
        start()


def case_checkpoint():
    """Ranks that get a signal agree on it, and save a checkpoint."""
    told = []
    for number in signal.SIGTERM, signal.SIGINT, signal.SIGUSR1:
        signal.signal(number, lambda *_: told.append(1))
    start()
    print("goes on", flush=True)
    is_told = torch.zeros(1)
    while not is_told:
        is_told.fill_(len(told))
        dist.all_reduce(is_told, op=dist.ReduceOp.MAX)
        time.sleep(0.02)
    end = time.monotonic() + AFTER_S
    is_over = torch.zeros(1)
    while not is_over:
        sums()
        is_over.fill_(time.monotonic() > end)
        dist.all_reduce(is_over, op=dist.ReduceOp.MAX)
    dist.destroy_process_group()


def case_port_is_taken():
    """Another job has just taken the port. All ranks report why they have no
    agent."""
    def taken(ip, n, span):
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind((ip, 0))
        taken.sock = sock
        return sock.getsockname()[1]
    agents.free_port = taken
    with raises(SumwireError, "the agent of this machine did not start",
                "bind: Address already in use"):
        start()


def case_agent_is_killed():
    """Each rank reports the agent's last error."""
    start()
    sums()
    dist.barrier()
    rank = dist.get_rank()
    if rank == 1:
        path, pid = agent_of_rank()[0], agent_pid(agent_of_rank()[0])
        n_files = len(os.listdir(f"/proc/{pid}/fd"))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (n_files, n_files))
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.connect(path)
            time.sleep(AFTER_S)  # time for the agent to log that it cannot accept
        os.kill(pid, signal.SIGKILL)
    how = ("(it was killed by SIGKILL)" if rank == 0
           else "(rank 0 started it and prints its log)")
    with raises(SumwireError, "agent.sock has ended; its last error: no process "
                "can attach", how):
        for _ in range(1 << 30):
            sums()
    dist.destroy_process_group()


def case_bound():
    """The agent's CPUs and nice value differ from this rank's. Its timeouts
    follow the group's."""
    free = numa.allowed()
    os.sched_setaffinity(0, {min(free)})
    nice = os.nice(3)
    start()
    path, conf = agent_of_rank()
    pid = agent_pid(path)
    cpus = os.sched_getaffinity(pid)
    check(cpus == free, f"the agent may use {cpus}, not {free}")
    check(os.sched_getaffinity(0) == {min(free)}, "this rank is as it was")
    try:
        os.setpriority(os.PRIO_PROCESS, 0, 0)
        nice = 0
    except PermissionError:
        pass
    found = os.getpriority(os.PRIO_PROCESS, pid)
    check(found == nice, f"the agent has nice value {found}, not {nice}")
    check("dead_after = 600s" in conf, conf)
    for timeout_s, dead_s in ((1800, 60), (5, 30), (100.5, 101), (7200, 600)):
        found = agents.dead_seconds(timeout_s)
        check(found == dead_s, f"{timeout_s}: {found}, not {dead_s}")
    sums()


def case_denied():
    """Deny system calls, as a container's filter may."""
    deny("setpgid", "setsid", "madvise", "fallocate")
    start()
    sums()
    dist.destroy_process_group()


def case_no_memory_files():
    deny("memfd_create")
    with raises(SumwireError, "memfd_create: Operation not permitted"):
        start()


def case_quotas():
    """Set quotas in control groups of both versions, also in an outer group."""
    with tempfile.TemporaryDirectory() as folder:
        numa.SYS, numa.CGROUP = folder, os.path.join(folder, "of_process")
        for groups, files, want in (
                ("", {}, None),
                ("0::/a/b", {"a/b/cpu.max": "max 100000"}, None),
                ("0::/", {"cpu.max": "150000 100000"}, 1.5),
                ("0::/a/b", {"a/b/cpu.max": "400000 100000",
                             "a/cpu.max": "200000 100000"}, 2),
                ("3:cpu,cpuacct:/c\n0::/", {
                    "cpu,cpuacct/c/cpu.cfs_quota_us": "50000",
                    "cpu,cpuacct/c/cpu.cfs_period_us": "100000"}, 0.5),
                ("3:cpu:/c", {"cpu/c/cpu.cfs_quota_us": "-1",
                              "cpu/c/cpu.cfs_period_us": "100000"}, None)):
            shutil.rmtree(os.path.join(folder, "fs"), ignore_errors=True)
            for name, text in {"../../of_process": groups, **files}.items():
                path = os.path.join(folder, "fs", "cgroup", name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="ascii") as f:
                    f.write(text + "\n")
            check(numa.quota() == want, f"{groups}: {numa.quota()}")
        check(numa.usable() == len(numa.allowed()), numa.usable())
        with open(path.replace("period", "quota"), "w", encoding="ascii") as f:
            f.write("150000")
        check(numa.usable() == 1, numa.usable())
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            numa.warn_of_quota(2, 1)
        check("1.5 CPUs" in str(seen[0].message), seen)


def case_two_agents():
    """Start one agent for rank 0 and one for the others, also for a later
    group."""
    start()
    dist.destroy_process_group(dist.new_group())
    sums()
    paths = [None] * dist.get_world_size()
    dist.all_gather_object(paths, agent_of_rank()[0])
    check(len(set(paths)) == 2 and paths[0] not in paths[1:], paths)


def case_families():
    """The host name resolves to localhost in both address families."""
    def look(host, *_args, **_kw):
        return [(0, 0, 0, "", (ip, 0)) for ip in hosts[host]]
    def chosen(servers):
        os.environ["SUMWIRE_SERVERS"] = servers
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            return [ip for ip, _ in appliances()], [str(w.message) for w in said]
    hosts = {"localhost": ["::1", "127.0.0.1"], "six": ["::1"]}
    socket.getaddrinfo = look
    v4, v6 = os.environ["TEST_V4"], os.environ["TEST_V6"]
    check(chosen(v4) == (["127.0.0.1"], []), "IPv4 comes first")
    ips, said = chosen(v6)
    check(ips == ["::1"], f"the server is at ::1 alone: {ips}")
    check(len(said) == 1 and re.fullmatch(
        r"SUMWIRE_SERVERS: no answer over UDP from 127\.0\.0\.1:\d+: using "
        r"IPv6, \[::1\]:\d+", said[0]), f"{said}")
    check(chosen(f"{v4},six:9") == (["::1", "::1"], []), "one has only IPv6")
    began = time.monotonic()
    check(chosen("localhost:9") == (["127.0.0.1"], []), "neither answers")
    check(chosen(f"{v4},{v6}") == (["127.0.0.1"] * 2, []), "not all of one")
    check(time.monotonic() - began < 4, "it took too long")


def case_wrong_level():
    with raises(SumwireError, "SUMWIRE_DEBUG=loud: expected warn, info or trace"):
        start()


def case_no_sys():
    with raises(SumwireError, "DPDK looks for CPUs there: mount sysfs at /sys"):
        start()


def case_no_log():
    with raises(SumwireError, "cannot open /nowhere/agent.log: No such file"):
        start()


def case_no_warning():
    """Python must not warn of a forgotten process."""
    seen = []
    sys.unraisablehook = seen.append
    warnings.simplefilter("error", ResourceWarning)
    start()
    sums()
    dist.destroy_process_group()
    gc.collect()
    check(not seen, f"{seen}")


if __name__ == "__main__":
    run_cases(globals())
