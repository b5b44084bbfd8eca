# torch_launch.py - ways to start a training job: a package copy, sumwire run, launchers
# SPDX-License-Identifier: BSD-3-Clause
import os
import re
import shutil
import subprocess
import tempfile

import torch_rig
import rig
from documents import markdown
from proc_launch import Mpirun, Srun, launch
from rig import Skip, check
from slurm import Slurm, free_port
from torch_rig import HERE, ROOT, TorchNet

N = 2
PIP_S = 300


def documents_script():
    """Return the script from doc/pytorch.md."""
    return next(b.text for b in markdown.of_file(os.path.join(
        ROOT, "doc", "pytorch.md")) if markdown.file_of(b) == "hvd_train.py")


def test_quickstart():
    """The quickstart builds the library that Python loads."""
    with open(os.path.join(ROOT, "apps", "quickstart"), encoding="utf-8") as f:
        targets = re.search(r"ninja -C build (.*?) 2>", f.read())[1].split()
    p = subprocess.run(["ninja", "-C", rig.BUILD, "-t", "query", *targets],
                       capture_output=True, text=True, check=False)
    for wanted in ("apps/sumwire", "libsumwire.so"):
        check(wanted in p.stdout, f"{wanted} is not in {p.stdout}{p.stderr}")


def run_elsewhere(folder, path):
    """Run the document's script by sumwire run, from a folder outside the
    checkout."""
    script = os.path.join(folder, "train.py")
    with open(script, "w", encoding="utf-8") as f:
        f.write(documents_script() + "import sumwire\nprint(sumwire.__file__)\n")
    p = rig.Process("run", folder, [
        "env", "-C", folder, f"PYTHONPATH={path}", "OMP_NUM_THREADS=1",
        "PYTHONDONTWRITEBYTECODE=1", rig.sumwire(), "run", "-np", str(N),
        torch_rig.python(), "train.py"])
    try:
        p.wait_ok()
    finally:
        print(p.out() + p.log())
        p.destroy()
    losses = dict(re.findall(r"^\[\d\] (\d) ([\d.e-]+)$", p.out(), re.M))
    check(sorted(losses) == ["0", "1"] and losses["0"] == losses["1"],
          f"losses by rank: {losses}")
    check(p.out().count(f"{path}/sumwire/__init__.py") == N,
          f"the package is not that of {path}")


def test_documents_script():
    with tempfile.TemporaryDirectory() as folder:
        run_elsewhere(folder, os.path.join(ROOT, "apps", "torch"))


def library_found(path, **env):
    """Return where a package at @path finds libsumwire, without sumwire run."""
    p = subprocess.run(
        [torch_rig.python(), "-c", "from sumwire import library; "
         "print(library.load()._name)"], capture_output=True, text=True,
        check=False, timeout=PIP_S, env={"PYTHONPATH": path, **env})
    return p.stdout + p.stderr


def test_package_alone():
    """A copy of the package finds the library where sumwire run says, or next
    to the command in PATH."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "site")
        shutil.copytree(os.path.join(ROOT, "apps", "torch", "sumwire"),
                        os.path.join(path, "sumwire"))
        run_elsewhere(folder, path)
        for name, source in (("bin/sumwire", "apps/sumwire"), (
                "lib/x86/libsumwire.so.1", "pmd/client/libsumwire.so")):
            os.makedirs(os.path.join(folder, os.path.dirname(name)))
            shutil.copy(rig.program(source), os.path.join(folder, name))
        found = library_found(path, PATH=os.path.join(folder, "bin"))
        check(found == os.path.join(folder, "lib/x86/libsumwire.so.1\n"),
              found)
        found = library_found(path, PATH="/nowhere")
        check("ImportError" in found and "SUMWIRE_LIBRARY" in found, found)


def test_local_ranks_of_run():
    """The local rank counts on the machine, whichever ranks share an agent."""
    for n, local in rig.layouts((N, 1), (4, 2)):
        with tempfile.TemporaryDirectory() as folder:
            p = rig.Process("run", folder, [
                "env", "PYTHONPATH=" + os.path.join(ROOT, "apps", "torch"),
                "PYTHONDONTWRITEBYTECODE=1", "OMP_NUM_THREADS=1",
                "SUMWIRE_LIBRARY=" + rig.program("pmd/client/libsumwire.so"),
                rig.sumwire(), "run", "-np", str(n), "--local-ranks",
                str(local), "--", "sh", "-c", 'TEST_RANK=$RANK exec "$@"',
                "sh", torch_rig.python(),
                os.path.join(HERE, "cases_launch.py"), str(n)])
            try:
                p.wait_ok()
            finally:
                print(p.out() + p.log())
                p.destroy()
            for rank in range(n):
                check(f"rank {rank} of {n} is right\n" in p.out(),
                      f"{rank} in {p.out()}")


def ranks_of(launcher, *all_of_them):
    """Run local ranks of one agent; then one rank at each of two agents."""
    for local in all_of_them or ((N,), (1,) * N):
        with TorchNet(len(local), local=local) as net:
            net.start_all()
            agent = "0" if len(local) == 1 else "$R"
            p = launch(net, launcher, "ranks", "\n".join([
                f"export SUMWIRE_AGENT=./agent{agent}.sock TEST_RANK=$R",
                "export SUMWIRE_LIBRARY=" + rig.program(
                    "pmd/client/libsumwire.so"),
                "export PYTHONPATH=" + os.path.join(ROOT, "apps", "torch"),
                "export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1",
                f"exec {torch_rig.python()} "
                f"{os.path.join(HERE, 'cases_launch.py')} {N}"]))
            p.wait_ok()
            for rank in range(N):
                check(f"rank {rank} of {N} is right\n" in p.out(),
                      f"{rank} in {p.out()}")


@rig.is_long
def test_mpirun():
    ranks_of(Mpirun())


def test_slurm():
    with tempfile.TemporaryDirectory(prefix="sumwire-torch-") as folder, \
            Slurm(folder) as slurm:
        ranks_of(Srun(slurm, "none", "SLURM_PROCID"),
                 *rig.layouts((1,) * N, (N,)))


def test_torchrun():
    """Ranks take torchrun's variables, all at one agent."""
    with tempfile.TemporaryDirectory() as logs, \
            TorchNet(1, local=(N,)) as net:
        net.start_all()
        pairs = net.environment(0)
        for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "TEST_STORE",
                     "SUMWIRE_LAUNCHER"):
            del pairs[name]
        p = net.run("torchrun", "/usr/bin/env", "-u", "SUMWIRE_LAUNCHER",
                    *[f"{k}={v}" for k, v in pairs.items()],
                    torch_rig.python(), "-m", "torch.distributed.run",
                    # --standalone would have to resolve the host's name.
                    "--nnodes=1", f"--master_port={free_port()}",
                    "--nproc_per_node", str(N),
                    # On Python 3.11, PyTorch 1.13 requires these options.
                    "--redirects=1", "--tee=1", "--log_dir", logs,
                    os.path.join(HERE, "cases_ops.py"), "ranks", "sums")
        p.wait_ok()
        check(p.out().count("ok ranks") == N and p.out().count("ok sums") == N,
              "two ranks ran")


if __name__ == "__main__":
    torch_rig.main(dict(globals()))
