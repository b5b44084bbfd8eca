# worker.py - a worker of PROTOCOL.md: joins a job of one server, sums tensors
# SPDX-License-Identifier: BSD-3-Clause
"""The worker leaves out rules of the protocol that only serve speed: it has one
link, no congestion window and one class, and it repeats requests without a
timely answer."""
import collections
import dataclasses
import random
import secrets
import socket
import struct
import time

import keys
from frames import (
    ACCEPT, ACK, CIPHER, CONTROL, COOKIE, COPY, DATA, DECLARE, DECLARED, END,
    ERROR, FAILED, HELLO, JOIN, JOIN_BYTES, JOIN_CLEAR, JOIN_SEALED,
    KEEPALIVE, LEAVE, LEFT, MESSAGES, NONE, PATHS, PROBE, PROBING, PUSH,
    RESULT, RUNNING, STATUS, Frame, fold64, has_crcs, ip_bytes, name, parse,
    quanta)

PAYLOAD = 1344
CLASS = 3
WINDOW = 512 * 1024 // 65  # quanta that the worker grants
RETRY_S, ALIVE_S = 0.05, 0.3
F32 = 0


class Refused(Exception):
    """The server, or an impostor, refused the JOIN."""


class Ended(Exception):
    """The job, the session or a tensor ended."""


class Space:
    """Received packet numbers: each is accepted once."""

    def __init__(self):
        self.largest, self.taken = 0, set()

    def is_new(self, psn):
        return psn > self.largest - 256 and psn not in self.taken

    def take(self, psn):
        self.taken.add(psn)
        self.largest = max(self.largest, psn)
        self.taken = {p for p in self.taken if p > self.largest - 256}

    def ack(self, cls):
        bits = sum(1 << i for i in range(256)
                   if self.largest - 1 - i in self.taken)
        return struct.pack("<Q32sBxHHxx", self.largest,
                           bits.to_bytes(32, "little"), cls, 0, 0)


class Tensor:
    def __init__(self, title, n):
        self.name, self.n = title, n
        self.key = self.round = 0
        self.push = self.result = None  # chunks: bytes, or None while missing

    def chunks(self, payload):
        return -(-4 * self.n // payload)


class Worker:
    """A member of a job with one server. secret: 32 bytes, or None."""

    def __init__(self, ip, server, job, member, n_members, secret=None,
                 encrypts=False):
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind((ip, 0))
        self.sock.setblocking(False)
        self.server, self.job, self.secret = server, job, secret
        self.member, self.n_members = member, n_members
        self.encrypts = encrypts
        self.path = ip_bytes(ip) + ip_bytes(server[0])
        self.nonce = random.getrandbits(64)
        self.id = random.randrange(1, 1 << 16)  # link 0
        self.seed = fold64(self.nonce)
        self.far_id = 0
        self.psn = {CONTROL: 0, CLASS: 0}
        self.spaces = {c: Space() for c in range(9)}
        self.consumed = self.far_consumed = 0
        self.grant = 256
        self.state = HELLO
        self.tx = self.rx = self.results = None  # keys of the session
        self.result_cipher = b""
        self.n_encrypted = 0  # encrypted frames received
        self.era = 0  # the newest era of results that the server announced
        self.out = collections.deque()  # messages: (number, type, payload)
        self.n_out = self.n_in = 0
        self.status = None
        self.payload = self.probed = 0
        self.tensors = {}
        self.declared = collections.deque()
        self.hint = None
        self.n_tags = 0  # frames received with a wrong tag
        self.due = self.sent = self.alive = 0.0

    # --- sending ---

    def send(self, frame):
        """Number, authenticate and send a frame."""
        frame.psn = self.psn[frame.cls] = self.psn[frame.cls] + 1
        frame.session = self.far_id
        frame.grant = self.far_consumed + WINDOW
        if frame.cls != CONTROL:
            self.consumed += quanta(len(frame.payload))
        else:
            frame.aux = self.n_in & 0xffff
            frame.weight = self.era & 0xffff
        frame.consumed = self.consumed
        if self.tx and self.encrypts and frame.payload:
            frame = self.encrypted(frame)
        if self.tx:
            text = frame.with_tag(self.tx, self.tx.polyval.hash(frame.payload))
        else:
            is_early = frame.type in (HELLO, JOIN)
            text = frame.with_crcs(0 if is_early else self.seed,
                                   fold64(self.epoch()))
        self.sock.sendto(text, self.server)
        self.sent = time.monotonic()
        return text

    def encrypted(self, frame):
        nonce = keys.nonce_of(frame.cls, frame.psn)
        return dataclasses.replace(
            frame, flags=frame.flags | CIPHER,
            payload=keys.crypt(self.tx.cipher_key, nonce, frame.payload))

    def decrypt(self, f):
        if f.type == RESULT and f.op != COPY:
            era = keys.era_near(self.era, f.flags >> 4)
            key = keys.era_key(self.result_cipher, era)
            nonce = f.head[16:28]
        else:
            key, nonce = self.rx.cipher_key, keys.nonce_of(f.cls, f.psn)
        f.payload = keys.crypt(key, nonce, f.payload)
        self.n_encrypted += 1

    def epoch(self):
        return self.status["epoch"] if self.status else 0

    def message(self, kind, payload):
        self.n_out += 1
        self.out.append((self.n_out, kind, payload))
        self.send(Frame(kind, payload, step=self.n_out & 0xffff))

    def hello(self):
        text = struct.pack("<Q", self.nonce)
        if self.secret:
            text += keys.key_id(self.secret)
            mac = self.mac("sumwire hello", text.ljust(64, b"\0"))
            text += mac
        self.send(Frame(HELLO, text.ljust(64, b"\0")))

    def mac(self, label, text):
        """Return a MAC of the handshake; text has zeros in its place."""
        return keys.cmac(keys.mac_key(self.secret, label), text + self.path)

    def join(self):
        fields = struct.pack(
            "<QIBBHHHHHHBB128s128sHBBQBBH", 0, self.id, 1, 1, self.member,
            self.n_members, 1, 0, 1, PAYLOAD, 1, self.encrypts, name(self.job),
            name(f"python{self.member}"), 0, 0, 1, 0, 0, 0, 0)
        fields = fields.ljust(JOIN_SEALED, b"\0")
        clear = struct.pack("<QQ", self.nonce, self.cookie)
        if not self.secret:
            text = clear + bytes(8) + fields
        else:
            clear += keys.key_id(self.secret)
            prologue = (b"sumwire 1" + clear + self.path +
                        struct.pack("<H", JOIN_BYTES))
            self.noise = keys.Noise(prologue, self.secret, self.e)
            text = clear + self.noise.ask(fields)
        assert len(clear) == 16 or len(clear) == JOIN_CLEAR
        self.send(Frame(JOIN, text.ljust(JOIN_BYTES, b"\0")))

    def timers(self):
        now = time.monotonic()
        if now < self.due:
            return
        self.due = now + RETRY_S
        if self.state == HELLO:
            self.hello()
        elif self.state == JOIN:
            self.join()
        elif self.far_id:
            for number, kind, payload in self.out:
                self.send(Frame(kind, payload, step=number & 0xffff))
            if self.status and self.status["state"] == PROBING and (
                    not self.probed):
                self.send(Frame(PROBE, bytes(PAYLOAD)))
            for t in self.tensors.values():
                if t.push and t.result is not None and None in t.result:
                    self.push_missing(t)
            if now - self.sent > ALIVE_S:
                self.send(Frame(KEEPALIVE))

    # --- receiving ---

    def poll(self):
        """Handle all frames that have arrived."""
        while True:
            try:
                text, source = self.sock.recvfrom(16384)
            except BlockingIOError:
                return
            if source[0] == self.server[0]:
                self.take(text)

    def take(self, text):
        f = parse(text)
        if f is None:
            return
        if f.type in (COOKIE, ACCEPT) or (f.type == ERROR and not self.rx):
            seed = 0 if f.type == COOKIE else self.seed
            if has_crcs(f, seed):
                self.handshake(f)
        elif f.session != self.id and f.type != LEFT:
            return
        elif self.rx and not self.is_tagged(f):
            self.n_tags += 1
        elif self.rx or has_crcs(f, self.seed, fold64(self.epoch())):
            self.session(f)

    def is_tagged(self, f):
        keyed = self.results if f.type == RESULT else self.rx.polyval
        return self.rx.tag(f.head, keyed.hash(f.payload)) == f.tail

    def handshake(self, f):
        nonce, = struct.unpack_from("<Q", f.payload)
        if nonce != self.nonce:
            return
        if f.type == COOKIE and self.state == HELLO:
            if self.secret and f.payload[24:40] != self.mac(
                    "sumwire cookie", f.payload[:24] + bytes(16)):
                return
            self.cookie, = struct.unpack_from("<Q", f.payload, 8)
            self.e = secrets.token_bytes(32)
            self.state, self.due = JOIN, 0
        elif f.type == ACCEPT and self.state == JOIN:
            self.accepted(f)
        elif f.type == ERROR:
            self.hint = f.payload[64:224].split(b"\0")[0].decode()
            if not self.secret:
                raise Refused(self.hint)

    def accepted(self, f):
        told = f.payload[8:16]
        if self.secret:
            try:
                sealed = self.noise.answered(f.payload[8:8 + 88])
            except keys.InvalidTag:
                return
            told = sealed[:8]
            if told[5] != self.encrypts:
                raise Refused("the server does not encrypt")
            self.result_cipher = sealed[24:40]
            self.results = keys.Polyval(sealed[8:24])
            to_server, to_worker = self.noise.split()
            self.tx = keys.Direction(to_server, keys.TO_SERVER)
            self.rx = keys.Direction(to_worker, keys.TO_WORKER)
        self.far_id, = struct.unpack_from("<I", told)
        self.state = KEEPALIVE
        self.send(Frame(KEEPALIVE))

    def session(self, f):
        """Handle a server's frame in our session."""
        if f.type == LEFT:
            if f.key == self.far_id:
                self.state = LEFT
            return
        space = self.spaces[f.cls]
        if not space.is_new(f.psn):
            return
        is_newest = f.psn > space.largest
        if f.type not in MESSAGES and f.cls == CONTROL and (
                f.type != ACK and not is_newest):
            return
        space.take(f.psn)
        if self.encrypts and f.payload:
            self.decrypt(f)
        self.alive = time.monotonic()
        if is_newest:
            self.grant = f.grant
            self.far_consumed = f.consumed
        if f.cls == CONTROL:
            if 0 < (f.weight - self.era) & 0xffff < 1 << 15:
                self.era += (f.weight - self.era) & 0xffff
            while self.out and (f.aux - self.out[0][0]) & 0xffff < 1 << 15:
                self.out.popleft()
        if f.type in MESSAGES:
            if f.step == (self.n_in + 1) & 0xffff:
                self.n_in += 1
                self.on_message(f)
            self.send(Frame(KEEPALIVE))
        elif f.type == RESULT:
            self.on_result(f)
            self.send(Frame(ACK, space.ack(f.cls)))
        elif f.type == PROBE:
            self.probed = max(self.probed, len(f.payload))
            if self.probed and not self.payload:
                self.payload = NONE  # until STATUS sets it
                self.message(PATHS, struct.pack("<HHHH", PAYLOAD, 0, 0, 0))
        elif f.type == ERROR:
            raise Ended(f.payload[64:224].split(b"\0")[0].decode())

    def on_message(self, f):
        if f.type == STATUS:
            (joined, state, _, _, size, first, payload, _, _, _,
             epoch) = struct.unpack_from("<QBBHHHHxxIQQQ", f.payload)
            self.status = {"joined": joined, "state": state, "size": size,
                           "first": first, "epoch": epoch}
            if state == RUNNING:
                self.payload = payload
            if state == FAILED:
                raise Ended(f.payload[176 + 64:176 + 224].split(
                    b"\0")[0].decode())
        elif f.type == DECLARED:
            n, is_refused = struct.unpack_from("<HH", f.payload)
            if is_refused:
                raise Ended("a tensor was refused")
            for key in struct.unpack_from(f"<{n}I", f.payload, 8):
                t = self.declared.popleft()
                t.key = key
                self.tensors[key] = t
        elif f.type == END:
            raise Ended(f.payload[64:224].split(b"\0")[0].decode())

    def on_result(self, f):
        t = self.tensors.get(f.key)
        if t and t.result is not None and f.round == t.round & NONE and (
                t.result[f.chunk] is None):
            t.result[f.chunk] = f.payload

    # --- for callers ---

    def declare(self, titles):
        """Declare f32 tensors: (name, elements) each."""
        items = b""
        for title, n in titles:
            text = title.encode()
            items += struct.pack("<QIIIBBH", n, NONE, 0, NONE, F32, 0,
                                 len(text)) + text
            self.declared.append(Tensor(title, n))
        self.message(DECLARE, struct.pack("<HHI", len(titles), self.payload,
                                          0) + items)

    def push(self, t, data):
        """Start the next round of a tensor."""
        t.round += 1
        t.push = [data[i:i + self.payload]
                  for i in range(0, len(data), self.payload)]
        t.result = [None] * len(t.push)
        self.push_missing(t)

    def push_missing(self, t):
        for chunk, payload in enumerate(t.push):
            if t.result[chunk] is None and (
                    (self.grant - self.consumed) & NONE) < 1 << 31:
                self.send(Frame(PUSH, payload, cls=CLASS, key=t.key,
                                round=t.round, chunk=chunk, weight=1,
                                dtype=F32))

    def result(self, t):
        """Return the sum, or None if it has not arrived."""
        if t.result is None or None in t.result:
            return None
        return b"".join(t.result)

    def leave(self):
        self.send(Frame(LEAVE, struct.pack("<QhBxI", 0, 0, 0, NONE).ljust(
            264, b"\0")))


def run(workers, until, limit_s=20):
    """Run the workers in turn until the condition holds."""
    end = time.monotonic() + limit_s
    while not until():
        for w in workers:
            w.poll()
            w.timers()
        if time.monotonic() > end:
            raise TimeoutError(f"after {limit_s} s: states "
                               f"{[(w.state, w.status) for w in workers]}")
        time.sleep(0.001)


assert CONTROL not in DATA
