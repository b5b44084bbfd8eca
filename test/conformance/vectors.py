# vectors.py - write the test vectors of keys, or check that they are current
# SPDX-License-Identifier: BSD-3-Clause
"""usage: vectors.py [--renew]

test/vectors/keys.txt has a name and bytes in hexadecimal on each line; "-" are
no bytes.  unit_vectors.c computes the same with engine/keys/ and sum/."""
import os
import sys

import keys

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                    "..", "vectors", "keys.txt")
HEAD = """\
# keys.txt - keys, handshake, hashes and tags of PROTOCOL.md, section 14
# SPDX-License-Identifier: BSD-3-Clause
# test/conformance/vectors.py --renew writes this file; unit_vectors reads it.
"""


def count(n, start=0):
    return bytes((start + i) % 256 for i in range(n))


def lines():
    """Yield (name, bytes); the order is that of the file."""
    secret = count(32, 0x40)
    yield "secret", secret
    yield "key_id", keys.key_id(secret)
    for label in ("hello", "cookie"):
        yield f"{label}_key", keys.mac_key(secret, f"sumwire {label}")
        yield f"{label}_mac", keys.cmac(
            keys.mac_key(secret, f"sumwire {label}"), count(154))

    prologue, ask, answer = b"sumwire 1 vectors", count(344), count(40, 7)
    e = count(32, 0x01), count(32, 0xa1)
    worker, server = (keys.Noise(prologue, secret, each) for each in e)
    yield "prologue", prologue
    yield "worker_e", e[0]
    yield "server_e", e[1]
    yield "ask_payload", ask
    yield "ask", worker.ask(ask)
    fresh = keys.Noise(prologue, secret, e[0])
    assert server.asked(fresh.ask(ask)) == ask
    yield "answer_payload", answer
    message = server.answer(answer)
    yield "answer", message
    assert worker.answered(message) == answer
    assert worker.split() == server.split()
    split = worker.split()
    yield "to_server", split[0]
    yield "to_worker", split[1]

    ways = [keys.Direction(key, i) for i, key in enumerate(split)]
    for name, way in zip(("to_server", "to_worker"), ways):
        yield f"{name}_tag_key", way.tag_key
        yield f"{name}_hash_key", way.hash_key
        yield f"{name}_cipher_key", way.cipher_key

    for era in (1, 2, 0x12345678):
        yield f"era_{era}_key", keys.era_key(ways[0].cipher_key, era)

    # RFC 8452, appendix A, without the block of lengths.
    h = bytes.fromhex("25629347589242761d31f826ba4b757b")
    text = bytes.fromhex("4f4f95668c83dfb6401762bb2d01a262"
                         "d1a24ddd2721d006bbe45f20d3c9f362")
    assert keys.Polyval(h).blocks(text).hex() == (
        "f7a3b47b846119fae5b7866cf5e5b77e")

    for n in (0, 1, 15, 16, 17, 64, 1152, 1344, 8192):
        for name, way in zip(("to_server", "to_worker"), ways):
            payload = count(n, n + way.number)
            digest = way.polyval.hash(payload)
            head = count(46, 0x80 + n)
            yield "payload_bytes", n.to_bytes(4, "little")
            yield "head", head
            yield f"{name}_hash", digest
            yield f"{name}_tag", way.tag(head, digest)
            if n <= 64:  # encrypted as a push, and as a result
                yield f"{name}_cipher", keys.crypt(
                    way.cipher_key, keys.nonce_of(n % 9, n << 30), payload)
                yield f"{name}_result", keys.crypt(
                    way.cipher_key, count(12, n), payload)


def text():
    return HEAD + "".join(f"{name} {value.hex() or '-'}\n"
                          for name, value in lines())


def main():
    if sys.argv[1:] == ["--renew"]:
        with open(FILE, "w", encoding="ascii") as f:
            f.write(text())
        return 0
    if sys.argv[1:]:
        print(__doc__, file=sys.stderr)
        return 2
    with open(FILE, encoding="ascii") as f:
        is_current = f.read() == text()
    print("keys.txt is current" if is_current else
          "keys.txt differs from what this implementation computes")
    return not is_current


if __name__ == "__main__":
    sys.exit(main())
