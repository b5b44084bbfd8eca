# proc_wireshark.py - Wireshark's dissector on frames of real runs
# SPDX-License-Identifier: BSD-3-Clause
import mmap
import os
import re
import socket
import struct
import subprocess
import tempfile
import threading
import time

import lan
import rig
from lan import Lan
from proc_coll import start
from rig import check, program

TOP = os.path.join(os.path.dirname(__file__), "../..")
LUA = os.path.join(TOP, "conf/wireshark/sumwire.lua")
PAGE = os.path.join(TOP, "doc/observe.md")
# Frame types that a run without losses may lack: a QUERY asks why a result is
# late; ANSWER and WANT need a late result, or a group whose members only get.
RARE = {"QUERY", "ANSWER", "WANT", "ERROR", "TUNE"}
BROKEN = "_ws.malformed || _ws.lua.error || sumwire.crc || sumwire.short || sumwire.length"

# Header of a capture file: microseconds, Ethernet.
FILE_HEAD = struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1)


# Linux's packet(7) with a ring of version 3, in which frames of any size share blocks
SOL_PACKET, PACKET_RX_RING, PACKET_STATISTICS, PACKET_VERSION, TPACKET_V3 = 263, 5, 6, 10, 2
BLOCK, BLOCKS, RETIRE_MS = 1 << 20, 128, 50


class Pcap:
    """Captures all frames of an interface, in both directions. The ring holds what
    comes while this process gets no CPU."""

    def __init__(self, interface, path):
        self.path, self.count, self.is_over = path, 0, False
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.sock.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V3)
        self.sock.setsockopt(SOL_PACKET, PACKET_RX_RING, struct.pack(
            "7I", BLOCK, BLOCKS, 2048, BLOCK // 2048 * BLOCKS, RETIRE_MS, 0, 0))
        self.ring = mmap.mmap(self.sock.fileno(), BLOCK * BLOCKS)
        self.sock.bind((interface, lan.ETH_P_ALL))
        self.thread = threading.Thread(target=self.copy)
        self.thread.start()

    def copy(self):
        with open(self.path, "wb") as out:
            out.write(FILE_HEAD)
            block = 0
            while not self.is_over:
                is_ours, n, first = struct.unpack_from("III", self.ring, block + 8)
                if not is_ours & 1:
                    time.sleep(RETIRE_MS / 1000)
                    continue
                self.copy_block(out, block + first, n)
                struct.pack_into("I", self.ring, block + 8, 0)
                block = (block + BLOCK) % (BLOCK * BLOCKS)

    def copy_block(self, out, at, n):
        for _ in range(n):
            step, kept, mac = struct.unpack_from("I8xI8xH", self.ring, at)
            out.write(struct.pack("<IIII", self.count // 1000000, self.count % 1000000,
                                  kept, kept) + self.ring[at + mac:at + mac + kept])
            self.count += 1
            at += step

    def end(self):
        """Take what has come until now, and check that nothing was lost."""
        n, n_lost, _ = struct.unpack("3I", self.sock.getsockopt(
            SOL_PACKET, PACKET_STATISTICS, 12))
        rig.wait_until(lambda: self.count >= n - n_lost, rig.RUN_S, f"{n} frames in the file")
        self.is_over = True
        self.thread.join()
        check(n_lost == 0, f"the capture lost {n_lost} of {n} frames")


def tshark(path, *args):
    p = subprocess.run(["tshark", "-r", path, "-X", "lua_script:" + LUA, *args],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, text=True,
                       timeout=600)
    said = [line for line in p.stderr.splitlines() if "Running as user" not in line]
    check(p.returncode == 0 and not said, f"tshark ends with {p.returncode}: {said}")
    return p.stdout.splitlines()


def run_jobs(net, steps):
    """Run tensors, collectives, a group that all close, and one that one rank
    closes."""
    tensors = (*rig.SMALL, "--steps", str(steps))
    await_all([net.client(r, *tensors) for r in range(2)])
    colls = ("--seed", "1", "--colls", str(steps))
    await_all([start(net, r, *colls) for r in range(2)])
    for how in "reopen", "close":
        await_all([net.run(f"{how}{r}", program("test/proc/proc_ends"), "--agent",
                           net.socket(f"agent{r}"), "--do", how) for r in range(2)])


def await_all(procs):
    for p in procs:
        p.wait_ok()


def give_key(net, folder):
    """Give all nodes the same secret."""
    path = os.path.join(folder, "job.key")
    subprocess.run([rig.sumwire(), "key", path], check=True, stdout=subprocess.DEVNULL)
    for name, ini in net.ini.items():
        ini.setdefault("serve" if name in net.servers else "job", {})["key_file"] = path


def check_all_decoded(steps, least, is_keyed=False):
    with Lan(agents=2, mtu=1500) as net, tempfile.TemporaryDirectory() as folder:
        if is_keyed:
            give_key(net, folder)
        path = os.path.join(folder, "run.pcap")
        seen = Pcap("agent0-lan", path)
        try:
            net.start_all()
            run_jobs(net, steps)
            net.stop("agent0")
        finally:
            seen.end()
        check(seen.count > least, f"{seen.count} frames came")
        check_names(path)
        bad = tshark(path, "-Y", BROKEN)
        check(not bad, f"{len(bad)} of {seen.count} frames, such as {bad[:3]}")
        check(bool(tshark(path, "-Y", "sumwire.tag")) == is_keyed, "tags")


def test_each_frame_is_decoded():
    check_all_decoded(*((10, 5000) if rig.IS_QUICK else (100, 100000)))


def test_each_frame_of_a_keyed_job_is_decoded():
    check_all_decoded(10, 5000, is_keyed=True)


def check_names(path):
    """Check that every UDP datagram is ours, and that every usual type appears
    by name."""
    lines = tshark(path, "-Y", "udp", "-T", "fields", "-e", "frame.protocols", "-e",
                   "_ws.col.Info")
    others = [x for x in lines if not x.split("\t")[0].endswith(":udp:sumwire")]
    check(not others, f"{len(others)} datagrams are not ours: {others[:3]}")
    names = {re.match(r"[A-Z]+", x.split("\t")[1]).group() for x in lines}
    with open(LUA, encoding="utf-8") as f:
        table = re.search(r"local TYPES = \{(.*?)\}", f.read(), re.DOTALL)
    missing = set(re.findall(r'"(\w+)"', table.group(1))) - names - RARE
    check(not missing, f"of {sorted(names)} are missing {missing}")


def test_wrong_frames_are_seen():
    """The dissector detects a wrong CRC, a truncated frame, a wrong length, and
    two frames in one datagram, as an interface that splits trains itself shows
    them. The page's filters are valid."""
    frame = struct.pack("<HBBBBH", 0x4d53, 1, 1, 0, 8, 64) + bytes(46 + 64)
    cases = {"sumwire.crc": frame, "sumwire.short": cut(frame, 40),
             "sumwire.length": frame[:100],
             "count(sumwire.type) == 2": frame + frame}
    with tempfile.TemporaryDirectory() as folder:
        for number, (query, data) in enumerate(cases.items()):
            path = os.path.join(folder, str(number))
            save(path, data)
            lines = tshark(path, "-Y", query)
            check(len(lines) == 1, f"{query}: {lines}")
        with open(PAGE, encoding="utf-8") as f:
            filters = re.findall(r"^\|.*\| `([^`]*)` \|$", f.read(), re.MULTILINE)
        tshark(path, "-Y", " || ".join(x.replace("\\", "") for x in filters))


def test_fields_are_where_the_protocol_has_them():
    """Each field of the header and of an ACK has a value of its own."""
    push = struct.pack("<HBBBBHIIIIIHHBBHIIHQ", 0x4d53, 1, 16, 0x36, 5, 64, 0x70001, 0x11223344,
                       0x2003, 7, 9, 11, 13, 10, 1, 15, 17, 19, 0x55, 0) + bytes(64)
    ack = struct.pack("<HBBBBHIIIIIHHBBHIIHQ", 0x4d53, 1, 18, 0, 8, 48, 0x70002, 21, 0, 0, 23, 25,
                      0, 0, 0, 27, 29, 31, 0, 0) + struct.pack("<Q32sBBHHH", 33, bytes(32), 3, 0,
                                                               35, 37, 39)
    wants = {
        push: {"type": "16", "class": "5", "flags.retx": "1", "flags.ack": "1",
               "flags.backlog": "3", "session": "0x00070001",
               "psn": str(0x55 << 32 | 0x11223344), "key.index": "3", "key.generation": "2",
               "round": "7", "chunk": "9", "step": "11", "weight": "13", "dtype": "10",
               "op": "1", "aux": "15", "consumed": "17", "grant": "19"},
        ack: {"type": "18", "psn": "21", "returned": "23", "taken": "27", "consumed": "29",
              "grant": "31", "largest": "33", "delay": "35", "gap": "37", "marked": "39"}}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "one")
        for frame, want in wants.items():
            save(path, frame)
            names = [arg for name in want for arg in ("-e", "sumwire." + name)]
            got = tshark(path, "-T", "fields", "-E", "occurrence=f", *names)[0].split("\t")
            check(got == list(want.values()), f"{dict(zip(want, got))}, not {want}")


# Tables of the dissector: the enum with its entries, what names there begin with, and the
# names there that the dissector calls otherwise, or never sees.
TABLES = {
    "TYPES": ("engine/wire/wire.h", "sw_frame_type", "SW_", {}),
    "ROUNDS": ("engine/wire/wire.h", "sw_round_kind", "SW_ROUND_", {}),
    "MODES": ("engine/wire/wire.h", "sw_mode", "SW_MODE_",
              {"SYNC": "synchronous", "ASYNC": "asynchronous"}),
    "STATES": ("engine/wire/wire.h", "sw_job_state", "SW_JOB_", {}),
    "ANSWERS": ("engine/wire/wire.h", "sw_answer_kind", "SW_ANSWER_", {}),
    "FAULTS": ("engine/wire/fault.h", "sw_fault_kind", "SW_FAULT_", None),
    "COLLS": ("engine/base/coll_kind.h", "sw_coll_kind", "SW_",
              {"COLL_NONE": "push_pull", "BCAST": "broadcast"}),
    "REDUCES": ("engine/base/coll_kind.h", "sw_reduce_op", "SW_", {"PREMUL_SUM": None}),
    "POLICIES": ("engine/sched/policy.h", "sw_policy_id", "SW_POLICY_", {}),
    "DTYPES": ("sum/dtype.h", "sw_dtype", "SW_", {}),
}


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as f:
        return re.sub(r"/\*.*?\*/", "", f.read(), flags=re.DOTALL)


def enum_of(path, enum, begin):
    """{value: name without its begin} of a C enum, without its count SW_N_..."""
    found, value = {}, 0
    for item in re.search(rf"enum {enum} \{{(.*?)\}}", read(path), re.DOTALL)[1].split(","):
        name, _, number = item.strip().partition(" = ")
        value = int(number) if number else value
        if name.startswith(begin) and not name.startswith("SW_N_"):
            found[value] = name[len(begin):]
        value += 1
    return found


def table_of(name):
    """{value: text} of a table of the dissector."""
    found, value = {}, 1
    for number, text in re.findall(
            r'(?:\[(-?\d+)\] = )?"(.*?)"',
            re.search(rf"local {name} = \{{(.*?)\}}", read("conf/wireshark/sumwire.lua"),
                      re.DOTALL)[1]):
        if number == "0":  # those that follow count from 1, as Lua does
            found[0] = text
        else:
            value = int(number) if number else value
            found[value] = text
            value += 1
    return found


def test_tables_are_the_engines():
    """A type, error or other kind that the engine gets must get its name here."""
    for name, (path, enum, begin, others) in TABLES.items():
        has, wants = table_of(name), enum_of(path, enum, begin)
        check(len(wants) > 1, f"{enum}: {wants}")
        if others is None:  # sentences
            check(set(has) == set(wants), f"{name}: {has}, but {enum} has {wants}")
            continue
        wants = {n: others.get(w, w) for n, w in wants.items()}
        wants = {n: w.lower() for n, w in wants.items() if w}
        has = {n: text.lower() for n, text in has.items()}
        check(has == wants, f"{name}: {has}, but {enum} has {wants}")
    errors = {int(n): name for name, n in
              re.findall(r"^SW_ERROR\((\w+), (-\d+)", read("engine/base/errors.def"), re.MULTILINE)}
    check(table_of("ERRORS") == {0: "none", **errors}, f"ERRORS, but errors.def has {errors}")


def save(path, data):
    """Save a capture of one datagram."""
    packet = headers(len(data)) + data
    with open(path, "wb") as f:
        f.write(FILE_HEAD + struct.pack("<IIII", 0, 0, len(packet), len(packet)) + packet)


def cut(frame, n):
    """Return the frame with a payload of @n bytes, and a header that says so."""
    return frame[:6] + struct.pack("<H", n) + frame[8:54 + n]


def headers(n):
    """Return Ethernet, IPv4 and UDP headers for @n bytes."""
    return (bytes(12) + b"\x08\x00" +
            struct.pack(">BBHHHBBH4s4s", 0x45, 0, 28 + n, 0, 0x4000, 64, 17, 0,
                        bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2))) +
            struct.pack(">HHHH", 20000, 20000, 8 + n, 0))


if __name__ == "__main__":
    lan.enter()
    rig.main(dict(globals()))
