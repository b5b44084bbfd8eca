# headers.py - do our declarations of the CUDA runtime agree with NVIDIA's?
# SPDX-License-Identifier: BSD-3-Clause
"""Compiles headers.c against the headers of runtime 12 and 13.  It looks for them
in the folders of $SUMWIRE_CUDA_INCLUDE, then in the Python that runs the tests of
torch, then in PyPI's packages, which pip downloads (6 MB).

    headers.py compile headers.py --find print the folders; exit 1 if not found
"""
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "../..")
PACKAGES = ("nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12")
PIP_S = 40


def below(folder):
    """Return the folders with headers that a package has installed."""
    return sorted(os.path.dirname(p) for p in glob.glob(
        os.path.join(glob.escape(folder), "nvidia/*/include/cuda_runtime_api.h")))


def installed():
    python = os.environ.get("SUMWIRE_TEST_PYTHON", "/usr/bin/python3")
    p = subprocess.run([python, "-c", "import site, sys\n"
                        "print(*site.getsitepackages(), sep='\\n')"],
                       capture_output=True, text=True, check=False)
    return [d for site in p.stdout.split() for d in below(site)]


def downloaded(folder):
    pips = [subprocess.Popen([sys.executable, "-m", "pip", "download", "-q",
                              "--no-deps", "--only-binary=:all:", "-d", folder,
                              package], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL) for package in PACKAGES]
    for pip in pips:  # in parallel: downloads mostly wait
        try:
            pip.wait(PIP_S)
        except subprocess.TimeoutExpired:
            pip.kill()
            pip.wait()
    found = []
    for wheel in glob.glob(os.path.join(folder, "*.whl")):
        with zipfile.ZipFile(wheel) as z:
            z.extractall(wheel + ".d")
        found += below(wheel + ".d")
    return found


def find(folder):
    named = os.environ.get("SUMWIRE_CUDA_INCLUDE")
    if named:
        return named.split(":")
    return installed() or downloaded(folder)


def main():
    folder = tempfile.mkdtemp(prefix="sumwire-headers-", dir="/tmp")
    try:
        found = find(folder)
        print(*found, sep="\n")
        if "--find" in sys.argv:
            return not found
        if not found:
            print("SKIP: no headers of the CUDA runtime")
            return 77
        for include in found:
            subprocess.run(["gcc", "-std=c17", "-Wall", "-Wextra", "-Werror",
                            "-fsyntax-only", "-I", ROOT, "-I", HERE, "-isystem", include,
                            os.path.join(HERE, "headers.c")], check=True)
            print(f"ok {include}")
        return 0
    finally:
        shutil.rmtree(folder, ignore_errors=True)


sys.exit(main())
