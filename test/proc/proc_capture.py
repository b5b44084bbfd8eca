# proc_capture.py - sumwire capture: frames outside the kernel, read by tshark
# SPDX-License-Identifier: BSD-3-Clause
"""memif joins the daemons, so only the daemons themselves can show their
frames."""
import collections
import os
import re
import shutil
import signal
import subprocess
import tempfile

import rig
from proc_ps import UNIQUE, named, unique
from proc_trace import begin
from proc_wireshark import BROKEN, tshark
from rig import Net, check

NOBODY = 65534
TENSORS = ("--tensor", "w:100000:f32", "--tensor", "v:3000:f16")
IN, OUT = "0x00000001", "0x00000002"


def capture(*args, code=0, text=True, program=None, **keys):
    p = subprocess.run([program or rig.sumwire(), "capture", *args], check=False,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       timeout=rig.RUN_S, text=text, **keys)
    check(p.returncode == code, f"capture {args}: {p}")
    return p


def fields(path, *names, query=""):
    """Return a tuple of these fields for each packet."""
    args = [arg for name in names for arg in ("-e", name)]
    return [tuple(line.split("\t"))
            for line in tshark(path, "-Y", query, "-T", "fields", *args)]


def frames(stats):
    """Return a daemon's numbers of frames, received and sent."""
    return stats["rx_frames"], stats["tx_frames"]


def dropped(name, said):
    """Return the number of a daemon's frames that found no place in the ring."""
    found = re.search(rf"^{unique(name)}, lcore 0: (\d+) more dropped", said, re.MULTILINE)
    return int(found.group(1)) if found else 0


def check_frames(net, path, before, said):
    """Check that the capture has every frame of every daemon, under its
    interface and with its direction."""
    bad = tshark(path, "-Y", BROKEN)
    check(not bad, f"{len(bad)} frames, such as {bad[:3]}")
    seen = collections.Counter()
    for interface, way, kind in fields(path, "frame.interface_name", "frame.packet_flags",
                                       "sumwire.type"):
        at = re.fullmatch(rf"{UNIQUE}\.(\w+) link\d lcore 0", interface)
        check(at and kind, f"{interface}: {way} {kind}")
        seen[at.group(1), way] += 1
    for name, was in before.items():
        want = [n - w for n, w in zip(frames(net.stats(name)), was)]
        got = [seen[name, IN], seen[name, OUT]]
        n = dropped(name, said)
        check(got == want or n and sum(got) + n == sum(want),
              f"{name}: {got} of {want} are captured, {n} dropped")
    return sum(seen.values())


def check_parts(net, folder):
    """Capture a part of the frames, by number, direction, length and job; over
    a pipe."""
    path = os.path.join(folder, "part")
    with open(path, "wb") as f:
        f.write(capture(unique("a"), "--count", "5", "--direction", "in", "--snaplen", "54",
                        text=False).stdout)
    got = fields(path, "frame.packet_flags", "frame.cap_len", "frame.encap_type")
    check(len(got) == 5 and {g[:2] for g in got} == {(IN, "82")}, f"{got}")
    capture(unique("agent0"), "--count", "20", "--job", UNIQUE, "--direction", "out", "-w", path)
    got = fields(path, "frame.packet_flags", query="sumwire.session != 0")
    check(len(got) == 20 and set(got) == {(OUT,)}, f"{got}")
    p = capture(unique("a"), "--job", "other", "--time", "300ms", "-w", path)
    check("\n0 frames" in p.stderr, f"{p}")
    p = subprocess.run(f"{rig.sumwire()} capture {unique('a')} | head -c 100000 | wc -c",
                       shell=True, check=True, stdout=subprocess.PIPE, timeout=rig.RUN_S)
    check(p.stdout.strip() == b"100000", f"{p}")  # capture ended when head did


def check_refused(net, folder):
    """Check a full disk, a wrong user, a second capture, and wrong command
    lines."""
    p = capture(unique("a"), "-w", "/dev/full", code=1)
    check("No space left" in p.stderr, f"{p}")
    for args, why in ((("--direction", "up"), "in, out or both"), (("--snaplen", "9"), "54"),
                      (("--job", "x" * 200), "too long")):
        check(why in capture(*args, "-w", "/dev/null", code=2).stderr, f"{args}")
    if os.geteuid() == 0:
        pid = str(net.daemons["a"].pid)  # the pid is unique; names may be another test's
        os.chmod(folder, 0o755)  # other users may be unable to reach the build folder
        p = capture(pid, "-w", "/dev/null", code=1, user=NOBODY, group=NOBODY,
                    extra_groups=[], program=shutil.copy(rig.sumwire(), folder))
        check("only its user and root may have it captured" in p.stderr, f"{p}")


def check_capture(steps, least):
    with named(Net(agents=2)) as net, tempfile.TemporaryDirectory() as folder:
        net.start_all()
        path = os.path.join(folder, "all.pcapng")
        before = {n: frames(net.stats(n)) for n in net.daemons}
        p = begin(net, path, what="capture")
        for command, output in ("capture", "-w"), ("trace", "-o"):
            busy = subprocess.run(
                [rig.sumwire(), command, unique("a"), output, os.path.join(folder, "busy")],
                check=False, stderr=subprocess.PIPE, text=True, timeout=rig.RUN_S)
            check(busy.returncode == 1 and "another sumwire trace or capture" in busy.stderr,
                  f"{busy}")
        rig.run_steps(net, *TENSORS, steps=steps)
        net.await_stats("a", lambda s: s["open_chunks"] == 0, "no open chunk")
        rig.wait_until(lambda: is_quiet(net), rig.STOP_S, "no more frames")
        p.signal(signal.SIGINT)
        p.wait_ok()
        n = check_frames(net, path, before, p.log())
        check(n > least, f"{n} frames came")
        clients = rig.start_forever(net, *TENSORS)
        check_parts(net, folder)
        check_refused(net, folder)
        rig.check_goes_on(clients)
        rig.end(net, clients)


def is_quiet(net):
    """Return whether all frames have arrived and no more are sent."""
    was = {n: frames(net.stats(n)) for n in net.daemons}
    return sum(r for r, _ in was.values()) == sum(t for _, t in was.values())


def test_capture():
    check_capture(20, 1000)


@rig.is_long
def test_capture_of_many():
    check_capture(2500, 100000)


if __name__ == "__main__":
    rig.main(dict(globals()))
