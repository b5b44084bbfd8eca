# torch_rig.py - run Python programs as the ranks of a job, next to gloo
# SPDX-License-Identifier: BSD-3-Clause
"""Helpers for the tests of apps/torch, on top of ../proc/rig.py.

    with TorchNet(2) as net:
        net.start_all()
        net.ranks_ok("cases_ops.py", "allreduce", "names")

A file cases_*.py holds functions case_NAME(), which every rank runs in the
order given, in one process; run_cases() is its main. In a rank,
torch.distributed is initialized with gloo over a file of the net's folder.

A program of several ranks ends well only if all do. python() is the
interpreter: $SUMWIRE_TEST_PYTHON, or else /usr/bin/python3, which has Debian's
python3-torch."""
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "test", "proc"))

import forks  # noqa: E402
import rig  # noqa: E402
from rig import Net, check  # noqa: E402

SKIP = 77  # meson's exit code for a skipped test


def python():
    return os.environ.get("SUMWIRE_TEST_PYTHON", "/usr/bin/python3")


def has_torch(what="assert importlib.util.find_spec('torch')"):
    """Check for torch, or for a feature of it, without the seconds of an
    import."""
    return subprocess.run(
        [python(), "-c", f"import importlib.util; {what}"], check=False,
        stderr=subprocess.DEVNULL).returncode == 0


def need_compile():
    if not has_torch("import importlib.metadata; assert tuple(map(int, importlib."
                     "metadata.version('torch').split('.')[:2])) >= (2, 1)"):
        raise rig.Skip(f"{python()}: no torch.compile before PyTorch 2.1")


class TorchNet(Net):
    """A job whose ranks are Python programs, one per agent or per local rank.
    Ranks that compute leave an agent little CPU on a small machine, so unless
    the test sets dead_after, it is a minute."""

    def __init__(self, agents=2, local=None, job=None, **rest):
        super().__init__(agents=agents, local=local,
                         job={"dead_after": "60s", **(job or {})}, **rest)
        self.n_runs = 0
        # (agent, local rank) by rank
        self.places = [(a, i) for a, n in zip(
            self.agents, local or [1] * agents) for i in range(n)]

    def environment(self, rank):
        agent, local_rank = self.places[rank]
        return {"SUMWIRE_AGENT": self.socket(agent),
                "SUMWIRE_LAUNCHER": "torchrun",
                "LOCAL_RANK": str(local_rank),
                "SUMWIRE_LIBRARY": rig.program("pmd/client/libsumwire.so"),
                "PYTHONPATH": os.path.join(ROOT, "apps", "torch"),
                "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1",
                "RANK": str(rank), "WORLD_SIZE": str(len(self.places)),
                "GLOO_SOCKET_IFNAME": "lo",
                "TORCH_FR_DUMP_TEMP_FILE": self.path("flight/rank_"),
                "TEST_STORE": self.path(f"store{self.n_runs}")}

    def namespaces(self, rank):
        """Return files of /proc of processes outside this program."""
        del rank
        return ()

    def rank(self, rank, *args, env=None):
        """Start one rank's program."""
        pairs = {**self.environment(rank), **(env or {})}
        return self.run(f"rank{rank}.{self.n_runs}", *args, start=forks.starter(
            python(), pairs, rank, self.namespaces(rank)))

    def ranks(self, *args, env=None):
        """Start one program on all ranks."""
        self.n_runs += 1
        return [self.rank(r, *args, env=env) for r in range(len(self.places))]

    def cases(self, file, *names, env=None):
        return self.ranks(os.path.join(HERE, file), *names, env=env)

    def ranks_ok(self, file, *names, env=None):
        """Run the cases of a file at all ranks; all must end well."""
        started = self.cases(file, *names, env=env)
        for p in started:
            p.wait_ok(rig.RUN_S)
        for p in started:
            for name in names:
                check(f"ok {name}\n" in p.out(), f"{p.name} skipped {name}")
        self.remove_files()
        return started

    def remove_files(self):
        for name in os.listdir(self.folder):
            if name.startswith("store"):
                os.remove(self.path(name))
        shutil.rmtree(self.path("flight"), ignore_errors=True)

    def __exit__(self, kind, value, trace):
        self.remove_files()
        return super().__exit__(kind, value, trace)


def main(tests):
    """Run as rig.main does; skip all tests without torch."""
    if not has_torch():
        print(f"SKIP: {python()} has no torch; install python3-torch, or set "
              f"SUMWIRE_TEST_PYTHON")
        sys.exit(SKIP)
    rig.main(tests)


# --- in a rank ---

def gloo():
    """Initialize torch.distributed over all ranks."""
    import torch.distributed as dist
    store = os.environ.get("TEST_STORE")  # torchrun has set a store
    if not dist.is_initialized():
        dist.init_process_group(
            "gloo", init_method=f"file://{store}" if store else "env://",
            rank=int(os.environ["RANK"]),
            world_size=int(os.environ["WORLD_SIZE"]))
    return dist


def run_cases(cases):
    """Run case_NAME() for each NAME, in this order: FILE.py NAME...."""
    for name in sys.argv[1:]:
        cases["case_" + name]()
        # Write once, because ranks of torchrun share the pipe.
        sys.stdout.write(f"ok {name}\n")
        sys.stdout.flush()
    import torch.distributed as dist
    if dist.is_initialized():
        # Otherwise gloo's threads may abort the program at its end.
        dist.barrier()
        dist.destroy_process_group()


def raises(kind, *texts):
    """A context that must end with this kind of exception, whose text has all
    texts."""
    class Raises:
        def __enter__(self):
            return self

        def __exit__(self, got, value, _):
            check(got is not None, f"no {kind.__name__} was raised")
            if not issubclass(got, kind):
                return False
            for text in texts:
                check(text in str(value), f"'{value}' lacks '{text}'")
            self.text = str(value)
            return True
    return Raises()
