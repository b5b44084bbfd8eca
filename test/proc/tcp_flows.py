# tcp_flows.py - bulk TCP flows, as a program at either end
# SPDX-License-Identifier: BSD-3-Clause
"""tcp_flows.py serve ADDRESS N SETTLE SECONDS: accept N flows; wait for SETTLE
seconds, count the bytes of each flow for SECONDS, and print them as a JSON
list. tcp_flows.py send ADDRESS N: send N flows with cubic until the server
closes."""
import json
import os
import select
import socket
import sys
import time

PORT = 5201
PIECE = 1 << 18


def serve(address, n, settle, seconds):
    with socket.create_server((address, PORT)) as listener:
        print("listening", flush=True)
        flows = [listener.accept()[0] for _ in range(n)]
    begin = time.monotonic() + settle
    came = dict.fromkeys(flows, 0)
    while (now := time.monotonic()) < begin + seconds:
        for flow in select.select(flows, [], [], 0.1)[0]:
            got = len(flow.recv(PIECE))
            came[flow] += got if now >= begin else 0
    print(json.dumps([came[f] for f in flows]), flush=True)


def send(address, n):
    for _ in range(n - 1):
        if not os.fork():
            break
    flow = socket.socket()
    flow.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    flow.connect((address, PORT))
    piece = bytes(PIECE)
    try:
        while True:
            flow.sendall(piece)
    except (ConnectionResetError, BrokenPipeError):
        pass


if sys.argv[1] == "serve":
    serve(sys.argv[2], int(sys.argv[3]), *map(float, sys.argv[4:]))
else:
    send(sys.argv[2], int(sys.argv[3]))
