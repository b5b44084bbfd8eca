# proc_peers.py - test/peers/run measures installed peers and names missing ones
# SPDX-License-Identifier: BSD-3-Clause
import json
import os
import subprocess

import rig
from rig import check

RUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peers",
                   "run")
LIMIT_S = rig.TEST_S


def peers(*args, env=None):
    return subprocess.run(
        [RUN, "--build", rig.BUILD, "--rounds", "1", "--iters", "2", *args],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        timeout=LIMIT_S, env=env)


def test_every_peer_is_measured_or_named():
    p = peers("--json", "--size", "40KB")
    check(p.returncode == 0, p.stderr)
    rows = json.loads(p.stdout)["results"]
    for row in rows:
        print(f"  {row}", flush=True)
        check("skipped" in row or row["gbit_s"] > 0, f"{row}")
    memory = [r for r in rows if r["where"] == "shared memory"]
    check(memory[0]["peer"] == "sumwire" and memory[0]["size_bytes"] == 40000,
          f"{memory}")
    check("no network namespaces" in p.stderr or
          {r["peer"] for r in rows if r["where"] == "veth"} ==
          {"sumwire", "sumwire af_packet", "gloo", "OpenMPI",
           "iperf3, one way"}, f"{rows}")


def test_what_is_not_installed_is_skipped():
    """The PATH is empty: no mpirun, and no namespaces."""
    p = peers("--size", "4KB", env=dict(os.environ, PATH="/nowhere"))
    check(p.returncode == 0 and "no network namespaces, so nothing over veth: "
          "unshare is not installed" in p.stderr, p.stderr)
    check("skipped: mpirun is not installed (apt install openmpi-bin)"
          in p.stdout, p.stdout)


def test_bad_options():
    for args, why in ((["--size", "4X"], "multiple of 4 bytes"),
                      (["--size", "5B"], "multiple of 4 bytes"),
                      (["--iters", "0"], "at least 1"),
                      (["--build", "/nowhere"], "is not built")):
        p = peers(*args)
        check(p.returncode != 0 and why in p.stderr, f"{args}: {p.stderr}")


if __name__ == "__main__":
    rig.main(dict(globals()))
