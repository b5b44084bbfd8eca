# proc_abi.py - programs that were built with an earlier libsumwire, and examples
# SPDX-License-Identifier: BSD-3-Clause
import glob
import gzip
import os
import platform

import rig
from rig import Net, Skip, check

KEPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../abi/kept")


def test_kept_clients():
    """Today's agents serve the binaries of test/abi/kept."""
    if platform.machine() != "x86_64":
        raise Skip("the kept clients are programs for x86_64")
    kept = sorted(glob.glob(os.path.join(KEPT, "*.gz")))
    check(kept, f"there is none in {KEPT}")
    for path in kept:
        with Net(agents=2) as net:
            net.start_all()
            program = net.path("kept")
            with gzip.open(path) as packed, open(program, "wb") as f:
                f.write(packed.read())
            os.chmod(program, 0o755)
            procs = [net.run(f"kept{r}", program, net.socket(a))
                     for r, a in enumerate(net.agents)]
            for p in procs:
                p.wait_ok()
                check("exact" in p.out(), p.out())
            os.remove(program)


if __name__ == "__main__":
    rig.main(dict(globals()))
