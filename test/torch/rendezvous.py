# rendezvous.py - the store of torchrun's rendezvous, until standard input ends
# SPDX-License-Identifier: BSD-3-Clause
"""rendezvous.py PORT: a store outside torchrun outlives each torchrun. A
failing torchrun ends its own store, and another one that still uses the store
would crash."""
import sys

from torch.distributed import TCPStore

store = TCPStore("127.0.0.1", int(sys.argv[1]), is_master=True, wait_for_workers=False)
print("listens", flush=True)
sys.stdin.read()
