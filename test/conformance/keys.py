# keys.py - keys and tags of PROTOCOL.md, section 14, with another library
# SPDX-License-Identifier: BSD-3-Clause
"""Everything here follows PROTOCOL.md, RFC 8452 (POLYVAL), RFC 5869 (HKDF) and
revision 34 of the Noise Protocol Framework, and uses no code from engine/. The
primitives come from the package cryptography."""
import hashlib
import hmac
import struct

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import (
    X25519PrivateKey, X25519PublicKey)
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR
from cryptography.hazmat.primitives.cmac import CMAC
from cryptography.hazmat.primitives.serialization import (
    Encoding, PublicFormat)

NOISE = b"Noise_NNpsk0_25519_AESGCM_SHA256"
TO_SERVER, TO_WORKER = 0, 1  # directions


def expand(key, label, n):
    """Return HKDF-Expand with SHA-256; n is at most 32, so there is one block."""
    return hmac.digest(key, label.encode() + b"\1", "sha256")[:n]


def key_id(secret):
    return expand(secret, "sumwire key id", 8)


def cmac(key, text):
    c = CMAC(AES(key))
    c.update(text)
    return c.finalize()


def mac_key(secret, label):
    """Return the key of the MACs in HELLO ("sumwire hello") and COOKIE
    ("sumwire cookie")."""
    return expand(secret, label, 16)


# --- POLYVAL ---

POLYNOMIAL = 1 << 128 | 1 << 127 | 1 << 126 | 1 << 121 | 1


class Polyval:
    """The keyed hash of payloads. Products with the key are linear, so a table
    holds the product of each byte at each place."""

    def __init__(self, key):
        h = int.from_bytes(key, "little")
        powers = [self.halved(h, 128)]  # h·x^-128, then multiplied by x each time
        while len(powers) < 128:
            v = powers[-1] << 1
            powers.append(v ^ POLYNOMIAL if v >> 128 else v)
        self.table = []
        for place in range(16):
            row = [0] * 256
            for bit in range(8):
                for byte in range(1 << bit):
                    row[1 << bit | byte] = row[byte] ^ powers[8 * place + bit]
            self.table.append(row)

    @staticmethod
    def halved(v, times):
        """Return v·x^-times."""
        for _ in range(times):
            v = (v ^ POLYNOMIAL if v & 1 else v) >> 1
        return v

    def blocks(self, text):
        """Return POLYVAL of whole blocks."""
        s = 0
        for at in range(0, len(text), 16):
            s ^= int.from_bytes(text[at:at + 16], "little")
            product = 0
            for row, byte in zip(self.table, s.to_bytes(16, "little")):
                product ^= row[byte]
            s = product
        return s.to_bytes(16, "little")

    def hash(self, payload):
        """Return h of a payload: padded with zeros, then the block of lengths."""
        pad = bytes(-len(payload) % 16)
        lengths = struct.pack("<QQ", 0, 8 * len(payload))
        return self.blocks(payload + pad + lengths)


# --- Noise ---

def hkdf(chain, text, n):
    """Compute HKDF of the Noise specification, section 4.3."""
    temp = hmac.digest(chain, text, "sha256")
    out, last = [], b""
    for i in range(1, n + 1):
        last = hmac.digest(temp, last + bytes([i]), "sha256")
        out.append(last)
    return out


class Noise:
    """One end of NNpsk0. e: its ephemeral private key, 32 bytes."""

    def __init__(self, prologue, secret, e):
        assert len(NOISE) == 32  # 32 bytes, so not hashed
        self.chain = self.h = NOISE
        self.mix_hash(prologue)
        self.e = X25519PrivateKey.from_private_bytes(e)
        self.chain, mixed, self.key = hkdf(self.chain, secret, 3)
        self.mix_hash(mixed)
        self.n = 0

    def mix_hash(self, text):
        self.h = hashlib.sha256(self.h + text).digest()

    def mix_key(self, text):
        self.chain, self.key = hkdf(self.chain, text, 2)
        self.n = 0

    def nonce(self):
        self.n += 1
        return bytes(4) + struct.pack(">Q", self.n - 1)

    def seal(self, text):
        sealed = AESGCM(self.key).encrypt(self.nonce(), text, self.h)
        self.mix_hash(sealed)
        return sealed

    def open(self, sealed):
        """Decrypt, and authenticate; raise InvalidTag on failure."""
        text = AESGCM(self.key).decrypt(self.nonce(), sealed, self.h)
        self.mix_hash(sealed)
        return text

    def own(self):
        e = self.e.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        self.mix_hash(e)
        self.mix_key(e)  # as in all psk patterns
        return e

    def other(self, e):
        self.far = X25519PublicKey.from_public_bytes(e)
        self.mix_hash(e)
        self.mix_key(e)

    def ask(self, text):
        return self.own() + self.seal(text)

    def asked(self, message):
        self.other(message[:32])
        return self.open(message[32:])

    def answer(self, text):
        e = self.own()
        self.mix_key(self.e.exchange(self.far))  # refuses an all-zero result
        return e + self.seal(text)

    def answered(self, message):
        self.other(message[:32])
        self.mix_key(self.e.exchange(self.far))
        return self.open(message[32:])

    def split(self):
        """Return the keys from worker to server, and back."""
        return hkdf(self.chain, b"", 2)


# --- a session ---

def crypt(key, nonce, text):
    """Encrypt or decrypt under a nonce of 12 bytes."""
    c = Cipher(AES(key), CTR(nonce + bytes(4))).encryptor()
    return c.update(text) + c.finalize()


def era_key(key, era):
    """Return the result key of an era."""
    return key if not era else crypt(
        key, struct.pack("<III", 0xffffffff, era & 0xffffffff, 0), bytes(16))


def era_near(newest, bits):
    """Return the era with these lowest 4 bits, at most one above the newest."""
    ahead = (bits - newest) & 15
    return newest + ahead - 16 * (ahead > 1)


def nonce_of(cls, psn):
    return struct.pack("<B3xQ", cls, psn)


class Direction:
    """The keys of one direction of a session, derived from its key of split()."""

    def __init__(self, key, number):
        self.number = number
        self.tag_key = expand(key, "sumwire tag", 16)
        self.hash_key = expand(key, "sumwire hash", 16)
        self.cipher_key = expand(key, "sumwire encrypt", 16)
        self.polyval = Polyval(self.hash_key)

    def tag(self, head, h):
        """Return the 8-byte tag of a frame. head: its header up to the tag."""
        assert len(head) == 46 and len(h) == 16
        return cmac(self.tag_key, head + bytes([self.number, 0]) + h)[:8]


__all__ = ["Direction", "InvalidTag", "Noise", "Polyval", "TO_SERVER",
           "TO_WORKER", "cmac", "crypt", "expand", "key_id", "mac_key",
           "nonce_of"]
