# proc_conf.py - errors in configuration files: place, cause and suggestion
# SPDX-License-Identifier: BSD-3-Clause
import os
import re
import shutil

import rig
from rig import Net, check

# Name of the case: (text to replace, its replacement, the message); {line}
# stands for the file and the line of the replacement.
ERRORS = {
    "typo_in_a_key": ("agents = 2", "agnets = 2", r"{line}.*agnets.*agents"),
    "typo_in_a_section": ("[stats]", "[stast]", r"{line}.*stast.*stats"),
    "duplicate_key": ("agent = 0", "agent = 0\nagent = 1", r"{next}.*agent"),
    "duplicate_section": ("[stats]", "[job]\nagent = 0\n[stats]",
                          r"{line}.*job"),
    "number_with_a_unit": ("agents = 2", "agents = 2s", r"{line}.*2s"),
    "time_without_a_unit": ("agent = 0", "dead_after = 10",
                            r"{line}.*dead_after.*10"),
    "time_with_a_bad_unit": ("agent = 0", "dead_after = 10sec",
                             r"{line}.*10sec"),
    "out_of_range": ("agents = 2", "agents = 65", r"{line}.*65.*64"),
    "octal_number": ("agents = 2", "agents = 02", r"{line}.*02"),
    "not_one_of_the_choices": ("type = memif", "type = mimef",
                               r"{line}.*mimef.*memif"),
    "not_an_address": ("ip = 10.77.0.1/30", "ip = 10.77.0.256/30",
                       r"{line}.*10\.77\.0\.256"),
    "no_value": ("role = server", "role =", r"{line}.*role"),
    "no_equals_sign": ("agent = 0", "agent", r"{line}.*agent"),
    "key_before_all_sections": ("[node]", "agents = 2\n[node]",
                                r"{line}.*"),
    "relative_path": ("socket = /tmp", "socket = tmp", r"{line}.*socket"),
}


def run_server(path, *patterns):
    """Check that sumwire server refuses the file; return its output."""
    with Net(agents=1) as net:
        p = net.run("server", rig.sumwire(), "server", "--config",
                    path or net.path("a.ini"))
        p.wait_error(*patterns, code=1)
        return p.log()


def run_case(name):
    old, new, pattern = ERRORS[name]
    with Net() as net:
        path = net.write_ini("a")
        with open(path, encoding="utf-8") as f:
            text = f.read()
        at = text.index(old)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text[:at] + new + text[at + len(old):])
        line = text.count("\n", 0, at) + 1
        pattern = pattern.format(line=f"{re.escape(path)}:{line}:",
                                 next=f"{re.escape(path)}:{line + 1}:")
        for role in ("server", "agent"):
            p = net.run(role, rig.sumwire(), role, "--config", path)
            p.wait_error(pattern, code=1)


def make_test(name):
    return lambda: run_case(name)


for case in ERRORS:
    globals()[f"test_{case}"] = make_test(case)


def run_without(name, section, *patterns):
    """Check the refusal of the daemon's file without a section."""
    with Net(agents=1) as net:
        role = net.ini[name]["node"]["role"]
        del net.ini[name][section]
        p = net.run(name, rig.sumwire(), role, "--config", net.write_ini(name))
        p.wait_error(re.escape(net.path(name + ".ini")), *patterns, code=1)


def test_missing_node_section():
    run_without("a", "node", r"role")


def test_missing_port_section():
    run_without("a", "port link0", r"port")


def test_missing_server_section():
    run_without("agent0", "server a", r"server")


def test_server_over_a_port_that_is_not_there():
    with Net(agents=1) as net:
        net.ini["agent0"]["server a"]["port"] = "link7"
        net.launch("agent0")
        net.daemons.pop("agent0").wait_error(
            r"agent0\.ini:\d+: .*link7", code=1)


def test_rank_beyond_agents():
    with Net(agents=1) as net:
        net.ini["agent0"]["job"]["agent"] = 1
        net.launch("agent0")
        net.daemons.pop("agent0").wait_error(r"agent0\.ini:\d+: \[job\] agent: 1 is too large", code=1)


def test_other_role():
    with Net(agents=1) as net:
        p = net.run("agent", rig.sumwire(), "agent", "--config",
                    net.write_ini("a"))
        p.wait_error(r"a\.ini: \[node\] role is not agent", code=1)


def test_file_not_there():
    run_server(None, r"a\.ini.*No such file or directory")


def test_folder_instead_of_a_file():
    run_server("/tmp", r"/tmp.*directory")


def test_no_file_named():
    with Net(agents=1) as net:
        p = net.run("server", rig.sumwire(), "server")
        p.wait_error(r"--config FILE is missing", code=2)


def test_too_large_a_file():
    run_server(rig.sumwire(), r"sumwire: is larger than \d+ KiB")


def test_level_that_is_not_there():
    with Net(agents=1) as net:
        p = net.run("server", rig.sumwire(), "server", "--config",
                    net.write_ini("a"), "--level", "sse2")
        p.wait_error(r'level "sse2" is not available; this CPU runs auto, scalar',
                     code=1)


def test_cpu_without_sse42():
    qemu = shutil.which("qemu-x86_64")
    if not qemu:
        print("no qemu-x86_64: not tried")
        return
    with Net(agents=1) as net:
        p = net.run("old", qemu, "-cpu", "Opteron_G1", rig.sumwire(),
                    "--version")
        p.wait_error(r"this CPU has no SSE4.2, which DPDK needs", code=1)


def test_binary_file():
    with Net(agents=1) as net:
        path = net.write_ini("a")
        with open(path, "wb") as f:
            f.write(bytes(range(256)) * 3)
        p = net.run("server", rig.sumwire(), "server", "--config", path)
        p.wait_error(r"a\.ini:\d+: ", code=1)


def test_check_finds_the_same():
    with Net(agents=1) as net:
        net.ini["a"]["job"]["agnets"] = 1
        p = net.run("conf", rig.sumwire(), "conf", "--check",
                    net.write_ini("a"))
        p.wait_error(r"a\.ini:\d+: .*agnets.*agents", code=1)
        del net.ini["a"]["job"]["agnets"]
        good = net.run("good", rig.sumwire(), "conf", "--check",
                       net.write_ini("a"))
        good.wait_ok()
        check(not good.out() or "error" not in good.out(), good.out())


def into_full_disk(net, *args):
    """Check that a command fails if it could not write its result."""
    p = net.run("full", "sh", "-c", 'exec "$@" >/dev/full', "sh", *args)
    p.wait_error("cannot write to stdout", code=1)


def test_full_disk():
    lab = rig.program("apps/sumwire-lab")
    with Net(agents=1) as net:
        net.start_all()
        into_full_disk(net, rig.sumwire(), "--version")
        into_full_disk(net, rig.sumwire(), "run", "--help")
        into_full_disk(net, rig.sumwire(), "conf", "--check",
                       net.path("a.ini"))
        for how in [], ["--json"]:
            into_full_disk(net, rig.sumwire(), "stats", *how,
                           net.stats_socket("a"))
            into_full_disk(net, rig.sumwire(), "bench", *how, "--agent",
                           net.socket("agent0"), "--max", "64KiB")
            into_full_disk(net, lab, "plan", *how)


def test_counters_of_another_user():
    """The error names the permission, not a missing listener."""
    if os.geteuid():
        raise rig.Skip("root alone can be another user")
    with Net(agents=1) as net:
        net.start("a")
        os.chmod(net.folder, 0o755)
        p = net.run("stats", "setpriv", "--reuid=65534", "--clear-groups",
                    rig.sumwire(), "stats", net.stats_socket("a"))
        p.wait_error("permission denied: only the user that runs the daemon",
                     code=1)


if __name__ == "__main__":
    rig.main(dict(globals()))
