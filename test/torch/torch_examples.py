# torch_examples.py - the examples of apps/torch, over sumwire and over gloo
# SPDX-License-Identifier: BSD-3-Clause
import os
import re
import tempfile

import torch_rig
import rig
from rig import check
from torch_rig import ROOT

EXAMPLES = os.path.join(ROOT, "apps", "torch", "examples")


def last_line(folder, example, *args):
    """Run two ranks by sumwire run."""
    env = {"PYTHONPATH": os.path.join(ROOT, "apps", "torch"),
           "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1",
           "SUMWIRE_LIBRARY": rig.program("pmd/client/libsumwire.so")}
    p = rig.Process(os.path.basename(example), folder, [
        "/usr/bin/env", *[f"{k}={v}" for k, v in env.items()], rig.sumwire(),
        "run", "-np", "2", "--no-tags", torch_rig.python(),
        os.path.join(EXAMPLES, example), *args])
    try:
        p.wait_ok(rig.RUN_S)
    except rig.Failure:
        print(p.out() + p.log())
        raise
    finally:
        p.destroy()
    last = p.out().splitlines()[-1]
    print(last)
    return last


def results(folder, example, *args):
    """Return the numbers after loss and accuracy in the last line."""
    return [float(x) for x in re.findall(r"(?:loss|accuracy) ([0-9.]+)",
                                         last_line(folder, example, *args))]


def both(example, *args):
    with tempfile.TemporaryDirectory() as folder:
        ours = results(folder, example, *args)
        gloo = results(folder, example, "--ddp", "gloo", *args)
        check(ours == gloo, f"{example}: {ours}, but gloo has {gloo}")
        return ours


def test_digits():
    _, accuracy = both("digits.py", "--steps", "90")
    check(accuracy > 80, f"test accuracy {accuracy} %")


def test_text():
    [loss] = both("text.py", "--steps", "20", "--width", "64", "--length", "16")
    check(loss < 4, f"loss {loss}")


@rig.is_long
def test_bf16():
    [loss] = both("text.py", "--steps", "10", "--width", "64", "--length", "16",
                  "--bf16", "--device", "cpu")
    check(loss < 5, f"loss {loss}")


def test_nccl():
    """Run the program that compares NCCL's networks over gloo, because there is
    no GPU."""
    with tempfile.TemporaryDirectory() as folder:
        last = last_line(folder, os.path.join(ROOT, "test", "peers", "nccl.py"),
                         "--backend", "gloo", "--largest", "1")
        check(last == "right", last)


if __name__ == "__main__":
    torch_rig.main(dict(globals()))
