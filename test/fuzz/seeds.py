#!/usr/bin/env python3
# seeds.py - what the fuzzers start from: the same files at every call
# SPDX-License-Identifier: BSD-3-Clause
#
#   test/fuzz/seeds.py FOLDER    writes FOLDER/TARGET/NAME
import os
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
    return struct.pack("<HBBBBHI", 0x5753, 2, kind, 0, space, n, 0) + bytes(42) \
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


# --- server ---

# Steps of fuzz_server.c, and bits of who (fuzz_steps.h).
TIME, OWN, ENTER, AGAIN = range(4)
HELLO, JOIN, KEEPALIVE, DECLARE, PUSH, PULL, ACK, FAULT, TUNE, ANY = \
    range(10, 20)
LENT, BAD_CRC = 32, 64
ASYNC, NO_CRC, SMALL, INNER = 4, 8, 16, 32


def step(kind, *fields, patches=()):
    out = bytes([kind | len(patches) << 5]) + bytes(fields).ljust(5, b"\0")
    for at, data in patches:
        out += struct.pack("<HB", at, len(data)) + data
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


def server_seeds():
    yield "one", bytes([0]) + members(1) + pushes(1, [1, 2]) + \
        step(ACK, 0, 0, 2) + step(FAULT, 0)
    yield "two", bytes([1]) + members(2, 4) + pushes(2, [1, 2], 1, 3) + \
        step(ACK, 0, 0, 3) + wait_ms(20) + step(PULL, 1, 1, 2, 0, 2) + \
        step(FAULT, 0) + step(FAULT, 1)
    yield "late", bytes([1]) + members(2) + pushes(1, [1]) + \
        step(PULL, 0, 0, 1, 0) + step(AGAIN, 0) + wait_ms(255) * 4 + \
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
    yield "knobs", bytes([1]) + members(2) + step(TUNE, 0, 1, 1, 16, 64) + \
        step(KEEPALIVE, 0, 0, 1, 9) + step(KEEPALIVE, 1, 0, 1, 9) + wait_ms(9)
    yield "joins", bytes([3]) + b"".join(
        step(HELLO, i) + step(JOIN, i, 0, 0, i) for i in range(8)) + \
        step(JOIN, 0, 1) + step(JOIN, 1, 0, 1) + wait_ms(255) * 8 + \
        step(OWN, 0, 1) + step(OWN, 0, 2)
    yield "quota", bytes([1 | SMALL]) + members(2, 4) + \
        step(OWN, 0, 4, 1) + step(DECLARE, 0, 5, 0, 1, 0) + step(OWN, 0, 4) + \
        step(DECLARE, 0, 5, 0, 1, 0) + step(OWN, 0, 3, 1) + \
        step(DECLARE, 1, 6, 0, 1, 0)
    yield "patched", bytes([1]) + members(2) + step(
        ANY, 0, 19, 12, patches=[(54, struct.pack("<III", 0, 1, 0))]) + step(
        PUSH, 0, 0, 1, 0, patches=[(32, b"\1"), (6, b"\0\1")])


# --- all ---

TARGETS = {"frame": frame_seeds, "server": server_seeds}


def main():
    for target, seeds in TARGETS.items():
        folder = os.path.join(sys.argv[1], target)
        os.makedirs(folder, exist_ok=True)
        for name, data in seeds():
            with open(os.path.join(folder, name), "wb") as f:
                f.write(data)


main()
