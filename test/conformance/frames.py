# frames.py - frames of PROTOCOL.md, sections 1 to 3 and 14
# SPDX-License-Identifier: BSD-3-Clause
"""A frame here is the content of a UDP datagram: a header of 54 bytes and a
payload."""
import dataclasses
import ipaddress
import struct

MAGIC, VERSION, CONTROL = 0x4d53, 1, 8
(HELLO, COOKIE, JOIN, ACCEPT, DECLARE, DECLARED, STATUS, LEAVE, LEFT, KEEPALIVE,
 ERROR, TUNE, END, CLOSE, PATHS, PUSH, RESULT, ACK, QUERY, ANSWER, WANT,
 PROBE) = range(1, 23)
MESSAGES = {STATUS, TUNE, PATHS, DECLARE, DECLARED, END, CLOSE}
DATA = {PUSH, RESULT, WANT}
FORMING, RUNNING, FAILED, PROBING = range(4)
HEAD = struct.Struct("<HBBBBHIIIIIHHBBHIIH")  # up to the checksums or the tag
HEAD_BYTES = HEAD.size + 8
NONE = 0xffffffff
CIPHER = 8  # a flag
COPY = 1  # an operation
JOIN_BYTES = 1152
JOIN_CLEAR, JOIN_SEALED = 24, 344  # bytes in the clear, and encrypted

assert HEAD.size == 46


def crc_table():
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ 0x82f63b78 * (i & 1)
        yield i


CRC = list(crc_table())


def crc32c(text, crc=0):
    crc ^= NONE
    for byte in text:
        crc = crc >> 8 ^ CRC[(crc ^ byte) & 255]
    return crc ^ NONE


@dataclasses.dataclass
class Frame:
    type: int
    payload: bytes = b""
    session: int = 0
    cls: int = CONTROL
    flags: int = 0
    psn: int = 0
    key: int = 0
    round: int = 0
    chunk: int = 0
    step: int = 0
    weight: int = 0
    dtype: int = 0
    op: int = 0
    aux: int = 0
    consumed: int = 0
    grant: int = 0
    crc: int = 0  # CRC of the payload, as received
    head: bytes = b""  # as received, up to the checksums or the tag
    tail: bytes = b""  # the checksums or the tag, as received

    def first(self):
        """Return the header up to the checksums or the tag."""
        return HEAD.pack(
            MAGIC, VERSION, self.type, self.flags, self.cls, len(self.payload),
            self.session, self.psn & NONE, self.key, self.round, self.chunk,
            self.step, self.weight, self.dtype, self.op, self.aux,
            self.consumed & NONE, self.grant & NONE, self.psn >> 32)

    def with_crcs(self, seed=0, run_seed=0):
        """Return the bytes of a frame without a tag."""
        text = self.payload
        if self.cls != CONTROL:
            text = struct.pack("<III", self.key ^ run_seed, self.round,
                               self.chunk) + text
        head = self.first() + struct.pack("<I", crc32c(text))
        return head + struct.pack("<I", crc32c(head) ^ seed) + self.payload

    def with_tag(self, keys, h):
        """Return the bytes of a frame of a keyed session. keys: its Direction."""
        head = self.first()
        return head + keys.tag(head, h) + self.payload


def parse(text):
    """Return the Frame, or None if its form is wrong."""
    if len(text) < HEAD_BYTES:
        return None
    (magic, version, kind, flags, cls, n, session, low, key, rnd, chunk, step,
     weight, dtype, op, aux, consumed, grant, high) = HEAD.unpack_from(text)
    if (magic, version, n) != (MAGIC, VERSION, len(text) - HEAD_BYTES):
        return None
    return Frame(kind, text[HEAD_BYTES:], session, cls, flags, high << 32 | low,
                 key, rnd, chunk, step, weight, dtype, op, aux, consumed, grant,
                 head=text[:HEAD.size], tail=text[HEAD.size:HEAD_BYTES])


def has_crcs(frame, seed=0, run_seed=0):
    """Are both CRCs right?"""
    return frame.head + frame.tail == dataclasses.replace(
        frame).with_crcs(seed, run_seed)[:HEAD_BYTES]


def fold64(value):
    """Return the 64-bit seed."""
    return (value ^ value >> 32) & NONE


def quanta(n):
    """Return the quanta that a data frame with a payload of n bytes consumes."""
    return max(16, -(-(n + 120) // 65))


def ip_bytes(ip):
    at = ipaddress.ip_address(ip)
    return at.packed if at.version == 6 else (
        bytes(10) + b"\xff\xff" + at.packed)


def name(text):
    return text.encode().ljust(128, b"\0")
