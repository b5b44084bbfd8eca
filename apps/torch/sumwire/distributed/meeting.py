# meeting.py - what the ranks of a group tell each other before it is there
# SPDX-License-Identifier: BSD-3-Clause
"""By torch's store.  torchrun's may be that of an attempt that failed, so
all that it holds may be old: a meeting has keys of its own, by a word that
rank 0 makes when it has seen all of today's ranks."""
import atexit
import json
import secrets
import threading
import time

from torch import distributed as dist

from sumwire.distributed.errors import SumwireError

PAUSE_S = 0.01
GRACE_S = 2  # for the store to say that the limit is over; a file's takes one

_waiting = set()  # threads that ask a store


@atexit.register
def end():
    """A thread that comes back from the store while the interpreter ends aborts
    the process.  What the store has not said by then it will not say."""
    until = time.monotonic() + GRACE_S
    for thread in list(_waiting):
        thread.join(max(0, until - time.monotonic()))


class Meeting:
    """store is the group's, with keys that no earlier attempt has used.  With a
    problem of any rank, in words, there is no meeting."""

    def __init__(self, opts, problem=None):
        self.me, self.n = opts.group_rank, opts.group_size
        self.limit, self.limit_s = opts.timeout, opts.timeout.total_seconds()
        lobby = dist.PrefixStore("sumwire/", opts.store)
        self.mark = {"id": secrets.token_hex(8), "problem": problem,
                     "ranks": list(opts.global_ranks_in_group)}
        word, marks = self._safely(self._host if self.me == 0 else self._come,
                                   lobby)
        problems = [f"rank {rank}: {m['problem']}"
                    for rank, m in enumerate(marks) if m["problem"]]
        if problems:
            raise SumwireError("SW_EREFUSED", "; ".join(problems))
        for rank, m in enumerate(marks):
            if m["ranks"] != marks[0]["ranks"]:
                raise SumwireError(
                    "SW_EMISMATCH", f"rank 0 of group {opts.group_id} has "
                    f"ranks {marks[0]['ranks']} in it, rank {rank} "
                    f"{m['ranks']}")
        self.store = dist.PrefixStore(word + "/", lobby)

    def tell(self, what, value, rank=None):
        rank = self.me if rank is None else rank
        self._safely(lambda store: store.set(f"{what}/{rank}",
                                             json.dumps(value)), self.store)

    def ask(self, what, rank):
        return self._safely(lambda store: self._get(store, f"{what}/{rank}"),
                            self.store)

    def all(self, what, ranks=None):
        return [self.ask(what, r) for r in ranks or range(self.n)]

    def _get(self, store, key):
        """Within the group's timeout, which may not be the store's."""
        store.wait([key], self.limit)
        return json.loads(store.get(key))

    def _safely(self, call, store):
        """In a thread of its own: torch's own limit ends with a question to the
        store, which waits without a limit if that is frozen or cut off."""
        ended = []

        def run():
            try:
                ended.append((call(store), None))
            except Exception as e:
                ended.append((None, e))
            _waiting.discard(thread)
        thread = threading.Thread(target=run, daemon=True)
        _waiting.add(thread)
        thread.start()
        thread.join(self.limit_s + GRACE_S)
        value, error = ended[0] if ended else (None, RuntimeError(
            f"it has not answered in {self.limit_s:g} s"))
        if isinstance(error, RuntimeError) and not isinstance(
                error, SumwireError):  # torch's errors of stores are such
            text = str(error).partition("\n")[0]
            error = SumwireError("SW_EIO", f"rank {self.me} cannot reach the "
                                 f"other {self.n - 1} ranks by torch's store: "
                                 f"{text}")
        if error:
            raise error
        return value

    def _come(self, lobby):
        """Say that this rank is here, until rank 0 has seen it."""
        lobby.set(f"rank/{self.me}", json.dumps(self.mark))
        end = time.monotonic() + self.limit_s
        while True:
            word, marks = self._get(lobby, "ranks")
            if self.mark in marks:
                lobby.set(f"{word}/here/{self.me}", "")
                return word, marks
            self._pause(end, [0])

    def _host(self, lobby):
        """Say whom rank 0 has seen, until all have found themselves there."""
        marks, end = None, time.monotonic() + self.limit_s
        while True:
            seen = [self.mark, *(self._get(lobby, f"rank/{r}")
                                 for r in range(1, self.n))]
            if seen != marks:
                marks, word = seen, secrets.token_hex(8)
                lobby.set("ranks", json.dumps([word, marks]))
            late = [r for r in range(1, self.n)
                    if not lobby.check([f"{word}/here/{r}"])]
            if not late:
                return word, marks
            self._pause(end, late)

    def _pause(self, end, late):
        if time.monotonic() > end:
            raise SumwireError("SW_ETIMEDOUT", f"rank {self.me} of {self.n}: no "
                               f"sign of rank {', '.join(map(str, late))} in "
                               f"{self.limit_s:g} s")
        time.sleep(PAUSE_S)
