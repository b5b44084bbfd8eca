# bound_rank.py - a rank whose steps have one bottleneck; used by proc_trace_bounds.py
# SPDX-License-Identifier: BSD-3-Clause
"""bound_rank.py SOCKET WHAT: make steps until it is killed.

plain      one tensor
straggler  one tensor, and rank 1 calls late
compute    a small tensor, and a long time later the other one
copy       a tensor of a device"""
import ctypes
import sys
import time

from sumwire.client import Client
from sumwire.device import Device

N, LATE_S = 65536, 0.1


def main(socket, what):
    client, step = Client(socket), 0
    device = Device(client, 0) if what == "copy" else client
    small, large = device.declare([("small", 16, "f32", 0), ("w", N, "f32", 1)])
    memory = (ctypes.c_float * N)()
    if what == "copy":
        large.address = ctypes.addressof(memory)
    while True:
        if what == "compute":
            device.push(small, step)
            time.sleep(LATE_S)
        elif what == "straggler" and client.rank == 1:
            time.sleep(LATE_S)
        device.push(large, step)
        for tensor in (small, large) if what == "compute" else (large,):
            device.wait(tensor)
        step += 1


main(*sys.argv[1:])
