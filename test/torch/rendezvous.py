# rendezvous.py - the store of torchrun's rendezvous, until the standard input ends
# SPDX-License-Identifier: BSD-3-Clause
"""rendezvous.py PORT: one that no torchrun hosts outlives each of them.  A torchrun
that fails ends its store, and whoever still asks dies of that."""
import sys

from torch.distributed import TCPStore

store = TCPStore("127.0.0.1", int(sys.argv[1]), is_master=True, wait_for_workers=False)
print("listens", flush=True)
sys.stdin.read()
