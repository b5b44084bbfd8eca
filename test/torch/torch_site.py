# torch_site.py - find a PyTorch that accepts backends from Python: 2.4 or later
# SPDX-License-Identifier: BSD-3-Clause
"""Use the rig's PyTorch, or one that pip installs once into the build folder."""
import fcntl
import os
import subprocess
import sys
import time

import torch_rig
from rig import Failure, Skip

WHEELS = ("torch==2.13.0+cpu", "torch==2.14.1")  # the first one that pip finds
PIP_S = 480  # for all of them
# Modules that ranks import. Their bytecode is kept, because otherwise each
# start would compile them again for 4 to 10 s. All of torch takes most of a
# minute, so pip does not compile it.
IMPORTED = ("torch.distributed.run", "torch.distributed.fsdp",
            "torch.distributed.checkpoint", "torch._inductor.compile_fx")
IS_NEW = """\
import importlib.metadata, importlib.util, os
version = importlib.metadata.version('torch')
assert tuple(map(int, version.split('.')[:2])) >= {}
print(os.path.dirname(importlib.util.find_spec('torch').origin))
"""


def found(env=None, since=(2, 4)):
    """Return where such a torch is, or None."""
    p = subprocess.run([torch_rig.python(), "-c", IS_NEW.format(since)],
                       check=False, env={**os.environ, **(env or {})}, text=True,
                       capture_output=True)
    return None if p.returncode else os.path.dirname(p.stdout.strip())


def fetch(folder):
    done = os.path.join(folder, "complete")
    if os.path.exists(done):
        return
    until = time.monotonic() + PIP_S
    for wheel in WHEELS:
        try:
            p = subprocess.run(
                [torch_rig.python(), "-m", "pip", "install", "--quiet",
                 "--no-compile", "--upgrade", "--target", folder, wheel,
                 "numpy"], capture_output=True, text=True, check=False,
                timeout=max(until - time.monotonic(), 1))
        except subprocess.TimeoutExpired:
            break
        print(f"{wheel}: {p.stdout}{p.stderr}" if p.returncode else wheel,
              file=sys.stderr)
        if not p.returncode:
            break
    if not found({"PYTHONPATH": folder}):
        raise Failure(f"pip finds none of {', '.join(WHEELS)} within {PIP_S} s")
    keep_bytecode(folder)
    with open(done, "w", encoding="ascii"):
        pass


def keep_bytecode(folder):
    env = {**os.environ, "PYTHONPATH": folder}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    for module in IMPORTED:  # some PyTorch versions lack one
        subprocess.run([torch_rig.python(), "-c", f"import {module}"],
                       check=False, capture_output=True, env=env)


def site():
    """Return the PYTHONPATH for it; None if Python has one."""
    if found():
        return None
    folder = os.path.join(os.path.abspath(sys.argv[1]), "torch-site")
    os.makedirs(folder, exist_ok=True)
    with open(folder + ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other tests may install it now
        fetch(folder)
    return folder


def need_fsdp():
    """Require FSDP2 on CPUs: 2.4 and 2.6 create CUDA streams for it."""
    if not found({"PYTHONPATH": site() or ""}, since=(2, 8)):
        raise Skip("this PyTorch has no FSDP2 for CPUs: it takes 2.8 or later")


def where():
    return site() or found()
