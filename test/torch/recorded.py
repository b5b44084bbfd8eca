# recorded.py - copies in the trace of a running job
# SPDX-License-Identifier: BSD-3-Clause
import collections
import json
import os
import subprocess
import tempfile

import rig
from proc_ps import unique
from rig import check


def copies_of(net, path):
    """Trace for a second; return the number of copies of each kind and size."""
    p = subprocess.run([rig.sumwire(), "trace", "--time", "1s", "--output", path,
                        *(unique(n) for n in net.daemons)], check=False,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                       timeout=rig.RUN_S)
    check(p.returncode == 0, p.stderr)
    with open(path, encoding="utf-8") as f:
        return collections.Counter(
            (e["name"], e["args"]["bytes"]) for e in json.load(f)["traceEvents"]
            if e["name"].startswith("copy ") and "tensor" in e["args"])


def await_copies(net, file, has_all, **env):
    """The file's case "recorded" runs until has_all() is true of its copies."""
    net.start_all()
    with tempfile.TemporaryDirectory() as folder:
        done = os.path.join(folder, "done")
        ranks = net.cases(file, "recorded", env={**env, "RECORDED": done})
        rig.wait_until(lambda: has_all(copies_of(net, os.path.join(folder, "t.json"))),
                       rig.RUN_S, "copies of all kinds")
        with open(done, "w", encoding="utf-8"):
            pass
        for p in ranks:
            p.wait_ok(rig.RUN_S)
    net.remove_files()
