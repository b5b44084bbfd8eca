# flood.py - send unwanted datagrams to ADDRESS:PORT... until it is killed
# SPDX-License-Identifier: BSD-3-Clause
"""The datagrams have random bytes, no bytes, a byte less than our header, or
many bytes. Others consist of dozens of ten-byte pieces, which the kernel
splits, or joins for a socket that asks for it.

The flood pauses between rounds, to leave the machine's cores to the test."""
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
