# flood.py - datagrams that nobody wants, at ADDRESS:PORT... until it is killed
# SPDX-License-Identifier: BSD-3-Clause
"""Random bytes; nothing; a byte less than our header; large ones; and pieces of
ten bytes by the dozen, which the kernel cuts, or joins for who asks for that.

It pauses between rounds, for it is not to take the machine's cores.
"""
import random
import socket
import sys
import time

UDP_SEGMENT = 103  # socket option: bytes of each piece (linux/udp.h)
HEAD = 54  # bytes of our header (engine/wire/wire.h)
SIZES = (0, 1, HEAD - 1, HEAD, HEAD + 1, 1400, 8300, 65000)


def main(where):
    rng = random.Random(1)
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    cut = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    cut.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 10)
    n = 0
    while True:
        for to in where:
            for size in SIZES:
                sock.sendto(rng.randbytes(size), to)
            cut.sendto(rng.randbytes(605), to)
        n += 1
        print("round", n, flush=True)
        time.sleep(0.002)


if __name__ == "__main__":
    main([(ip, int(udp)) for ip, udp in
          (arg.split(":") for arg in sys.argv[1:])])
