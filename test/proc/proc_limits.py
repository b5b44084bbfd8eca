# proc_limits.py - daemons limited to few open files or little memory
# SPDX-License-Identifier: BSD-3-Clause
import re

import rig
from rig import Net, check


def launch(net, name, limit, which=""):
    """Launch as the rig does, under ulimit -n; which: S, H, or both."""
    role = net.ini[name]["node"]["role"]
    p = net.run(name, "bash", "-c", f"ulimit -{which}n {limit} && exec \"$@\"",
                "-", rig.sumwire(), role, "--config", net.write_ini(name))
    net.daemons[name] = p
    return p


def needed(net, name, limit):
    """Check for a clean refusal; return the limit that the error asks for."""
    p = launch(net, name, limit)
    del net.daemons[name]
    p.wait_error(rf"error {limit} open files are allowed, .* needs at least "
                 r"\d+: raise the limit \(ulimit -n", code=1)
    return int(re.search(r"at least (\d+)", p.log())[1])


def test_too_few():
    """With so few, DPDK does not start."""
    with Net(agents=1) as net:
        for name in "a", "agent0":
            for limit in 10, 20:
                check(needed(net, name, limit) > limit, "why, then?")


def test_as_many_as_needed():
    """The memory that the error asks for is enough."""
    with Net(agents=1) as net:
        for name in "a", "agent0":
            launch(net, name, needed(net, name, 10)).await_text(r"is ready")
        rig.run_steps(net, *rig.SMALL)


def test_soft_limit():
    """The daemon raises the soft limit to the hard limit."""
    with Net(agents=1) as net:
        for name in "a", "agent0":
            p = launch(net, name, 20, "S")
            p.await_text(r"is ready")
            with open(f"/proc/{p.pid}/limits", encoding="ascii") as f:
                limits = f.read()
            soft = int(re.search(r"Max open files +(\d+)", limits)[1])
            check(soft > 20, limits)
        rig.run_steps(net, *rig.SMALL)


def test_little_memory():
    """The error at the start names the limit and its value."""
    limits = {"--fsize=1000000": "RLIMIT_FSIZE is 1000000 bytes",
              "--as=100000000": "RLIMIT_AS is 100000000 bytes"}
    with Net(agents=1) as net:
        for name in "a", "agent0":
            role = net.ini[name]["node"]["role"]
            for option, text in limits.items():
                p = net.run(name, "prlimit", option, rig.sumwire(), role,
                            "--config", net.write_ini(name))
                p.wait_error(rf"error .*{text}", code=1)


if __name__ == "__main__":
    rig.main(dict(globals()))
