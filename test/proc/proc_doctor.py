# proc_doctor.py - sumwire doctor: this machine, and good and bad paths
# SPDX-License-Identifier: BSD-3-Clause
"""Nodes agent0 and a are namespaces of their own behind a bridge (hosts.py)."""
import contextlib
import itertools
import json
import os
import signal
import socket
import struct
import subprocess
import threading
import time

import lan
import rig
from hosts import Hosts
from rig import check

PORT = 5700


def doctor(*args, inside=()):
    """Return doctor's findings by check, and its exit code."""
    p = subprocess.run([*inside, rig.sumwire(), "doctor", "--json", *args],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       text=True, timeout=rig.START_S, check=False)
    check(p.returncode in (0, 1), f"{p}")
    found = json.loads(p.stdout)
    check(found["is_good"] == (p.returncode == 0), f"{p}")
    for row in found["checks"]:
        check(row["state"] == "ok" or row["cost"] and row["mend"], f"{row}")
    return {row["check"]: row for row in found["checks"]}


def expect(found, name, state, *texts):
    row = found.get(name, {"state": "missing", "found": ""})
    check(row["state"] == state, f"{name} is not {state}: {row}")
    for text in texts:
        check(text in row["found"], f"\"{text}\" is not in {row}")


@contextlib.contextmanager
def listening(net, name):
    args = (rig.sumwire(), "doctor", "--listen", str(PORT))
    p = net.run("listen", *net.inside(name, *args))
    p.await_text("answering at")
    try:
        yield p
    finally:
        p.signal(signal.SIGTERM)
        p.wait_ok(rig.STOP_S)


def from_agent(net, *args):
    return doctor(*args, inside=net.inside("agent0"))


def peer(net, port=PORT):
    at = net.address("a")
    return f"[{at}]:{port}" if net.is_v6 else f"{at}:{port}"


def test_path():
    """A good path; a bridge port with a smaller MTU; no listener."""
    with Hosts(agents=1, mtu=1500) as net:
        with listening(net, "a"):
            found = from_agent(net, peer(net))
            expect(found, "UDP", "ok", "a doctor answers")
            expect(found, "MTU", "ok", "1500 bytes pass in both directions",
                   "agent0")
            expect(found, "round trip", "ok", "p50")
            expect(found, "loss", "ok", "packets of 1500 bytes")
            for name in "lan", "a-lan":
                lan.ip("link", "set", "dev", name, "mtu", "1400")
            found = from_agent(net, peer(net))
            expect(found, "MTU", "wrong",
                   "1400 bytes pass there", "1400 back", "agent0 claims 1500")
        found = from_agent(net, peer(net))
        expect(found, "UDP", "wrong", "nothing listens at that port")


def stop_and_go(p):
    """Let the processes of a group run and stand still by turns until @p ends."""
    with contextlib.suppress(ProcessLookupError):
        while p.poll() is None:
            for number, seconds in (signal.SIGSTOP, 0.4), (signal.SIGCONT, 0.2):
                os.killpg(p.pid, number)
                time.sleep(seconds)


def test_doctor_that_stands_still():
    """Answers that wait for a busy doctor are late, not lost. Nor does it ask so
    fast to make up for it that the other end stops answering."""
    with Hosts(agents=1, mtu=1500) as net, listening(net, "a"):
        p = subprocess.Popen([*net.inside("agent0"), rig.sumwire(), "doctor", "--json", peer(net)],
                             stdout=subprocess.PIPE, start_new_session=True)
        thread = threading.Thread(target=stop_and_go, args=(p,))
        thread.start()
        found = {row["check"]: row for row in json.loads(p.stdout.read())["checks"]}
        p.wait(rig.START_S)
        thread.join()
        for name in "UDP", "MTU", "round trip", "loss":
            expect(found, name, "ok")


def test_way_back_carries_less():
    with Hosts(agents=1, mtu=1500, is_v6=True) as net, listening(net, "a"):
        net.ip("a", "link", "set", "dev", "a", "mtu", "1400")
        found = from_agent(net, peer(net))
        expect(found, "UDP", "ok", "a doctor answers")
        expect(found, "MTU", "wrong", "and 1400 back")
        expect(found, "loss", "ok", "packets of 1400 bytes")


def test_silence():
    """A filter drops UDP, but the machine answers to TCP."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        found = doctor("127.0.0.1:%d" % sock.getsockname()[1])
    expect(found, "UDP", "wrong", "a firewall that drops UDP")


def test_server_answers():
    with Hosts(agents=1, mtu=1500) as net:
        net.start("a")
        found = from_agent(net, net.address("a"))
        expect(found, "UDP", "ok", "a sumwire server answers",
               "need sumwire doctor --listen")
        check("MTU" not in found, "an MTU that nobody measured")


def test_no_way():
    with Hosts(agents=1, mtu=1500) as net:
        found = from_agent(net, "192.0.2.1")
        expect(found, "UDP", "wrong", "unreachable")


def answer_all(sock, make):
    """Answer until a packet of one byte arrives."""
    while True:
        data, where = sock.recvfrom(65536)
        if len(data) == 1:
            return
        answer = make(data)
        if answer:
            sock.sendto(answer, where)


def with_answers(make):
    """Return doctor's findings about a peer that answers with make(request)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=answer_all, args=(sock, make),
                                  daemon=True)
        thread.start()
        try:
            return doctor("127.0.0.1:%d" % sock.getsockname()[1])
        finally:
            sock.sendto(b"x", sock.getsockname())
            thread.join(rig.START_S)


def test_strange_answers():
    """Garbage, an answer that is too long, and an answer to another request."""
    def larger(data):
        return data[:24] + struct.pack("<II", 3, 0) + data[32:] + bytes(64)

    def other(data):
        return data[:8] + bytes(8) + data[16:24] + struct.pack(
            "<II", 3, 0) + data[32:]

    for make in (lambda data: b"?" * 300), larger, other:
        expect(with_answers(make), "UDP", "wrong",
               "neither doctor nor sumwire server")


def test_loss():
    """A doctor at the other end answers only nine of ten times."""
    count = itertools.count()

    def most(data):
        head = data[:24] + struct.pack("<II", 3, 1500)
        if data[24] == 2 or next(count) % 10:
            return head + (data[32:] if data[24] == 1 else b"")
        return b""

    found = with_answers(most)
    expect(found, "UDP", "ok")
    expect(found, "round trip", "wrong", "lost without any load")
    expect(found, "loss", "wrong", "were lost")


def test_bad_command_lines():
    for args, text in ((("127.0.0.1:0",), "no UDP port from 1"),
                       (("127.0.0.1:x",), "no UDP port from 1"),
                       (("no.such.invalid",), "no.such.invalid: "),
                       (("a", "b"), "b"),
                       (("--listen", "0"), "no UDP port from 1"),
                       (("--listen", "name:1"), "name:1: "),
                       (("--listen", "5", "peer"), "excludes PEER"),
                       (("--config", "/nowhere"), "/nowhere")):
        p = subprocess.run([rig.sumwire(), "doctor", *args], check=False,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           timeout=rig.START_S, text=True)
        check(p.returncode == 2 and text in p.stderr, f"{args}: {p}")


def test_a_machine_with_a_configuration():
    with Hosts(agents=1, mtu=1500) as net:
        path = net.write_ini("a")
        found = doctor("--config", path, inside=net.inside("a"))
        expect(found, "interface", "ok", "a: up, MTU 1500")
        expect(found, "rights", "ok")
        found = doctor("--config", path)  # the address is in another namespace
        expect(found, "interface", "wrong", "no interface has 10.9.0.1")


def test_listener_ends_by_itself():
    p = subprocess.run([rig.sumwire(), "doctor", "--listen", "127.0.0.1:5799",
                        "--for", "1s"], check=False, stderr=subprocess.PIPE,
                       timeout=rig.START_S, text=True)
    check(p.returncode == 0 and "0 answers" in p.stderr, f"{p}")


if __name__ == "__main__":
    lan.enter()
    lan.ip("link", "set", "dev", "lo", "up")
    rig.main(dict(globals()))
