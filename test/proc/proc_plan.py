# proc_plan.py - sumwire-lab plan and tune: the paper's figures, bad input, a plot
# SPDX-License-Identifier: BSD-3-Clause
import json
import os
import subprocess
import tempfile
import xml.etree.ElementTree

import rig
from rig import check


def lab(*args):
    return subprocess.run([rig.lab(), *args], capture_output=True,
                          text=True, timeout=rig.RUN_S, check=False)


def plan(*args):
    return lab("plan", *args)


def plan_json(*args):
    p = plan("--json", *args)
    check(p.returncode == 0, "exit %d: %s" % (p.returncode, p.stderr))
    return json.loads(p.stdout)


def test_the_papers_gains():
    """Paper 002, end of section 4.1: n = 32, k = 16."""
    d = plan_json("--gpus", "32", "--cpus", "16")
    check(round(d["gain_over_allreduce"], 3) == 1.469, d)
    check(round(d["gain_over_ps"], 3) == 1.516, d)
    check(abs(16 * d["ss_cpu_share"] + 32 * d["ss_gpu_share"] - 1) < 1e-9, d)
    check(abs(d["optimal_time_s"] - 0.058405) < 1e-6, d)
    check([p["policy"] for p in d["policies"]] ==
          ["bytescheduler", "p3", "fifo"], d)
    for p in d["policies"]:
        check(p["iteration_s"] >= d["ideal_iteration_s"], p)


def test_copies():
    """VGG16's 553 MB at 100 Gb/s each way; device copies never make it faster."""
    host = plan_json("--rate", "25Gb/s")
    check(host["copy_time_s"] is None, host)
    d = plan_json("--rate", "25Gb/s", "--copy", "100Gb/s", "--piece", "1MiB")
    check(abs(d["copy_time_s"] - d["model_bytes"] / 12.5e9) < 1e-9, d)
    check(d["ideal_iteration_s"] == host["ideal_iteration_s"], d)
    for a, b in zip(host["policies"], d["policies"]):
        check(a["iteration_s"] <= b["iteration_s"], f"{a}, {b}")
    slow = plan_json("--rate", "100Gb/s", "--copy", "5Gb/s")
    check(slow["ideal_iteration_s"] >= 0.999 * slow["copy_time_s"], slow)
    p = plan("--copy", "10Gb/s", "--piece", "100")
    check(p.returncode == 2 and "4KiB" in p.stderr, p.stderr)


def test_what_does_not_exist_is_null():
    d = plan_json("--gpus", "8", "--cpus", "0")
    check(d["ss_cpu_share"] is None and d["gain_over_ps"] is None, d)
    check(d["gain_over_allreduce"] == 1, d)
    d = plan_json("--gpus", "1", "--cpus", "2")
    check(d["gain_over_allreduce"] is None, d)


def test_bad_input():
    for args, text in [(["--gpus", "0"], "1 to 1024"),
                       (["--credit", "-1"], "sign"),
                       (["--partition", "4 layers"], "4 layers"),
                       (["--rate", "10"], "Gb/s"),
                       (["--model", "vgg61"], "did you mean vgg16"),
                       (["--model", "/nowhere.model"], "No such file")]:
        p = plan(*args)
        check(p.returncode == 2, "%s: exit %d" % (args, p.returncode))
        check(text in p.stderr, "%s: %s" % (args, p.stderr))


def test_a_file_with_a_missing_layer():
    with tempfile.NamedTemporaryFile("w", suffix=".model") as f:
        f.write("model m\nsource s\nlayers 2\nparameters 4\n"
                "layer 1 b forward 1ms backward 2ms\n")
        f.flush()
        p = plan("--model", f.name)
        check(p.returncode == 2 and f.name + ":5: layer 0 is missing"
              in p.stderr, p.stderr)


def test_a_plot():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "p.svg")
        check(plan("--gpus", "8", "--svg", path).returncode == 0, "exit")
        root = xml.etree.ElementTree.parse(path).getroot()
        check(root.tag.endswith("svg"), root.tag)
        p = plan("--svg", os.path.join(folder, "no", "p.svg"))
        check(p.returncode == 1 and "No such file" in p.stderr, p.stderr)


def test_tune_one_network():
    """The command prints every trial, and the best is close to the grid's."""
    p = lab("tune", "--model", "resnet50", "--rate", "1Gb/s", "--json",
                "--trials", "12")
    check(p.returncode == 0, p.stderr)
    d = json.loads(p.stdout)
    check(p.stderr.count("bo, trial ") == 12, p.stderr)
    check(d["iteration_ms"] <= 1.03 * d["grid_best_ms"], d)


def test_tune_a_device():
    """Copies slower than the link limit what a search can find: 102 MB."""
    p = lab("tune", "--model", "resnet50", "--rate", "10Gb/s", "--copy",
                "1Gb/s", "--json", "--trials", "3")
    check(p.returncode == 0, p.stderr)
    d = json.loads(p.stdout)
    check(d["iteration_ms"] >= d["grid_best_ms"] >= 8 * 102.0, d)


def test_tune_a_job_whose_link_changes():
    p = lab("tune", "--model", "resnet50", "--rate", "5Gb/s", "--later",
                "500Mb/s", "--json")
    check(p.returncode == 0, p.stderr)
    d = json.loads(p.stdout)
    check("search again" in p.stderr and d["searches"] >= 2, p.stderr)
    check(d["iteration_ms"] <= 1.1 * d["grid_best_ms"], d)


def test_tune_methods():
    p = lab("tune", "--seeds", "1", "--json")
    check(p.returncode == 0, p.stderr)
    d = json.loads(p.stdout)
    check(d["smallest_spread"] >= 0.15, d)
    check([m["method"] for m in d["methods"]] ==
          ["bo", "random", "grid", "sgd"], d)


def test_tune_wrong_units():
    for value, text in [("4000000", "16000000B if it counts"),
                        ("4ms", "are bytes"), ("4B", "not partitions")]:
        p = lab("tune", "--credit-max", value)
        check(p.returncode == 2 and text in p.stderr, p.stderr)


if __name__ == "__main__":
    rig.main(dict(globals()))
