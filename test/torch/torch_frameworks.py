# torch_frameworks.py - Lightning and Accelerate over the backend, compared with gloo
# SPDX-License-Identifier: BSD-3-Clause
"""frameworks() installs them once into the build folder, next to the PyTorch of
torch_site.py (50 MB), unless the rig's Python has them."""
import fcntl
import functools
import glob
import os
import re
import subprocess
import sys

import torch_rig
import torch_site
import rig
from backend_rig import Alone, main
from rig import check

STEPS = 6
FRAMEWORKS = ("lightning", "accelerate", "torchft")
PIP_S = 240


def has(folder):
    path = ":".join(filter(None, [folder, torch_site.site()]))
    return subprocess.run(
        [torch_rig.python(), "-c", "import " + ", ".join(FRAMEWORKS)],
        check=False, capture_output=True, env={**os.environ, "PYTHONPATH": path}
        ).returncode == 0


def run_ok(*args):
    p = subprocess.run(args, capture_output=True, text=True, check=False,
                       timeout=PIP_S)
    check(not p.returncode, f"{args}: {p.stdout}{p.stderr}")


def fetch(folder):
    """Create a virtual environment in which pip finds torch, so that it does
    not fetch another."""
    run_ok(torch_rig.python(), "-m", "venv", folder)
    [packages] = glob.glob(folder + "/lib/python3*/site-packages")
    with open(packages + "/torch.pth", "w", encoding="utf-8") as f:
        f.write(torch_site.where() + "\n")
    run_ok(folder + "/bin/python", "-m", "pip", "install", "--quiet",
           *FRAMEWORKS)
    return packages


@functools.lru_cache(maxsize=None)
def frameworks():
    """Return the PYTHONPATH for them; "" if Python has them all."""
    if has(""):
        return ""
    folder = os.path.join(os.path.abspath(sys.argv[1]), "torch-frameworks")
    with open(folder + ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for packages in glob.glob(folder + "/lib/python3*/site-packages"):
            if has(packages):
                return packages
        return fetch(folder)


class Ranks(Alone):
    def environment(self, rank):
        env = super().environment(rank)
        env["PYTHONPATH"] += ":" + frameworks()
        return env


def trained(script):
    """Check that losses equal gloo's, except for rounding by order."""
    losses = {}
    with Ranks() as net:
        p = net.torchrun(os.path.join(torch_rig.HERE, script), "gloo", "sumwire")
        p.wait_ok()
        for backend, text in zip(("gloo", "sumwire"), p.out().split("ended\n")):
            n = text.count(f"backend {backend}")
            check(n == 2, f"{n} ranks have {backend}")
            losses[backend] = [float(x) for x in re.findall(
                r"loss \d+ ([\d.]+)", text)]
        net.await_nothing()
    check(len(losses["gloo"]) == len(losses["sumwire"]) == STEPS, losses)
    for x, y in zip(*losses.values()):
        check(abs(x - y) <= 1e-4 * x, losses)


@rig.is_long
def test_lightning():
    trained("train_lightning.py")


def test_accelerate():
    trained("train_accelerate.py")


if __name__ == "__main__":
    main(dict(globals()))
