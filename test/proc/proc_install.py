# proc_install.py - results of meson install: command, library, headers, units
# SPDX-License-Identifier: BSD-3-Clause
import glob
import os
import re
import shutil
import subprocess
import tempfile

import rig
from rig import Skip, check

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                        "../../apps/examples")
PROGRAM = r"""
#include <stdio.h>
#include <string.h>
#include <sumwire/autotune.h>
#include <sumwire/coll.h>
#include <sumwire/device.h>

int main(void)
{
    struct sw_tensor_desc d = SW_TENSOR_DESC_INIT;
    struct sw_coll_args a = SW_COLL_ARGS_INIT;
    struct sw_device_settings v = SW_DEVICE_SETTINGS_INIT;
    struct sw_device_call k = SW_DEVICE_CALL_INIT;
    struct sw_settings s;
    struct sw_client *c = NULL;

    sw_settings_init(&s);
    s.agent = "/nowhere/agent.sock";
    s.open_timeout_s = 0;
    if (sw_open(&s, &c) != SW_ECLOSED || c)
        return 1;
    puts(sw_last_error(NULL));
    return d.size != sizeof(d) || a.size != sizeof(a) ||
           v.size != sizeof(v) || k.size != sizeof(k) ||
           sw_version() != SW_VERSION_NUMBER ||
           strcmp(sw_error_name(SW_ECLOSED), "SW_ECLOSED") != 0 ||
           sw_dtype_bytes(SW_BF16) != 2;
}
"""


def tool(name):
    path = shutil.which(name)
    if not path:
        raise Skip(f"{name} is not installed")
    return path


def run(*args, **env):
    p = subprocess.run(args, env=dict(os.environ, **env), timeout=120,
                       capture_output=True, text=True, check=False)
    check(p.returncode == 0, f"{' '.join(args)}: {p.stdout}{p.stderr}")
    return p.stdout


class Installed:
    """An installation in a folder, as for building a package."""

    def __enter__(self):
        self.root = tempfile.mkdtemp(prefix="sumwire-proc-", dir="/tmp")
        run(tool("meson"), "install", "-C", rig.BUILD, "--no-rebuild",
            "--quiet", "--destdir", self.root)
        return self

    def __exit__(self, kind, value, trace):
        shutil.rmtree(self.root)

    def one(self, pattern):
        found = glob.glob(f"{self.root}/**/{pattern}", recursive=True)
        check(len(found) == 1, f"{pattern}: {found}")
        return found[0]

    def pkg_config(self, *args):
        pc = os.path.dirname(self.one("sumwire.pc"))
        return run(tool("pkg-config"), *args, "sumwire", PKG_CONFIG_PATH=pc,
                   PKG_CONFIG_SYSROOT_DIR=self.root).split()


def test_library():
    """Build a program with pkg-config alone, as C and as C++, and run it."""
    with Installed() as it:
        flags = it.pkg_config("--cflags", "--libs")
        libdir = os.path.dirname(it.one("libsumwire.so"))
        for compiler, suffix, options in (("gcc", "c", ["-std=c17"]),
                                          ("g++", "cc", ["-std=c++17"])):
            if suffix == "cc" and not shutil.which(compiler):
                print("  g++ is not installed: C only")
                continue
            source, program = f"{it.root}/p.{suffix}", f"{it.root}/p"
            with open(source, "w", encoding="ascii") as f:
                f.write(PROGRAM)
            run(tool(compiler), *options, "-Wall", "-Wextra", "-Werror",
                "-pedantic", source, "-o", program, *flags)
            out = run(program, LD_LIBRARY_PATH=libdir,
                      SUMWIRE_LAUNCHER="none")
            check("no agent listens at /nowhere/agent.sock" in out, out)


def test_examples():
    """The examples need only installed files, and are plain C17."""
    with Installed() as it:
        for name in "all_reduce", "push_pull":
            run(tool("gcc"), "-std=c17", "-Wall", "-Wextra", "-Werror",
                "-pedantic", f"{EXAMPLES}/{name}.c", "-o", f"{it.root}/p",
                *it.pkg_config("--cflags", "--libs"))


def test_archive():
    """Link the archive into a program that has functions with the names of the
    library's internal ones."""
    own = "int sw_edge_send(void);\nint sw_edge_send(void)\n{ return 1; }\n"
    with Installed() as it:
        source, program = f"{it.root}/p.c", f"{it.root}/p"
        with open(source, "w", encoding="ascii") as f:
            f.write(PROGRAM + own)
        flags = it.pkg_config("--static", "--cflags", "--libs")
        run(tool("gcc"), source, "-o", program, *(
            it.one("libsumwire.a") if f == "-lsumwire" else f for f in flags))
        out = run(program, SUMWIRE_LAUNCHER="none")
        check("no agent listens at /nowhere/agent.sock" in out, out)


def names_of(headers):
    """Return the functions of the interface: SW_API, and the two for errors."""
    found = {"sw_error_text", "sw_error_name"}
    for header in headers:
        with open(header, encoding="utf-8") as f:
            found |= set(re.findall(r"^SW_API [^;(]*\b(sw_\w+)\(", f.read(),
                                    re.M))
    return found


def test_soname_and_symbols():
    """Programs can link to the interface only, with one version."""
    with Installed() as it:
        so = it.one("libsumwire.so")
        dynamic = run(tool("readelf"), "-d", so)
        soname = re.search(r"SONAME.*\[(.*)\]", dynamic)
        check(soname and soname[1] == "libsumwire.so.1", f"soname: {dynamic}")
        check(os.path.exists(os.path.join(os.path.dirname(so), soname[1])),
              f"there is no {soname[1]}")
        check("rte_" not in dynamic, "DPDK is needed")
        public = names_of(glob.glob(os.path.dirname(it.one("sumwire.h")) +
                                    "/*.h"))
        symbols = set(re.findall(r"[0-9a-f] \w (\S+)", run(
            tool("nm"), "-D", "--defined-only", so)))
        check(symbols == {"SUMWIRE_1"} | {s + "@@SUMWIRE_1" for s in public},
              f"not in libsumwire.map, or not in a header: "
              f"{symbols ^ {s + '@@SUMWIRE_1' for s in public}}")
        symbols = set(re.findall(r"[0-9a-f] \w (\S+)", run(
            tool("nm"), "-g", "--defined-only", it.one("libsumwire.a"))))
        check(symbols == public, f"of the archive: {symbols ^ public}")


def test_command_and_files():
    with Installed() as it:
        sumwire = it.one("bin/sumwire")
        check(re.fullmatch(r"sumwire [\d.]+\n", run(sumwire, "--version")),
              "version")
        for ini in glob.glob(f"{it.root}/**/doc/sumwire/*.ini",
                             recursive=True):
            run(sumwire, "conf", "--check", ini, SUMWIRE_LAUNCHER="none")
        said = run(sumwire, "run", "-np", "1", "--no-tags", "sh", "-c",
                   "echo $SUMWIRE_LIBRARY")
        check(said and os.path.samefile(said.strip(),
                                        it.one("libsumwire.so.1")), said)
        for name in "sumwire", "sumwire-lab":
            check_page(it, name)
        with open(it.one("man5/sumwire.conf.5"), encoding="ascii") as f:
            check(f.read().count(".TP") > 50, "sumwire.conf.5 has no options")
        with open(it.one("man3/sumwire.3"), encoding="ascii") as f:
            check(f.read().count(".SS sw_") > 50, "sumwire.3 has no functions")
        for name in ("operations", "configuration", "nics", "pytorch", "lab",
                     "arithmetic"):
            it.one(f"doc/sumwire/{name}.md")


def check_page(it, name):
    """Check that its manual page has all commands of its help."""
    with open(it.one(name + ".1*"), encoding="ascii") as f:
        text = f.read()
    check("@" not in text.replace("sumwire-agent@", ""), "not configured")
    said = run(it.one("bin/" + name), "--help")
    commands = re.findall(r"^  ([a-z]+)  ", said, re.M)
    missing = [c for c in commands if not re.search(
        rf"^\.B {c}\b", text, re.M)]
    check(commands and not missing, f"not in {name}.1: {missing}")


def test_units():
    """systemd-analyze finds no errors in the units."""
    analyze = tool("systemd-analyze")
    with Installed() as it:
        units = [it.one("sumwire-server.service"),
                 it.one("sumwire-agent@.service")]
        for unit in units:
            with open(unit, encoding="ascii") as f:
                text = f.read()
            program = re.search(r"^ExecStart=(\S+)", text, re.M)[1]
            check(os.access(it.root + program, os.X_OK),
                  f"{program} is not installed")
            # verify looks for the program at its final path.
            with open(unit, "w", encoding="ascii") as f:
                f.write(text.replace(program, it.root + program))
        out = subprocess.run([analyze, "verify", "--man=no", *units],
                             capture_output=True, text=True, timeout=120,
                             check=False)
        ours = [line for line in out.stderr.splitlines() if "sumwire" in line]
        check(not ours, "\n".join(ours))


if __name__ == "__main__":
    rig.main(dict(globals()))
