# cases_ops.py - sums of single tensors against gloo's; run by torch_ops.py
# SPDX-License-Identifier: BSD-3-Clause
import os
import threading

import torch

import sumwire.torch as hvd
from torch_rig import check, gloo, raises, run_cases

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.uint8, torch.int8, torch.int32, torch.int64]


def sample(dtype, shape, seed=0):
    """Return a sample, the same on every run and different on every rank."""
    g = torch.Generator().manual_seed(1000 * seed + hvd.rank())
    if dtype.is_floating_point:
        return torch.randn(shape, generator=g).to(dtype)
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=g).bool()
    return torch.randint(0, 20, shape, generator=g).to(dtype)


def gloo_sum(tensor):
    """Return gloo's sum; for bf16, which gloo lacks, add as f32 in rank order."""
    dist = gloo()
    if tensor.dtype in (torch.bfloat16, torch.float16):
        wide = gloo_sum(tensor.float())
        return wide.to(tensor.dtype)
    out = tensor.clone()
    dist.all_reduce(out)
    return out


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and bool((a == b).all())


def is_near(a, b, eps):
    """Compare, except for rounding that depends on the order of additions."""
    return a.dtype == b.dtype and a.shape == b.shape and bool(
        ((a - b).abs() <= 4 * eps * (1 + b.abs())).all())


def is_sum(got, x):
    """Compare within the rounding of an f32 sum in any order."""
    bound = 4 * 2 ** -24 * gloo_sum(x.abs())
    return bool(((got - gloo_sum(x)).abs() <= bound).all())


def case_sums():
    for dtype in FLOATS + INTEGERS:
        for shape in [(1,), (3, 5), (70001,), (2, 1, 9000)]:
            x = sample(dtype, shape)
            y = hvd.allreduce(x, op=hvd.Sum, name=f"{dtype}{shape}")
            want = gloo_sum(x)
            if hvd.size() == 2 or not dtype.is_floating_point:
                check(same(y, want), f"sum of {dtype} {shape}")
            bound = 2 * torch.finfo(dtype).eps * gloo_sum(
                x.double().abs()) if dtype.is_floating_point else 0
            check(bool(((y.double() - want.double()).abs() <= bound).all()),
                  f"sum of {dtype} {shape} is too far off")


def case_ranks():
    """The launcher sets ranks and sizes."""
    theirs = [int(os.environ[k]) for k in ("RANK", "WORLD_SIZE", "LOCAL_RANK",
                                           "LOCAL_WORLD_SIZE")]
    ours = [hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size()]
    check(ours == theirs, f"{ours}, but the launcher says {theirs}")
    all_ranks = [hvd.broadcast_object((hvd.rank(), hvd.local_rank()), r)
                 for r in range(hvd.size())]
    check(all_ranks == [(r, r) for r in range(hvd.size())],
          f"ranks and local ranks {all_ranks}")


def case_bool():
    x = sample(torch.bool, (1000,))
    y = hvd.allreduce(x, op=hvd.Sum)
    check(same(y, gloo_sum(x.int()) > 0), "the sum of bools is their or")
    with raises(TypeError, "bool", "Sum"):
        hvd.allreduce(x)


def case_averages():
    n = hvd.size()
    for dtype in FLOATS:
        x = sample(dtype, (1000,))
        y = hvd.push_pull(x, name=f"average {dtype}")
        want = gloo_sum(x.double()) / n
        eps = torch.finfo(dtype).eps
        check(bool(((y.double() - want).abs() <= 3 * eps * (
            1 + want.abs())).all()), f"average of {dtype}")
    x = sample(torch.int32, (1000,)) - 9
    check(same(hvd.allreduce(x), torch.div(gloo_sum(x), n,
                                           rounding_mode="trunc")),
          "the average of integers is rounded towards zero")
    big = torch.full((8,), 60000.0, dtype=torch.float16)
    check(same(hvd.allreduce(big), big), "an average of f16 overflows")
    y = hvd.allreduce(torch.ones(4), op=hvd.Sum, prescale_factor=3.0,
                      postscale_factor=0.5)
    check(same(y, torch.full((4,), 1.5 * n)), "scale factors")


def case_integers_are_scaled():
    """Integers are scaled in f64 and truncated, as in Horovod. 2^40 + 1 does
    not fit into an f32."""
    n, big = hvd.size(), 2 ** 40 + 1
    x = torch.tensor([big, -big, 7, -7])
    for name, factors in (("pre", {"prescale_factor": 1.5}),
                          ("post", {"postscale_factor": 1.5})):
        each = 1 if name == "post" else n
        of = n if name == "post" else 1
        want = torch.tensor([each * int(1.5 * of * v) for v in x.tolist()])
        y = hvd.allreduce(x, op=hvd.Sum, name=f"scaled {name}", **factors)
        check(same(y, want), f"{name}: {y}, {want} was expected")
    huge = torch.tensor([2 ** 60 + 1])  # does not fit into an f64 either
    y = hvd.allreduce(huge, op=hvd.Sum, prescale_factor=2.0)
    check(same(y, n * 2 * huge), "a whole factor is exact")
    for dtype in INTEGERS:
        y = hvd.allreduce(torch.full((5,), 3, dtype=dtype), op=hvd.Sum,
                          postscale_factor=0.5)
        check(same(y, torch.full((5,), 3 * n // 2, dtype=dtype)), f"{dtype}")
    out = hvd.grouped_allreduce([x, x[:2]], op=hvd.Sum, prescale_factor=1.5,
                                postscale_factor=2)
    check(same(out[1], torch.tensor([2 * n * int(1.5 * big),
                                     -2 * n * int(1.5 * big)])), "a group")


def case_in_place():
    x = sample(torch.float32, (6, 8))
    y = x.clone()
    check(hvd.allreduce_(y, op=hvd.Sum) is y, "in place is the same tensor")
    check(is_sum(y, x), "in place")
    columns = x.clone().t()
    hvd.allreduce_(columns, op=hvd.Sum)
    check(is_sum(columns.t(), x), "a transposed tensor")
    part = torch.zeros(6, 16)
    part[:, ::2] = x
    hvd.allreduce_(part[:, ::2], op=hvd.Sum)
    check(is_sum(part[:, ::2], x) and not part[:, 1::2].any(),
          "every other column")
    scalar = torch.tensor(float(hvd.rank()))
    n = hvd.size()
    check(hvd.allreduce(scalar, op=hvd.Sum) == n * (n - 1) / 2, "a scalar")
    empty = torch.empty(0, 3)
    check(hvd.allreduce(empty).shape == (0, 3), "no elements")


def case_handles():
    xs = [sample(torch.float32, (100 + i,), i) for i in range(20)]
    handles = [hvd.allreduce_async(x, op=hvd.Sum, name=f"h{i}")
               for i, x in enumerate(xs)]
    unnamed = [hvd.push_pull_async(x, average=False) for x in xs]
    for h, u, x in reversed(list(zip(handles, unnamed, xs))):
        check(is_sum(hvd.synchronize(h), x), "by name")
        check(is_sum(hvd.synchronize(u), x), "by order")
    h = hvd.allreduce_async_(xs[0], name="h0")
    while not hvd.poll(h):
        pass
    hvd.synchronize(h)
    with raises(ValueError, "no operation with handle", str(h)):
        hvd.synchronize(h)
    for shape in [(3,), (4, 5), (3,)]:  # one name, several shapes
        check(same(hvd.allreduce(torch.ones(shape), name="reshaped"),
                   torch.ones(shape)), "a name whose shape changes")


def case_new_names():
    """Many new names are declared together; ranks may first wait for other
    calls."""
    xs = [torch.full((64,), float(i)) for i in range(600)]
    handles = [hvd.allreduce_async(x, op=hvd.Sum, name=f"new{i}")
               for i, x in enumerate(xs)]
    for x in xs:
        x.zero_()  # not in place: the caller may reuse it
    if hvd.rank() % 2:
        hvd.barrier()
    for i, h in reversed(list(enumerate(handles))):
        check(bool((hvd.synchronize(h) == i * hvd.size()).all()), f"new{i}")
    if hvd.rank() % 2 == 0:
        hvd.barrier()


def case_new_sizes():
    """New sizes of one name are declared one by one, as the script waits for
    each."""
    for n in range(1, 400):
        x = hvd.allreduce(torch.full((n,), hvd.rank() + 1), name="grows",
                          op=hvd.Sum)
        check(same(x, torch.full((n,), sum(range(hvd.size() + 1)))),
              f"sum of {n}")


def case_groups():
    """One handle for several tensors: several types, unusual layouts, no
    elements."""
    xs = [sample(torch.float32, (100 + i,), i) for i in range(20)]
    out = hvd.grouped_allreduce(xs, op=hvd.Sum, name="group")
    check(all(is_sum(y, x) for x, y in zip(xs, out)), "grouped")
    mixed = [sample(torch.float32, (3, 5)).t(), torch.empty(0, 2),
             sample(torch.int64, (7,)) - 9, sample(torch.bfloat16, (4, 1)),
             torch.tensor(2.0)]
    for name in (None, "mixed"):
        h = hvd.grouped_allreduce_async(mixed, name=name, prescale_factor=2)
        while not hvd.poll(h):
            pass
        for x, y in zip(mixed, hvd.synchronize(h)):
            want = hvd.allreduce(x, prescale_factor=2)
            eps = (torch.finfo(x.dtype).eps if x.is_floating_point() else 0)
            check(is_near(y, want, eps), f"{x.dtype} {tuple(x.shape)}: {y}")
    ours = [x.clone() for x in xs]
    check(hvd.grouped_allreduce_(ours, compression=hvd.Compression.bf16)[0] is
          ours[0], "in place")
    for x, y in zip(xs, ours):
        want = hvd.allreduce(x, compression=hvd.Compression.bf16)
        check(is_near(y, want, 2 ** -7), "a compressed group")
    other = [torch.ones(2 + hvd.rank()), torch.ones(4 - hvd.rank())]
    with raises(ValueError, "group other", "'0'", "(2,) on rank 0",
                "(3,) on rank 1"):
        hvd.grouped_allreduce(other, name="other")


def case_compression():
    x = sample(torch.float32, (5000,))
    for c, eps in [(hvd.Compression.fp16, 2 ** -10),
                   (hvd.Compression.bf16, 2 ** -7)]:
        y = hvd.allreduce(x, op=hvd.Sum, compression=c, name=str(c))
        # Half of eps each for the cast, the agent (local ranks) and the server.
        bound = 1.5 * eps * gloo_sum(x.abs())
        check(y.dtype == torch.float32 and
              bool(((y - gloo_sum(x)).abs() <= bound).all()) and
              not same(y, gloo_sum(x)), f"{c}")


def case_autograd():
    x = torch.ones(5, requires_grad=True)
    y = hvd.allreduce(x, op=hvd.Sum)
    (y * (hvd.rank() + 1)).sum().backward()
    n = hvd.size()
    check(same(x.grad, torch.full((5,), n * (n + 1) / 2)),
          "the gradient of a sum is the sum of gradients")


    ones = [torch.ones(2 + i, requires_grad=True) for i in range(2)]
    still = torch.ones(3)
    ys = hvd.grouped_allreduce([*ones, still], op=hvd.Sum)
    check(not ys[2].requires_grad, "what needs none gets none")
    (sum(y.sum() for y in ys) * (hvd.rank() + 1)).backward()
    check(all(same(x.grad, torch.full_like(x, n * (n + 1) / 2)) for x in ones),
          "through a group")
    root = n - 1
    x = torch.ones(5, requires_grad=True)
    (hvd.broadcast(x, root) * (hvd.rank() + 1)).sum().backward()
    want = (n + 1) / 2 if hvd.rank() == root else 0
    check(bool(((x.grad - want).abs() < 1e-6).all()),
          f"through a broadcast, the average, at its root: {x.grad}")
    with torch.no_grad():
        check(not hvd.broadcast(x, 0).requires_grad and not
              hvd.grouped_allreduce([x])[0].requires_grad, "no_grad()")


def case_copied_types():
    """Types that cannot be summed can be copied."""
    values = [torch.tensor([-300, 5, 32767], dtype=torch.int16),
              torch.tensor([[1 + 2j, -3j]], dtype=torch.complex64),
              torch.tensor([1 - 2j], dtype=torch.complex128),
              torch.tensor(-7, dtype=torch.int16)]
    for root in range(hvd.size()):
        for i, value in enumerate(values):
            mine = value * (hvd.rank() + 1)
            want = value * (root + 1)
            check(same(hvd.broadcast(mine, root, f"copied{i}"), want),
                  f"{value.dtype} of rank {root}")
            check(same(hvd.broadcast(mine, root), want), "without a name")
            columns = torch.stack([mine.reshape(-1)] * 2).t()
            hvd.broadcast_(columns, root)
            check(same(columns, torch.stack([want.reshape(-1)] * 2).t()),
                  "a transposed one in place")
    with raises(TypeError, "sparse"):
        hvd.broadcast(torch.ones(3).to_sparse(), 0)


def case_horovod_api():
    """Queries about Horovod's build options have answers; unknown arguments
    raise the same error."""
    for name in ("mpi_built", "mpi_enabled", "gloo_built", "gloo_enabled",
                 "nccl_built", "ddl_built", "ccl_built", "cuda_built",
                 "rocm_built", "mpi_threads_supported"):
        check(getattr(hvd, name)() in (False, 0), name)
    x = torch.ones(2)
    calls = [hvd.barrier, lambda **m: hvd.broadcast(x, 0, **m),
             lambda **m: hvd.broadcast_(x, 0, **m),
             lambda **m: hvd.broadcast_async(x, 0, **m),
             lambda **m: hvd.broadcast_async_(x, 0, **m),
             lambda **m: hvd.broadcast_object(1, **m),
             lambda **m: hvd.broadcast_parameters({}, **m),
             lambda **m: hvd.allreduce(x, **m),
             lambda **m: hvd.grouped_allreduce([x], **m),
             lambda **m: hvd.allreduce_async_(x, **m)]
    for call in calls:
        with raises(TypeError, "process_set=[0]", "expected a ProcessSet"):
            call(process_set=[0])
        with raises(TypeError, "unexpected argument 'proces_set'"):
            call(proces_set=[0])
    with raises(TypeError, "no argument comm", "process_sets"):
        hvd.init(comm=[0, 1])
    hvd.init(process_sets=None)
    hvd.barrier()


def case_broadcast():
    for root in range(hvd.size()):
        for dtype in FLOATS + INTEGERS + [torch.bool]:
            x = sample(dtype, (257,), 7)
            want = x.clone()
            gloo_broadcast(want, root)
            name = f"b {dtype}"
            check(same(hvd.broadcast(x, root, name), want), f"{dtype}")
            check(hvd.broadcast_(x, root, name) is x and same(x, want),
                  f"{dtype} in place")
    special = torch.tensor([-0.0, float("nan"), float("inf")])
    got = hvd.broadcast(special, 0)
    check(got.numpy().tobytes() == special.numpy().tobytes(), "bits survive")
    with raises(ValueError, "root_rank=99", "0 to"):
        hvd.broadcast(special, 99)


def gloo_broadcast(tensor, root):
    if tensor.dtype in (torch.bfloat16, torch.bool):  # gloo supports neither
        wide = tensor.float()
        gloo().broadcast(wide, root)
        tensor.copy_(wide)
    else:
        gloo().broadcast(tensor, root)


def case_objects():
    mine = {"rank": hvd.rank(), "list": list(range(300000)), "t": torch.ones(2)}
    got = hvd.broadcast_object(mine, root_rank=1)
    check(got["rank"] == 1 and len(got["list"]) == 300000, "broadcast_object")
    check(hvd.broadcast_object(None) is None, "None")


def case_threads():
    """A waiting thread delays no other thread's sums."""
    for name in "awaited", "other":
        hvd.allreduce(torch.ones(10), name=name)
    if hvd.rank() == 0:
        waits = threading.Thread(target=lambda: hvd.allreduce(
            torch.ones(10), name="awaited"))
        waits.start()
    for _ in range(50):
        hvd.allreduce(torch.ones(10), name="other")
    if hvd.rank() == 0:
        check(waits.is_alive(), "the other waits for this one")
    hvd.barrier()
    if hvd.rank():
        hvd.allreduce(torch.ones(10), name="awaited")
    else:
        waits.join()


def case_without_numpy():
    """PyTorch does not require NumPy, so we do not."""
    with raises(ImportError):
        __import__("numpy")
    got = hvd.broadcast_object({"rank": hvd.rank(), "t": torch.ones(2)}, 1)
    check(got["rank"] == 1 and got["t"].tolist() == [1, 1], f"{got}")
    optimizer = torch.optim.SGD([torch.ones(2, requires_grad=True)],
                                lr=0.1 + hvd.rank())
    hvd.broadcast_optimizer_state(optimizer, 1)
    check(optimizer.param_groups[0]["lr"] == 1.1, "rank 1's rate")


def case_refused():
    n = hvd.size()
    with raises(TypeError, "int16", "float32", "convert"):
        hvd.allreduce(torch.ones(3, dtype=torch.int16))
    with raises(TypeError, "complex64"):
        hvd.allreduce(torch.ones(3, dtype=torch.complex64))
    with raises(TypeError, "list"):
        hvd.allreduce([1, 2])
    with raises(TypeError, "sparse", "to_dense"):
        hvd.allreduce(torch.ones(3).to_sparse())
    with raises(ValueError, "average and op"):
        hvd.allreduce(torch.ones(3), average=True, op=hvd.Sum)
    h = hvd.allreduce_async(torch.ones(3), name="twice", op=hvd.Sum)
    with raises(ValueError, "twice", "in use"):
        hvd.allreduce_async(torch.ones(3), name="twice")
    check(same(hvd.synchronize(h), torch.full((3,), float(n))),
          "the first of two survives the refusal of the second")
    for more in ({"priority": -1}, {"priority": "high"}, {"name": "a\0b"}):
        with raises(ValueError, "NUL", "priority of at least 0"):
            hvd.allreduce(torch.ones(3), **{"name": "new", **more})
    check(same(hvd.push_pull(torch.ones(3), name="new", priority=-7),
               torch.ones(3)), "a refused name is free; BytePS's priority")
    for root in ("0", 0.5):
        with raises(ValueError, f"root_rank={root!r}", "ranks 0 to"):
            hvd.broadcast(torch.ones(3), root)
    with raises(TypeError, "unexpected argument 'nmae'"):
        hvd.allreduce(torch.ones(3), nmae="x")
    with raises(NotImplementedError, "Adasum", "op=Average"):
        hvd.allreduce(torch.ones(3), op=hvd.Adasum)
    with raises(AttributeError, "no attribute 'alreduce'"):
        hvd.alreduce(torch.ones(3))


if __name__ == "__main__":
    hvd.init()
    run_cases(globals())
