#!/usr/bin/env python3
# seeds.py - write the fuzzers' seeds, the same files at every call
# SPDX-License-Identifier: BSD-3-Clause
#
#   test/fuzz/seeds.py FOLDER    writes FOLDER/TARGET/NAME, FOLDER/ini.dict
import os
import re
import struct
import sys

# --- frame ---

MAC = bytes.fromhex("025300000002")
IP = bytes([10, 0, 0, 1])
PEER = bytes([10, 0, 0, 9])
MEND, LATER = 1024, 2048


def ethernet(kind, body, vlan=None):
    tag = struct.pack(">HH", 0x8100, vlan) if vlan else b""
    return MAC + bytes.fromhex("025300000009") + tag + \
        struct.pack(">H", kind) + body


def udp(payload, port=5700):
    head = struct.pack(">BBHHHBBH", 0x45, 0, 28 + len(payload), 0, 0x4000, 64,
                       17, 0) + PEER + IP
    return head + struct.pack(">HHHH", 5700, port, 8 + len(payload), 0) + payload


def arp(operation, sender=PEER, target=IP):
    return struct.pack(">HHBBH", 1, 0x0800, 6, 4, operation) + \
        bytes.fromhex("025300000009") + sender + MAC + target + bytes(18)


def header(kind, n=0, space=8):
    return struct.pack("<HBBBBHI", 0x4d53, 1, kind, 0, space, n, 0) + bytes(42) \
        + bytes(n)


def frames(kind, done, *all_frames):
    out = bytes([kind, done])
    for how, f in all_frames:
        out += struct.pack("<H", how | len(f)) + f
    return out


def frame_seeds():
    hello, push = header(1, 64), header(16, 128, 0)
    yield "frames", frames(
        0, 0, (MEND, ethernet(0x800, udp(hello))),
        (MEND | LATER, ethernet(0x800, udp(push))),
        (LATER, ethernet(0x806, arp(1))), (0, ethernet(0x806, arp(2))))
    yield "tagged", frames(
        1, 0, (MEND, ethernet(0x800, udp(header(10)), 7)),
        (LATER | 15 << 12, ethernet(0x806, arp(1), 7)))
    yield "rival", frames(
        128, 4, (LATER, ethernet(0x806, arp(2, sender=IP))),
        (0, ethernet(0x800, udp(header(18)))))


# --- control ---

def control_seeds():
    build, again, tick, arrives, ack, forged = range(6)
    start = struct.pack("<H", 0x8000)
    once = bytes([build, 0, arrives, 0, ack, 0])
    yield "in_order", start + 3 * once
    yield "lost", start + bytes([build, 0, build, 0, arrives, 1, tick, 9,
                                 again, 0, again, 0, arrives, 2, arrives, 3,
                                 ack, 2])
    yield "wrap", struct.pack("<H", 0x7ffe) + 9 * once
    yield "forged", start + once + bytes([forged, 1, forged + 1, 1])


# --- keyed ---

def keyed_seeds():
    """Each frame type of a job with one bit changed, in both directions."""
    for kind, name in enumerate(("old_tag", "new_tag", "crcs")):
        for first in range(4):  # bits: the job runs, it is encrypted
            steps = b"".join(
                struct.pack("<BBBBHHBHB", kind, t, way, 0, 0, 54 * (t & 1) + t,
                            1 << t % 8, 30, 0)
                for t in range(1, 23) for way in range(2))
            yield f"{name}_{first}", bytes([first]) + steps
        # a KEEPALIVE with another number becomes a LEAVE of 264 bytes
        yield f"{name}_leave", bytes([1]) + struct.pack(
            "<BBBBHHBHB", kind, 10, 1, 3, 264, 12, 64, 54, 0)
    yield "sums", bytes([1]) + 3 * struct.pack("<B11x", 4)
    yield "encrypted_sums", bytes([3]) + 3 * struct.pack("<B11x", 4)


# --- server ---

# Steps of fuzz_server.c, and bits of who (fuzz_frames.h).
TIME, OWN, ENTER, AGAIN = range(4)
HELLO, JOIN, KEEPALIVE, DECLARE, PUSH, QUERY, ACK, FAULT, TUNE, ANY, OPEN, \
    CALL, PROBE, PATHS = range(4, 18)
LENT, BAD_CRC = 32, 64
ASYNC, NO_CRC, SMALL, INNER, BY_RANK = 4, 8, 16, 32, 64
ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BCAST, REDUCE, BARRIER = range(6)


def step(kind, *fields, patches=()):
    out = bytes([kind | len(patches) << 5]) + bytes(fields).ljust(5, b"\0")
    for at, data in patches:
        where = bytes([at]) if at < 255 else struct.pack("<BH", 255, at)
        out += where + bytes([len(data)]) + data
    return out


def wait_ms(n):
    return step(TIME, 0, n, 20)


def members(n, n_tensors=1, mode=0):
    return b"".join(step(ENTER, i) for i in range(n)) + b"".join(
        step(DECLARE, i, 0, 0, 0, mode | (n_tensors - 1) << 1)
        for i in range(n)) + b"".join(step(KEEPALIVE, i) for i in range(n))


def pushes(n, rounds, key=0, chunks=1, who=0, d=0):
    return b"".join(step(PUSH, i | who, key, r, c, d) for r in rounds
                    for c in range(chunks) for i in range(n))


def streams(n, names=1):
    return b"".join(step(ENTER, i) for i in range(n)) + b"".join(
        step(OPEN, i, 2 * a) for a in range(names)
        for i in range(n)) + b"".join(step(KEEPALIVE, i) for i in range(n))


def calls(n, chunks, kind=ALL_REDUCE, key=0, who=0, d=2):
    return b"".join(step(CALL, i | who, key, j, kind, d) for j in chunks
                    for i in range(n))


def server_seeds():
    yield "one", bytes([0]) + members(1) + pushes(1, [1, 2]) + \
        step(ACK, 0, 0, 2) + step(FAULT, 0)
    yield "two", bytes([1]) + members(2, 4) + pushes(2, [1, 2], 1, 3) + \
        step(ACK, 0, 0, 3) + wait_ms(20) + step(QUERY, 1, 1, 2, 0, 2) + \
        step(FAULT, 0) + step(FAULT, 1)
    yield "late", bytes([1]) + members(2) + pushes(1, [1]) + \
        step(QUERY, 0, 0, 1, 0) + step(AGAIN, 0) + wait_ms(255) * 4 + \
        step(PUSH, 1 | BAD_CRC, 0, 1, 0) + pushes(2, [1]) + \
        step(TIME, 0, 255, 32)
    yield "broadcast", bytes([2]) + members(3) + pushes(3, [1, 2], d=1) + \
        pushes(3, [3], d=3)
    yield "differs", bytes([1]) + members(2) + step(PUSH, 0, 0, 1, 0, 0) + \
        step(PUSH, 1, 0, 1, 0, 1) + step(FAULT, 0, 0, 0, 1, 1) + wait_ms(50)
    yield "asynchronous", bytes([1 | ASYNC]) + members(2, 1, 1) + \
        pushes(2, [1], d=1) + pushes(2, [2, 3]) + step(FAULT, 0, 7) + \
        pushes(2, [4])
    yield "lent", bytes([1 | INNER | NO_CRC]) + members(2, 2) + \
        pushes(1, [1], who=LENT) + step(OWN, 0, 0) + pushes(2, [1]) + \
        pushes(2, [2], who=LENT)
    yield "modes", bytes([1 | ASYNC | INNER | NO_CRC]) + \
        members(2, 2, 1 | 32) + pushes(2, [1], d=1) + pushes(2, [1], 1, 3) + \
        pushes(1, [2]) + pushes(1, [2], 1, 3, LENT)
    yield "tuning", bytes([1]) + members(2) + step(TUNE, 0, 1, 1, 16, 64) + \
        step(KEEPALIVE, 0, 0, 1, 9) + step(KEEPALIVE, 1, 0, 1, 9) + wait_ms(9)
    yield "probes", bytes([1]) + step(ENTER, 0) + step(PROBE, 0, 21) + \
        step(PATHS, 0, 18) + step(ENTER, 1) + step(PROBE, 1, 128) + \
        step(PATHS, 1, 21) + step(PATHS, 1, 20, 1) + members(2) + \
        step(PROBE, 0, 18) + step(PROBE, 0, 1) + wait_ms(20) + \
        step(PROBE, 0, 1) + step(PROBE, 0, 128) + pushes(2, [1])
    # 2: i32; a window has 16 slots
    yield "stream", bytes([1]) + streams(2) + calls(2, [1, 2]) + \
        step(ACK, 0, 0, 2) + step(ACK, 1, 0, 2) + calls(2, [3, 18, 19]) + \
        wait_ms(50) + step(QUERY, 0, 0, 4, 1, 1)
    yield "streams", bytes([2 | INNER | NO_CRC]) + streams(3, 3) + \
        calls(3, [1, 2], REDUCE_SCATTER, 0, LENT) + \
        calls(3, [1], ALL_GATHER, 1, LENT) + step(OWN, 0, 0) + \
        calls(3, [1, 2], BCAST, 2, LENT, 18) + step(FAULT, 0, 0, 0, 1) + \
        step(FAULT, 1, 0, 0, 1) + step(FAULT, 2, 0, 0, 1)
    # 130: i32, as many as the kind's number; 69: also a broadcast
    yield "wants", bytes([1]) + streams(2) + step(CALL, 1, 0, 1, BCAST, 130) + \
        calls(1, [1, 2, 3], BCAST) + step(ACK, 1, 0, 2) + \
        step(CALL, 1, 0, 2, BCAST, 130) + step(CALL, 1, 0, 15, BCAST, 130) + \
        step(CALL, 1, 0, 1, 69, 130) + wait_ms(50) + step(QUERY, 1, 0, 4, 0, 3)
    yield "by_rank", bytes([1 | BY_RANK]) + streams(2) + \
        calls(1, [2, 1]) + calls(2, [1, 2, 3], d=0) + step(FAULT, 0, 28, 0, 1, 1)
    yield "call_differs", bytes([1]) + streams(2, 2) + calls(1, [1]) + \
        step(CALL, 1, 0, 1, REDUCE, 2) + calls(2, [1], 0, 1) + \
        step(OPEN, 0, 1, 1) + step(OPEN, 1, 6, 2, 1)
    yield "joins", bytes([3]) + b"".join(
        step(HELLO, i) + step(JOIN, i, 0, 0, i) for i in range(8)) + \
        step(JOIN, 0, 1) + step(JOIN, 1, 0, 1) + wait_ms(255) * 8 + \
        step(OWN, 0, 1) + step(OWN, 0, 2)
    yield "quota", bytes([1 | SMALL]) + members(2, 4) + \
        step(OWN, 0, 4, 1) + step(DECLARE, 0, 5, 0, 1, 0) + step(OWN, 0, 4) + \
        wait_ms(5) + step(OWN, 0, 3, 1) + \
        step(DECLARE, 1, 6, 0, 1, 0)
    yield "patched", bytes([1]) + members(2) + step(
        ANY, 0, 19, 12, patches=[(54, struct.pack("<III", 0, 1, 0))]) + step(
        PUSH, 0, 0, 1, 0, patches=[(32, b"\1"), (6, b"\0\1")])


# --- worker ---

COOKIE, ACCEPT, STATUS, DECLARED, LEFT, ALIVE, ERROR, RESULT, SACK, ANSWER, \
    OTHER, CALLED, PROBED = range(4, 17)
LOCALS, LAST = 8, 16
OWN_DECLARE, OWN_BEGIN, OWN_TUNE, OWN_LEFT, OWN_LEAVE, OWN_SHORT, \
    OWN_PREPARING, OWN_OPEN, OWN_CALL, OWN_END, OWN_DRAIN = range(11)


def running(n, n_tensors=1, mode=0):
    out = b"".join(step(ENTER, i) for i in range(n))
    for _ in range(n_tensors):
        out += step(OWN, 0, OWN_DECLARE, 0, 0, mode) + \
            b"".join(step(DECLARED, i) for i in range(n))
    return out


def begin(tensor, how=0, local=0):
    return step(OWN, 0, OWN_BEGIN, tensor, how, local)


def results(rounds, tensor=0, chunks=1, n=1, d=0):
    return b"".join(begin(tensor) + b"".join(
        step(RESULT, i, tensor, r, c, d) for c in range(chunks)
        for i in range(n)) for r in rounds)


def streaming(n, n_streams=1, ranks=0):
    out = b"".join(step(ENTER, i) for i in range(n))
    for _ in range(n_streams):
        out += step(OWN, 0, OWN_OPEN, ranks) + \
            b"".join(step(DECLARED, i) for i in range(n))
    return out


def called(kind, chunks, stream=0, local=0, d=0):
    return step(OWN, 0, OWN_CALL, stream, kind, local | d << 2) + b"".join(
        step(CALLED, 0, stream, j, kind, j & 3) for j in chunks)


def worker_seeds():
    yield "one", bytes([0]) + running(1) + results([1, 2]) + \
        step(OWN, 0, OWN_LEAVE) + step(LEFT)
    yield "two", bytes([1]) + running(2, 4) + results([1, 2], 1, 3, 2) + \
        results([1], 3, 8, 2) + wait_ms(50)
    yield "late", bytes([0]) + running(1) + begin(0) + wait_ms(40) + \
        step(ANSWER, 0, 0, 1, 0, 8) + wait_ms(255) + step(ANSWER, 0, 0, 1, 0, 1) + \
        step(ANSWER, 0, 0, 1, 0, 3) * 4 + step(RESULT | 0, BAD_CRC, 0, 1) + \
        step(RESULT, 0, 0, 1) + step(AGAIN) + step(TIME, 0, 255, 32)
    yield "locals", bytes([LOCALS]) + running(1) + begin(0) + begin(0, 0, 1) + \
        begin(0, 0, 2) + step(RESULT, 0, 0, 1) + step(OWN, 0, OWN_LEFT, 1) + \
        begin(0)
    yield "broadcast", bytes([LAST]) + running(1) + begin(0, 1) + \
        step(RESULT, 0, 0, 1, 0, 1)
    yield "asynchronous", bytes([ASYNC]) + running(1, 1, 1) + begin(0, 1) + \
        step(RESULT, 0, 0, 1, 0, 1) + begin(0) + step(RESULT, 0, 0, 2) * 2
    yield "stream", bytes([0]) + streaming(1) + called(ALL_REDUCE, [1]) + \
        called(ALL_REDUCE, [2]) + called(REDUCE, [3]) + called(BCAST, []) + \
        step(SACK, 0, 0, 9) + step(ANSWER, 0, 0, 0, 4, 5) + wait_ms(50)
    yield "streams", bytes([1 | LOCALS]) + streaming(2, 2, 15) + b"".join(
        called(kind, [1], stream, local, 1) for kind in range(6)
        for stream in (0, 1) for local in range(3)) + \
        step(OWN, 0, OWN_END, 0, 2) + step(OWN, 0, OWN_END, 1, 1) + wait_ms(9)
    yield "stream_dies", bytes([0]) + streaming(1, 2) + \
        called(ALL_REDUCE, [], d=3) + called(ALL_GATHER, [], 1, 0, 2) + \
        step(ERROR, 0, 28, 0, 1, 1) + called(ALL_REDUCE, []) + \
        step(OWN, 0, OWN_END, 0, 1)
    yield "here", bytes([LOCALS]) + streaming(1, 1, 7) + b"".join(
        called(kind, [], 0, local, 1) for kind in range(6)
        for local in range(3))
    yield "differs", bytes([0]) + running(1) + begin(0) + \
        step(ERROR, 0, 7, 0, 3, 1) + begin(0) + wait_ms(200)
    yield "refused", bytes([1]) + step(TIME) + step(COOKIE) + \
        step(ERROR, 0, 5, 0, 0) + wait_ms(255) + step(COOKIE) + step(ACCEPT) + \
        step(STATUS, 0, 0, 1) + step(STATUS, 0, 1, 2) + step(STATUS, 0, 42, 3)
    yield "declared", bytes([0]) + step(ENTER) + step(OWN, 0, OWN_PREPARING, 1) + \
        step(OWN) + step(OWN, 0, OWN_PREPARING) + step(OWN) + \
        step(DECLARED, 0, 0, 0, 0, 1) + step(OWN, 0, OWN_SHORT, 1) + step(OWN)
    yield "tuning", bytes([0]) + running(1) + step(OWN, 0, OWN_TUNE, 1, 16, 64) + \
        step(OWN, 0, OWN_TUNE, 128, 4, 9) + step(STATUS, 0, 1, 2, patches=[
            (54 + 184, struct.pack("<IIQQI", 1, 3, 65536, 0, 1))]) + \
        results([1, 2, 3, 4])
    # STATUS with PROBING, then RUNNING with that payload
    yield "probes", bytes([0]) + step(TIME) + step(COOKIE) + step(ACCEPT) + \
        step(STATUS, 0, 3) + step(PROBED, 0, 1) + wait_ms(30) + step(PROBED) + \
        step(STATUS, 0, 1, 18) + results([1, 2])
    # a tensor stalls; PROBEs come back, or only the small ones (type 22)
    for name, answer in (("good", step(PROBED)), ("narrow", step(
            OTHER, 0, 22, 64))):
        yield name + "_path", bytes([0]) + running(1) + begin(0) + (
            wait_ms(255) + answer + wait_ms(100) + step(ALIVE)) * 30
    yield "acked", bytes([0]) + running(1, 4) + begin(3) + \
        step(SACK, 0, 0, 8, 3) + step(SACK, 0, 7, 9) + wait_ms(5) + \
        step(ALIVE, 0, 0, 0, 0, 255) + step(OTHER, 0, 19, 24) + \
        step(STATUS, 0, 14, 3)


# --- host ---

LCORE, DIAL, HANG_UP, SUBMIT, SCRIBBLE, REPLY, HEAR, COLL = range(8)
MSG_TUNE, CLOSE, MORE, MSG_OPEN, MSG_ATTACH, MSG_DECLARE = range(8, 14)
SLOW, REFUSES, REFUSES_BATCH, CLASHES = 8, 2, 4, 16


def attached(*clients):
    return b"".join(step(DIAL, i) + step(MSG_ATTACH, i) + step(HEAR, i)
                    for i in clients)


def host_seeds():
    # a makes the names, b how many, c the dtype and size
    yield "one", bytes([0]) + attached(0) + step(MSG_DECLARE, 0, 0, 0, 2) * 1 + \
        step(HEAR) * 3 + step(SUBMIT) + step(LCORE, 0, 1) + step(MSG_TUNE, 0, 0, 1) + \
        step(SUBMIT, 0, 9) + step(LCORE, 0, 1, 0, 3) + step(CLOSE)
    yield "locals", bytes([1]) + attached(0, 1, 2, 3) + b"".join(
        step(MSG_DECLARE, i, 0, 1, 1) for i in range(3)) + step(HEAR) * 8 + \
        step(SUBMIT, 1) + step(LCORE, 0, 8, 0, 1) + step(MSG_DECLARE, 0, 1, 0, 1) + \
        step(MSG_DECLARE, 1, 1, 0, 2) + step(HEAR) * 6 + step(HANG_UP, 0)
    # memory, a stream of 3 ranks, collectives that wait and continue
    yield "colls", bytes([0]) + attached(0) + \
        step(MSG_DECLARE, 0, 0x30, 0, 0x11) + step(HEAR) * 3 + \
        step(MSG_OPEN, 0, 0x11, 3, 0x14) + step(HEAR) * 3 + \
        step(COLL, 0, 1, 1, 1) * 3 + step(LCORE, 0, 0, 0, 3, 0) + \
        step(LCORE, 0, 0, 0, 3, 1) + step(COLL, 0, 1, 9, 3) + \
        step(LCORE, 0, 0, 0, 3, 255)
    yield "groups", bytes([1]) + attached(0, 1, 2, 3) + b"".join(
        step(MSG_OPEN, i, 0x10, 3, 0x14) for i in range(3)) + step(HEAR) * 8
    yield "pieces", bytes([0]) + attached(0) + step(
        MSG_DECLARE, 0, 0, 64, patches=[(48, b"x")]) + step(
        MSG_DECLARE, 0, 0, 64, patches=[(12, b"\1"), (48, b"y")]) + step(HEAR) * 3
    yield "slow", bytes([SLOW]) + attached(0) + step(REPLY) + step(HEAR) + \
        step(MSG_TUNE, 0, 3, 1, 1) + step(MSG_DECLARE, 0, 0, 0, 1) + \
        step(HEAR) * 3 + step(REPLY) + step(REPLY, 0, 0, 1) + step(HEAR)
    yield "refused", bytes([REFUSES]) + attached(0) + step(HEAR)
    yield "failed", bytes([REFUSES_BATCH]) + attached(0) + \
        step(MSG_DECLARE, 0, 0, 7, 1) + step(HEAR) * 3 + \
        step(MSG_DECLARE, 0, 1, 0, 15) + step(HEAR) * 3
    yield "rings", bytes([CLASHES]) + attached(0, 1) + \
        step(MSG_DECLARE, 0, 0, 0, 1) + step(HEAR) * 3 + \
        step(SCRIBBLE, 0, 3, 255, 255) + step(LCORE) + \
        step(SCRIBBLE, 1, 12, 2) + step(SCRIBBLE, 1, 16, 1) + \
        step(LCORE, 0, 1, 255, 3) + step(MORE, 1, 11, 40)


# --- texts ---

CONF = os.path.join(os.path.dirname(__file__), "..", "..", "conf")


def read(name):
    with open(os.path.join(CONF, name), encoding="utf-8") as f:
        return f.read()


def ini_seeds():
    for name in sorted(os.listdir(CONF)):
        if name.endswith(".ini"):
            yield name, read(name).encode()
    yield "machine", read("machines/pcie.ini").encode()
    yield "many", b"[node]\nrole = agent\n[port a]\ntype = udp\n" \
        b"ip = 10.0.0.1/24\n" + b"".join(
            b"[server s%d]\nip = 10.0.0.%d\nport = a\n" % (i, 2 + i)
            for i in range(32))
    yield "short", b"[node]\nrole = server\n[port a]\ntype = udp\n" \
        b"ip = 10.0.0.1/24\n"


def stats_seeds():
    yield "few", b"rx_frames 12\nport.a.tx_bytes 18446744073709551615\n"
    yield "wrong", b"a  1\nb -1\n 2\nc 3x\n"
    yield "long", b"x" * 300 + b" 1\n"


def trace_block(kind, daemon, body):
    return struct.pack("<IHHII", kind, daemon, 0, len(body), 0) + body


def trace_daemon(number, role, is_worker, *events):
    """Messages of a daemon with one session: hello, peer, name, events, end."""
    return b"".join((
        trace_block(1, number, struct.pack("<128s8s40sqQ", b"n%d" % number, role,
                                           b"boot%d" % number, 7, 0)),
        trace_block(2, number, struct.pack("<128sQ64sIHBB", b"job", 1, b"10.0.0.9", 5,
                                           0, is_worker, 0)),
        trace_block(3, number, struct.pack("<QI128sI", 1, 2, b"w", 0)),
        trace_block(4, number, b"".join(
            struct.pack("<QIIIIHHHBB", t, 10, 2, *what, 0, 100, 1, kind, flags)
            for t, kind, flags, *what in events)),
        trace_block(5, number, b"")))


def trace_seeds():
    agent = trace_daemon(0, b"agent", 1, (100, 2, 0, 1, 9), (150, 9, 0, 8, 9),
                         (200, 4, 0, 1, 0), (250, 4, 2, 1, 0), (700, 7, 0, 1, 0),
                         (750, 3, 0, 1, 9), (800, 11, 0, 8, 9))
    server = trace_daemon(1, b"server", 0, (300, 5, 8, 1, 0), (350, 5, 24, 1, 0),
                          (400, 6, 0, 1, 0), (450, 0, 0, 0, 3), (500, 8, 0, 1, 0))
    yield "two", b"SWTRACE1" + agent + server
    yield "torn", b"SWTRACE1" + agent + server[:-50]
    yield "crowd", b"SWTRACE1" + server + trace_daemon(
        0, b"agent", 1, *((100 + i, 2, 0, 1, i) for i in range(30)),
        *((150 + i, 4, 0, 1, i) for i in range(30)),
        *((200 + i, 3, 0, 1, i) for i in range(30)),
        *((300 + 5 * i, 10, 0, 8, i) for i in range(30)))
    yield "empty", b"SWTRACE1"


def words():
    """Words for the mutator of ini: sections, keys and choices."""
    out = {"[node]", " = ", "auto", "KiB", "us", "Gbit/s", "/24", "0x"}
    for section, key in re.findall(r"^OPTION\((\w+), (\w+)",
                                   read("options.def") + read("port.def"),
                                   re.M):
        out |= {f"[{section} a]", key + " = "}
    out |= {"[machine]", "[switch 0]", "[gpu 0]", "[nic a]", "switch = ",
            "numa_node = ", "pcie = ", "nvlink = ", "cross = "}
    return sorted(out)


# --- all ---

TARGETS = {"frame": frame_seeds, "control": control_seeds,
           "keyed": keyed_seeds,
           "server": server_seeds, "worker": worker_seeds,
           "host": host_seeds, "ini": ini_seeds, "stats": stats_seeds,
           "trace": trace_seeds}


def main():
    for target, seeds in TARGETS.items():
        folder = os.path.join(sys.argv[1], target)
        os.makedirs(folder, exist_ok=True)
        for name, data in seeds():
            with open(os.path.join(folder, name), "wb") as f:
                f.write(data)
    with open(os.path.join(sys.argv[1], "ini.dict"), "w",
              encoding="utf-8") as f:
        f.writelines(f'"{w}"\n' for w in words())


main()
