# ft_train.py - one replica of a training job with torchft; by torch_ft.py
# SPDX-License-Identifier: BSD-3-Clause
"""ft_train.py NAME ADDRESS STOP: train until the file STOP exists, and print
after each step "step NUMBER PARTICIPANTS WEIGHTS"."""
import os
import sys
import time
from datetime import timedelta

import torch
from torch.distributed import TCPStore
from torchft import DistributedDataParallel, Manager, Optimizer

from sumwire.torch.ft import ProcessGroup

PAUSE_S = 0.1
LIMIT = timedelta(seconds=30)


def main(me, address, stop):
    torch.manual_seed(me)
    model = torch.nn.Linear(4, 1)
    inner = torch.optim.SGD(model.parameters(), lr=0.01)
    store = TCPStore(address, 0, is_master=True, wait_for_workers=False)
    os.environ.update(MASTER_ADDR=address, MASTER_PORT=str(store.port), RANK="0",
                      WORLD_SIZE="1")
    group = ProcessGroup(timeout=LIMIT)
    manager = Manager(
        pg=group, min_replica_size=1, replica_id=f"replica{me}_", rank=0,
        world_size=1, timeout=LIMIT, quorum_timeout=LIMIT, hostname=address,
        load_state_dict=lambda d: (model.load_state_dict(d["model"]),
                                   inner.load_state_dict(d["inner"])),
        state_dict=lambda: {"model": model.state_dict(),
                            "inner": inner.state_dict()})
    distributed = DistributedDataParallel(manager, model)
    optimizer = Optimizer(manager, inner)
    while not os.path.exists(stop):
        try:
            optimizer.zero_grad()
            x = torch.ones(2, 4) * (me + 1)
            distributed(x).square().mean().backward()
            before = manager.current_step()
            optimizer.step()
        except Exception as e:  # a killed peer's error
            print(f"error {type(e).__name__}: {e}", flush=True)
            continue
        if manager.current_step() > before:
            weights = ",".join(f"{w:.6f}" for w in model.weight[0].tolist())
            print(f"step {manager.current_step()} "
                  f"{manager.num_participants()} {weights}", flush=True)
        time.sleep(PAUSE_S)
    group.shutdown()
    manager.shutdown(wait=False)
    print("end", flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
