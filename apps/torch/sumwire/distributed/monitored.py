# monitored.py - monitored_barrier, which names the missing ranks
# SPDX-License-Identifier: BSD-3-Clause
"""The barrier uses torch's store.  gloo's own barrier would connect the ranks
first, and wait for a missing rank as long as the group allows (contacts.py).
Errors use gloo's words and the group's ranks."""
import contextlib
import time

from sumwire.distributed.errors import SumwireError
from sumwire.distributed.meeting import (
    GRACE_S, Messenger, absent, as_text, pause)


class Monitored:
    """Take part in the barriers of a group, as rank me of n, with keys in
    store. """

    def __init__(self, store, me, n):
        self.store, self.me, self.n = store, me, n
        self.count = 0

    def wait(self, limit_s, group_limit_s, is_for_all):
        """Wait until all ranks have arrived.  Rank 0 waits limit_s seconds for the
        others; the others wait for rank 0 as long as the group allows.
        is_for_all: name all missing ranks instead of the first one.  Raises
        SW_ETIMEDOUT at every rank that is there."""
        self.count += 1
        prefix = f"monitored/{self.count}/"
        if self.n == 1:
            return
        if self.me == 0:
            call = lambda: self._gather(prefix, limit_s, is_for_all)
        else:
            limit_s = group_limit_s + GRACE_S
            call = lambda: self._come(prefix, limit_s)
        self.messenger = Messenger()
        try:
            self.messenger.ask(call, limit_s + GRACE_S)
        finally:
            self.messenger.close()

    # --- in the messenger's thread ---

    def _gather(self, prefix, limit_s, is_for_all):
        others = list(range(1, self.n))
        keys = [f"{prefix}{r}" for r in others]
        text = ""
        if not self._await(keys, limit_s):
            missing = absent(self.store, prefix, others)
            names = ", ".join(map(str, missing if is_for_all else missing[:1]))
            text = (f"Rank 0 timed out in monitoredBarrier after "
                    f"{limit_s * 1000:g} ms: Rank{'s' * is_for_all} {names} "
                    f"failed to pass monitoredBarrier in {limit_s * 1000:g} ms")
        self.store.set(prefix + "end", text)
        if text:
            raise SumwireError("SW_ETIMEDOUT", text)
        self._delete(f"monitored/{self.count - 1}/")

    def _delete(self, prefix):
        """Delete the keys of the previous barrier, which all ranks have
        left."""
        with contextlib.suppress(RuntimeError):  # some stores cannot delete
            for key in ["end", *range(1, self.n)]:
                self.store.delete_key(f"{prefix}{key}")

    def _come(self, prefix, limit_s):
        self.store.set(f"{prefix}{self.me}", "")
        end = prefix + "end"
        text = as_text(self.store.get(end)) if self._await(
            [end], limit_s) else f"nothing in {limit_s:g} s"
        if text:
            raise SumwireError(
                "SW_ETIMEDOUT", f"Rank {self.me} successfully reached "
                f"monitoredBarrier, but received errors while waiting for "
                f"send/recv from rank 0: {text}")

    def _await(self, keys, limit_s):
        """Wait until all keys exist; return False if the limit passes first."""
        began = time.monotonic()
        while not self.store.check(keys):
            now = time.monotonic()
            if now - began > limit_s or self.messenger.is_over:
                return False
            pause(now - began)
        return True
