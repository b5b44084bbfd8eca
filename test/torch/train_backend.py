# train_backend.py - training over backends by name; by torch_backend.py
# SPDX-License-Identifier: BSD-3-Clause
"""train_backend.py BACKEND[,BACKEND]... KIND...: print the losses of all steps.
The script knows only sumwire's name and import."""
import contextlib
import os
import shutil
import sys
import tempfile

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

if "sumwire" in sys.argv[1]:
    import sumwire.torch  # noqa: F401
STEPS = 6
N, WIDTH, VOCABULARY = 8, 32, 50


class Model(torch.nn.Module):
    """A transformer of two layers; the second is not always used."""

    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.layers = torch.nn.ModuleList(torch.nn.TransformerEncoderLayer(
            WIDTH, 2, 2 * WIDTH, dropout=0, batch_first=True)
            for _ in range(2))
        self.out = torch.nn.Linear(WIDTH, VOCABULARY)

    def forward(self, x, n_layers=2):
        y = self.embed(x)
        for layer in self.layers[:n_layers]:
            y = layer(y)
        return self.out(y)


def plain(model):
    return DistributedDataParallel(model)


def views(model):
    return DistributedDataParallel(model, gradient_as_bucket_view=True,
                                   bucket_cap_mb=0.02)


def static(model):
    return DistributedDataParallel(model, static_graph=True)


def unused(model):
    return DistributedDataParallel(model, find_unused_parameters=True)


def fsdp(model, **keys):
    from torch.distributed.fsdp import fully_shard
    for layer in model.layers:
        fully_shard(layer, **keys)
    return fully_shard(model, **keys)


def hsdp(model):
    from torch.distributed.device_mesh import init_device_mesh
    mesh = init_device_mesh("cpu", (2, dist.get_world_size() // 2),
                            mesh_dim_names=("replicate", "shard"))
    return fsdp(model, mesh=mesh)


def zero(model):
    return DistributedDataParallel(model)


def memory(model):
    """Run collectives in the backend's own memory."""
    model = fsdp(model)
    if dist.get_backend() != "gloo":
        model.set_allocate_memory_from_process_group_for_comm(True)
    return model


def saved(model):
    return fsdp(model)


def compiled(model):
    return torch.compile(DistributedDataParallel(model), backend="aot_eager")


def save_and_load(model, optimizer):
    """Save and load by torch.distributed.checkpoint; overwrite the state in
    between."""
    from torch.distributed import checkpoint
    from torch.distributed.checkpoint.state_dict import (
        get_state_dict, set_state_dict)
    folder = [tempfile.mkdtemp(prefix="sumwire-") if dist.get_rank() == 0
              else None]
    dist.broadcast_object_list(folder)
    weights, state = get_state_dict(model, optimizer)
    checkpoint.save({"model": weights, "optimizer": state},
                    checkpoint_id=folder[0])
    with torch.no_grad():
        for p in model.parameters():
            p.fill_(1)
    weights, state = get_state_dict(model, optimizer)
    checkpoint.load({"model": weights, "optimizer": state},
                    checkpoint_id=folder[0])
    set_state_dict(model, optimizer, model_state_dict=weights,
                   optim_state_dict=state)
    dist.barrier()
    if dist.get_rank() == 0:
        shutil.rmtree(folder[0])


def optimizer_of(kind, model):
    if kind == "zero":
        from torch.distributed.optim import ZeroRedundancyOptimizer
        return ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW,
                                       lr=1e-2)
    return torch.optim.AdamW(model.parameters(), lr=1e-2)


def main(kind):
    torch.manual_seed(0)
    model = globals()[kind](Model())
    optimizer = optimizer_of(kind, model)
    torch.manual_seed(1 + dist.get_rank())
    for step in range(STEPS):
        x = torch.randint(0, VOCABULARY, (4, N))
        n_layers = 1 if kind == "unused" and step % 2 else 2
        with (model.no_sync() if kind == "plain" and step % 2 == 0
              else contextlib.nullcontext()):
            loss = torch.nn.functional.cross_entropy(
                model(x, n_layers).flatten(0, 1), x.flatten())
            loss.backward()
        if kind != "plain" or step % 2:
            optimizer.step()
            optimizer.zero_grad()
        if kind == "saved" and step == 2:
            save_and_load(model, optimizer)
        total = loss.detach().clone()
        dist.all_reduce(total)
        print(f"loss {step} {total.item():.5f}", flush=True)


def start(backend):
    store = os.environ.get("TEST_STORE")  # torchrun has set a store
    if store:
        dist.init_process_group(
            backend, init_method=f"file://{store}.{backend}",
            rank=int(os.environ["RANK"]),
            world_size=int(os.environ["WORLD_SIZE"]))
    else:
        dist.init_process_group(backend)


if __name__ == "__main__":
    for name in sys.argv[1].split(","):
        start(name)
        for which in sys.argv[2:]:
            main(which)
        dist.barrier()  # otherwise gloo's threads may abort the program at its end
        dist.destroy_process_group()
