# torch_wheel.py - the wheel as users have it, in a clean virtual environment
# SPDX-License-Identifier: BSD-3-Clause
"""apps/torch/wheel --system builds the wheel; $SUMWIRE_TEST_WHEEL names another
one, such as a release's. Programs get nothing of the checkout or of the system:
PATH is the environment's bin."""
import contextlib
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

import torch_rig
import torch_site
import documents
import rig
from rig import Failure, Skip, check
from documents import markdown
from slurm import free_port
from torch_rig import ROOT

NOBODY = 65534
LIMIT_S = 240
BUILD_S = 1500  # at a low priority
BENCH = ("bench", "--loopback", "--colocated", "--min", "4KiB", "--max", "4KiB",
         "--iters", "10", "--port")
QUICK = "%s/sumwire/lib/quick.abi3.so"


def run(*args, limit_s=LIMIT_S, **options):
    """Run a program that must end well; return stdout and stderr."""
    p = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       text=True, check=False, timeout=limit_s, **options)
    check(p.returncode == 0, f"{' '.join(args)}: {p.returncode}\n{p.stdout}")
    return p.stdout


class Venv:
    """A folder that every user may read: the wheel, and an environment with it."""

    def __init__(self):
        self.root = tempfile.mkdtemp(prefix="sumwire-wheel-", dir="/tmp")
        os.chmod(self.root, 0o755)
        self.wheel = os.environ.get("SUMWIRE_TEST_WHEEL") or run(
            os.path.join(ROOT, "apps", "torch", "wheel"), "--system", self.root,
            limit_s=BUILD_S).split()[-1]
        run(torch_rig.python(), "-m", "venv", self.path("v"))
        self.before = self.files()
        self.install()

    def path(self, *names):
        return os.path.join(self.root, *names)

    def bin(self, name):
        return self.path("v", "bin", name)

    def install(self):
        run(self.bin("pip"), "install", "--quiet", "--no-index", self.wheel)

    def files(self):
        return {f for f in glob.glob(self.path("v", "**"), recursive=True)
                if "__pycache__" not in f}

    @property
    def site(self):
        [site] = glob.glob(self.path("v", "lib", "python*", "site-packages"))
        return site

    def run(self, *args, user=None, launcher=()):
        """Run a program of the environment in another folder; it must leave
        nothing."""
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            os.chmod(folder, 0o777)
            out = run(*launcher, self.bin(args[0]), *args[1:], cwd=folder,
                      user=user, env={
                          "PATH": self.path("v", "bin") + (
                              ":/usr/bin:/bin:/sbin" if launcher else ""),
                          "TMPDIR": folder, "HOME": "/nowhere",
                          "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"})
            rig.wait_until(lambda: not glob.glob(folder + "/sumwire*"),
                           rig.STOP_S, f"end of {os.listdir(folder)}")
        return out


def test_contents():
    """The wheel has the checkout's Python, licences, and machine code that
    needs only glibc."""
    check(re.search(r"-py3-none-manylinux_2_\d\d_x86_64\.whl$", V.wheel),
          V.wheel)
    with zipfile.ZipFile(V.wheel) as z:
        names = z.namelist()
    check(os.path.getsize(V.wheel) < 8e6, "it is larger than 8 MB")
    for folder in "", "torch", "distributed":
        for path in glob.glob(os.path.join(
                ROOT, "apps", "torch", "sumwire", folder, "*.py")):
            name = os.path.relpath(path, os.path.join(ROOT, "apps", "torch"))
            check(name in names, f"{name} is not in it")
    licences = " ".join(n for n in names if "LICENSE" in n)
    for part in ("licenses/LICENSE ", ".libdpdk", ".LGPL", ".libnuma",
                 ".libmnl", ".libiniparser", ".libssl", ".Apache"):
        check(part in licences + " ", f"no licence of {part} in {licences}")
    natives = [path for part in ("sumwire/bin", "sumwire/lib", "sumwire.libs")
               for path in glob.glob(f"{V.site}/{part}/*")]
    # libcrypto is linked into the command, or a copy of the system's is next to
    # it.
    n_crypto = sum("libcrypto" in path for path in natives)
    check(len(natives) == 6 + n_crypto, natives)
    for path in natives:
        out = run("ldd", path)
        lost = [line for line in out.splitlines() if "/" in line and
                "/sumwire.libs/" not in line and not re.search(
                    r"(libc|libm|libdl|libpthread|ld-linux-x86-64)\.so", line)]
        check(not lost and "not found" not in out, f"{path}: {out}")


def test_quick():
    """Python finds the module, which needs no symbol of a newer Python."""
    V.run("python", "-c", "from importlib import machinery, util; "
          f"loader = machinery.ExtensionFileLoader('quick', {QUICK!r} % "
          f"{V.site!r}); spec = util.spec_from_file_location('quick', "
          "loader.path, loader=loader); "
          "loader.exec_module(util.module_from_spec(spec))")


def test_command():
    version = run(os.path.join(rig.BUILD, "apps", "sumwire"), "--version")
    check(V.run("sumwire", "--version") == version, "another version")
    check(V.run("python", "-m", "sumwire", "--version") == version, "-m")
    check(V.run("python", "-c", "import sumwire; "
                "print('sumwire', sumwire.__version__)") == version, "Python's")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(os.path.join(ROOT, "apps/torch/sumwire"),
                        os.path.join(folder, "sumwire"))
        p = subprocess.run([V.bin("sumwire"), "--version"], timeout=LIMIT_S,
                           env={"PYTHONPATH": folder, "PATH": V.path("v/bin")},
                           check=False, capture_output=True, text=True)
    check(p.returncode == 1 and "has no command" in p.stderr, p.stderr)


def test_library():
    """The package's library also serves processes of sumwire run."""
    code = ("from sumwire import library; lib = library.load(); "
            "print(lib.sw_version() > 0, lib._name)")
    expected = f"True {V.site}/sumwire/lib/libsumwire.so.1\n"
    out = V.run("python", "-c", code)
    check(out == expected, out)
    out = V.run("sumwire", "run", "-np", "1", "--no-tags", "/bin/sh", "-c",
                "echo True $SUMWIRE_LIBRARY")
    check(os.path.samefile(out.split()[1], expected.split()[1]), out)


def test_bench():
    for port in "udp", "memif":
        check("f32" in V.run("sumwire", *BENCH, port), port)


def test_interfaces():
    veth = [os.path.join(ROOT, "test", "veth"), "1500"]
    if subprocess.run([*veth, "true"], check=False).returncode:
        raise Skip("no network namespaces")
    check("f32" in V.run("sumwire", *BENCH, "af_packet", launcher=veth), "")
    try:
        V.run("sumwire", *BENCH, "af_xdp", launcher=veth)
    except Failure as e:
        check("no such driver here" in str(e), e)
    else:
        raise Failure("it has drivers that nobody has put in")


def works(*args):
    """Check that it works for every user."""
    try:
        return subprocess.run(args, user=NOBODY, check=False, cwd="/",
                              capture_output=True).returncode == 0
    except OSError:
        return False


def test_read_only():
    """Another user owns the folder; this user cannot write there."""
    if os.geteuid() != 0:
        raise Skip("only root can be another user")
    if not works(V.bin("python"), "-c", "pass"):
        raise Skip(f"others may not read {torch_rig.python()}")
    for at in V.root, V.site:
        check(not os.stat(at).st_mode & 0o022, f"{at} can be written")
    V.run("sumwire", *BENCH, "udp", user=NOBODY)
    if not rig.IS_QUICK and works("ls", TORCH):
        torchrun(user=NOBODY)


def test_old_cpu():
    """Without AVX, kernels are scalar; without SSE4.2, an error explains it."""
    qemu = shutil.which("qemu-x86_64")
    if not qemu:
        raise Skip("qemu-x86_64 is not installed (package qemu-user)")
    command = V.site + "/sumwire/bin/sumwire"
    out = run(qemu, "-cpu", "Nehalem", command, "--version")
    check(out.startswith("sumwire "), out)
    out = run(qemu, "-cpu", "Nehalem", rig.lab(), "engine", "--members", "2",
              "--tensors", "2")
    check("kernels" in out, out)
    p = subprocess.run([qemu, "-cpu", "core2duo", command, "--version"],
                       check=False, capture_output=True, text=True)
    check(p.returncode == 1 and "SSE4.2" in p.stderr, p.stderr)


def test_old_glibc():
    """pip refuses the wheel by its tag."""
    with tempfile.TemporaryDirectory() as folder:
        p = subprocess.run(
            [V.bin("pip"), "install", "--target", folder, "--no-index",
             "--only-binary=:all:", "--platform", "manylinux_2_27_x86_64",
             V.wheel], check=False, capture_output=True, text=True)
    check(p.returncode == 1 and "not a supported wheel" in p.stderr, p.stderr)


def torchrun(**who):
    """Run the README's example from a folder of its own."""
    script, _ = documents.script_of(markdown.of_file(
        os.path.join(ROOT, "README.md")), "torch")
    with open(V.site + "/torch.pth", "w", encoding="utf-8") as f:
        f.write(TORCH)
    script = re.sub(r"\btorchrun", "python -m torch.distributed.run "
                    f"--master-port={free_port()}", script)
    out = V.run("python", "-c", "import subprocess, sys; sys.exit("
                "subprocess.run(['/bin/bash', '-e', '-c', sys.argv[1]]).returncode)",
                script, **who)
    check(out.count("tensor([[1.5000, 1.5000, 1.5000, 1.5000]])") == 2, out)


def test_torchrun():
    torchrun()


def pip_install(folder, built, **env):
    """Run `pip install .` in the checkout, into an environment of its own.
    built: the folder with an earlier build."""
    run(torch_rig.python(), "-m", "venv", os.path.join(folder, "v"))
    return subprocess.run(
        [os.path.join(folder, "v/bin/pip"), "install",
         f"--config-settings=build-dir={built}", "."], cwd=ROOT,
        env={**os.environ, **env}, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, check=False, timeout=BUILD_S)


@rig.is_long
def test_pip_install():
    with tempfile.TemporaryDirectory() as folder:
        p = pip_install(folder, os.path.join(ROOT, "build/wheel/system/meson"))
        check(p.returncode == 0, p.stdout)
        run(os.path.join(folder, "v/bin/sumwire"), *BENCH, "memif", cwd="/")
        out = run(os.path.join(folder, "v/bin/python"), "-c", "from sumwire "
                  "import library; print(library.load()._name)", cwd="/")
        check(out.startswith(folder + "/v/"), out)


def check_no_dpdk(p):
    check(p.returncode and "apt-get install libdpdk-dev libmnl-dev" in p.stdout,
          p.stdout)


@rig.is_long
def test_pip_install_without_dpdk():
    with tempfile.TemporaryDirectory() as folder:
        check_no_dpdk(pip_install(folder, folder + "/build", PKG_CONFIG_LIBDIR=folder))


def test_without_dpdk():
    """Run what pip runs, without the minute for its tools."""
    with tempfile.TemporaryDirectory() as folder:
        check_no_dpdk(subprocess.run(
            ["meson", "setup", "-Dwheel=true", folder], cwd=ROOT,
            env={**os.environ, "PKG_CONFIG_LIBDIR": folder}, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, check=False, timeout=LIMIT_S))


def test_uninstall():
    """An uninstall leaves nothing behind."""
    run(V.bin("pip"), "uninstall", "--quiet", "--yes", "sumwire")
    with contextlib.suppress(FileNotFoundError):
        os.remove(V.site + "/torch.pth")
    left = V.files() - V.before
    check(not left, f"left: {left}")
    V.install()


if __name__ == "__main__":
    try:
        TORCH = torch_site.where()
        V = Venv()
    except Failure as e:
        sys.exit(str(e))
    try:
        rig.main(dict(globals()))
    finally:
        shutil.rmtree(V.root)
