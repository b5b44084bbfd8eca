# torch_starts.py - the start of a backend's group, and its failures
# SPDX-License-Identifier: BSD-3-Clause
import os
import subprocess
import tempfile
import time

import torch_rig
from backend_rig import Alone, WithServer, main
from rig import check


def test_servers():
    """The server takes a part of the sums besides the agents' parts."""
    with WithServer() as net:
        net.ranks_ok("cases_backend.py", "sums", env={
            **net.start_server(), "TEST_RANKS_PER_AGENT": "1"})
        check(net.stats("a")["chunks_done"] > 0, "the server has summed")
        net.remove_files()
        net.await_nothing()


def test_servers_of_both_families():
    """One, both or neither of a host's addresses work."""
    with WithServer() as net:
        v4 = net.start_server("a")["SUMWIRE_SERVERS"]
        v6 = net.start_server("b", "::1/64")["SUMWIRE_SERVERS"]
        net.rank(0, os.path.join(torch_rig.HERE, "cases_agents.py"), "families",
                 env={"TEST_V4": v4, "TEST_V6": v6}).wait_ok()
        net.remove_files()
        net.await_nothing()


def test_lcores():
    with Alone() as net:
        net.ranks_ok("cases_backend.py", "sums", "gathers", env={
            "SUMWIRE_LCORES": "2", "TEST_RANKS_PER_AGENT": "1"})
        net.remove_files()
        net.await_nothing()


def refused(envs, *texts, limit_s=60):
    """Check that ranks with these environments end with one sentence each. One
    of them loads torch some time before the other."""
    with Alone() as net:
        net.n_runs += 1
        for p in [net.rank(r, os.path.join(torch_rig.HERE, "cases_ends.py"),
                           "closed", env={"TEST_LIMIT_S": str(limit_s), **env})
                  for r, env in envs.items()]:
            p.wait_error(*texts, code=1)
            n_said = p.log().count("SumwireError:")
            check(n_said == 1, f"{p.name} says {n_said} sentences")
        net.remove_files()
        net.await_nothing()


def both(**env):
    return {0: env, 1: env}


def test_no_server():
    """The other rank may first get the error that this one has given up."""
    refused(both(SUMWIRE_SERVERS="127.0.0.1:9", SUMWIRE_OPEN_TIMEOUT="8"),
            r"SumwireError: (.*waiting for server s0 \(127\.0\.0\.1:9\), which "
            r"does not answer|rank [01] .*closed its attachment)")


def test_open_timeout():
    """A group's timeout also limits its start."""
    began = time.monotonic()
    refused(both(SUMWIRE_SERVERS="127.0.0.1:9"),
            r"SumwireError: (.*waiting for server s0 \(127\.0\.0\.1:9\), which "
            r"does not answer|rank [01] .*closed its attachment)", limit_s=20)
    took = time.monotonic() - began
    check(took < 55, f"it took {took:.0f} s")


def test_wrong_names():
    refused(both(SUMWIRE_SERVERS="127.0.0.1:x"),
            r"SUMWIRE_SERVERS=127.0.0.1:x: expected HOST\[:PORT\], found "
            "127.0.0.1:x")
    refused(both(SUMWIRE_SERVERS="sums.invalid:5700"),
            "cannot resolve sums.invalid: ")
    refused(both(SUMWIRE_LCORES="17"), "SUMWIRE_LCORES=17: expected a number of "
            "polling cores, 1 to 16")
    refused(both(SUMWIRE_SERVERS="10.77.1.1", SUMWIRE_IFNAME="nothing0"),
            "SUMWIRE_IFNAME=nothing0: no interface of machine .* matches; "
            r"there are: .*lo 127\.0\.0\.1")
    refused(both(SUMWIRE_PAYLOAD="1400"), "SUMWIRE_PAYLOAD=1400: expected 0 .*"
            "or a multiple of 64 bytes from 1152 to 8192")
    refused(both(SUMWIRE_PORTS="21000"),
            "SUMWIRE_PORTS=21000: expected FIRST-LAST")
    refused(both(SUMWIRE_PORTS="21000-21000"), "SUMWIRE_PORTS=21000-21000 has 1 "
            "ports: an agent that polls on 1 core needs at least 2")


def test_one_absent():
    """One rank is absent."""
    for rank in (0, 1):
        refused({rank: {}}, "SumwireError: timed out after 5 s waiting for "
                f"rank {1 - rank} to join group", limit_s=5)


def test_other_library():
    """Start one rank with a library that lacks a function that this package
    needs."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "libother.so")
        p = subprocess.run(["gcc", "-shared", "-o", path, "-x", "c", "-"],
                           input=b"int sw_version(void) { return 1; }",
                           check=False)
        check(not p.returncode, "gcc")
        refused({0: {}, 1: {"SUMWIRE_LIBRARY": path}},
                r"SumwireError: rank 1: \S+libother.so has no function sw_\w+, "
                "so it is from another release")


def test_two_jobs():
    """Start two jobs of one user on one machine at the same time."""
    with Alone() as net, Alone() as other:
        jobs = [n.cases("cases_backend.py", "sums", "threads")
                for n in (net, other)]
        for ranks in jobs:
            for p in ranks:
                p.wait_ok()
        for n in net, other:
            n.remove_files()
            n.await_nothing()


if __name__ == "__main__":
    main(dict(globals()))
