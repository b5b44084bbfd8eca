# meeting.py - agreement of a group's ranks, by torch's store, before it exists
# SPDX-License-Identifier: BSD-3-Clause
"""A meeting is a sequence of exchanges.  In each exchange, every rank gives a
value; rank 0 reads all values and writes one answer for all.  A rank makes
three requests to the store, independent of the number of ranks.  The answer is
a result or an error, so either all ranks go on, or all fail with the same
sentence.

torchrun's store may hold the keys of a failed attempt.  Therefore a meeting
begins in a lobby: each rank leaves a random id there, and rank 0 invites each
id, by a key of its own, to a random place that no earlier attempt has used."""
import atexit
import contextlib
import hashlib
import json
import queue
import secrets
import threading
import time

from torch import distributed as dist

from sumwire import client
from sumwire.distributed.errors import SumwireError

PAUSE_MIN_S, PAUSE_MAX_S = 0.003, 0.25
LOOK_S = 0.5  # period of look() while a rank waits
GRACE_S = 2  # time past the limit for rank 0's answer, or for a slow store
TEXT_MAX = 60  # longest list of ranks, in characters, that is sent in full

_messengers = set()  # Messengers whose threads run


def pause(waited_s):
    """Sleep between two checks of a key, for a third of the time waited so far.
    torch's own wait with a limit prints two lines when the limit passes."""
    time.sleep(min(max(waited_s / 3, PAUSE_MIN_S), PAUSE_MAX_S))


@atexit.register
def end():
    """Wait for threads whose store answers soon. A thread that returned from a
    call while the interpreter ends would abort the process."""
    until = time.monotonic() + GRACE_S
    for each in list(_messengers):
        each.close()
    for each in list(_messengers):
        each.thread.join(max(0, until - time.monotonic()))


def named(ranks):
    """Return the ranks as text, such as "rank 3" or "ranks 0-3, 7"."""
    ranks = sorted(ranks)
    runs = []
    for rank in ranks:
        if runs and runs[-1][1] == rank - 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    text = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
    return f"rank{'s' if len(ranks) > 1 else ''} {text}"


def digest(ranks):
    """Return a short text for an ordered list of ranks: the list, or its
    beginning and a hash."""
    text = ",".join(map(str, ranks))
    if len(text) <= TEXT_MAX:
        return text
    return (f"{text[:TEXT_MAX // 2]}… ({len(ranks)} ranks, "
            f"{hashlib.sha256(text.encode()).hexdigest()[:16]})")


def safely(call):
    """Return the value of call(), or its error, in a form that JSON carries."""
    try:
        return {"value": call()}
    except Exception as e:
        error = e if isinstance(e, client.SumwireError) else SumwireError(
            "SW_EIO", f"{type(e).__name__}: {e}")
        return {"error": (error.name, error.text)}


def opened(said):
    """Return the value that safely() caught, or raise the error."""
    if "error" in said:
        raise SumwireError(*said["error"])
    return said["value"]


class Messenger:
    """Run a thread that asks a store.  torch's calls have no time limit if the
    store is frozen or unreachable, so the caller does not make them itself."""

    def __init__(self):
        self.asked, self.is_over = queue.SimpleQueue(), False
        self.thread = threading.Thread(target=self._run, daemon=True,
                                       name="sumwire-meeting")
        _messengers.add(self)
        self.thread.start()

    def _run(self):
        for call, answered in iter(self.asked.get, None):
            try:
                answered.put((call(), None))
            except Exception as e:
                answered.put((None, e))
        _messengers.discard(self)

    def ask(self, call, limit_s):
        """Run call() in the thread, and return its value or raise its error.
        Raise RuntimeError if there is no answer in limit_s."""
        answered = queue.SimpleQueue()
        self.asked.put((call, answered))
        try:
            value, error = answered.get(timeout=limit_s)
        except queue.Empty:
            value, error = None, RuntimeError(
                f"it has not answered in {limit_s:g} s")
        if error:
            raise error
        return value

    def close(self):
        self.is_over = True
        self.asked.put(None)


class Meeting:
    """Let the ranks of a group meet, inside this context.  store is the group's
    store, with a prefix that no earlier attempt has used.  Ranks are ranks of
    the group; members has their global ranks in torch."""

    def __init__(self, opts):
        self.me, self.n = opts.group_rank, opts.group_size
        self.group_id = opts.group_id
        self.members = list(opts.global_ranks_in_group) or list(range(self.n))
        self.limit_s = opts.timeout.total_seconds()
        self.lobby = dist.PrefixStore("sumwire/", opts.store)
        self.id, self.store, self.step = secrets.token_hex(8), None, 0
        self.invited, self.again = set(), None  # ids; invites new ids
        self.look = lambda: None  # called every LOOK_S during a wait
        self.messenger = Messenger()

    def __enter__(self):
        try:
            self.store = dist.PrefixStore(
                self._ask(self._host if self.me == 0 else self._come) + "/",
                self.lobby)
            return self
        except BaseException:
            self.messenger.close()
            raise

    def __exit__(self, *_):
        self.messenger.close()

    def named(self, ranks):
        return named(self.members[r] for r in ranks)

    def exchange(self, give, decide=lambda values: values):
        """Give give()'s value and return rank 0's decide(values of all ranks).
        All ranks call it in the same order.  An error of give() at any rank,
        or of decide(), is raised at every rank."""
        step, self.step = self.step, self.step + 1
        try:
            mine = safely(give)
        except BaseException as e:  # such as Ctrl-C
            mine = {"error": ("SW_EABORTED", f"{self.named([self.me])} was "
                              f"interrupted: {type(e).__name__}")}
            self._ask(lambda: self._set(f"{step}/{self.me}", mine))
            raise
        return opened(self._ask(lambda: self._exchange(step, mine, decide)))

    def _ask(self, call):
        try:
            # GRACE_S for rank 0's answer, and for the store
            return self.messenger.ask(call, self.limit_s + 2 * GRACE_S)
        except client.SumwireError:
            raise
        except RuntimeError as e:  # torch's stores raise it
            text = str(e).partition("\n")[0]
            raise SumwireError(
                "SW_EIO", f"{self.named([self.me])} cannot reach the other "
                f"{self.n - 1} ranks through torch's store: {text}; is the "
                f"process that hosts the store still running?") from None

    # --- in the messenger's thread ---

    def _host(self):
        """Invite all ranks to one place, on rank 0."""
        place = secrets.token_hex(8)
        keys = [f"rank/{r}" for r in range(self.n)]
        self.lobby.set("rank/0", self.id)
        self._await(self.lobby, keys, self.limit_s, self._hear)
        self._invite(place)
        self.again = lambda: self._invite(place)
        return place

    def _invite(self, place):
        """Invite all new ids.  If an earlier attempt has left an id, the rank
        replaces the id when it arrives."""
        ids = self._get_all(self.lobby, [f"rank/{r}" for r in range(self.n)])
        self._check_id(ids[0])
        self._answer_to(ids[1:], place)

    def _answer_to(self, ids, answer):
        new = [i for i in ids if i not in self.invited]
        self.invited.update(new)
        self._set_all(self.lobby, [f"to/{i}" for i in new],
                      [json.dumps(answer)] * len(new))

    def _come(self):
        """Wait for the invitation, on ranks other than 0, and return the
        place."""
        self.lobby.set(f"rank/{self.me}", self.id)
        self._await(self.lobby, [f"to/{self.id}"], self.limit_s + GRACE_S,
                    lambda: self._check_id(self.lobby.get(f"rank/{self.me}")))
        return self._hear()

    def _hear(self):
        """Return the place that rank 0 has sent to this rank, or None.  Raise
        an error that was sent instead."""
        key = f"to/{self.id}"
        if not self.lobby.check([key]):
            return None
        answer = json.loads(self.lobby.get(key))
        if isinstance(answer, str):
            return answer
        return opened(answer)

    def _check_id(self, found):
        if as_text(found) != self.id:
            raise SumwireError(
                "SW_EMISMATCH", f"two processes claim place {self.me} of group "
                f"{self.group_id} as {self.named([self.me])}: give new_group "
                f"the same ranks in the same order at every rank")

    def _exchange(self, step, mine, decide):
        key = str(step)
        self._set(f"{key}/{self.me}", mine)
        if self.me == 0:
            answer = safely(lambda: decide(self._values(step)))
            return self._decide(key, answer)
        try:
            self._await(self.store, [key], self.limit_s + GRACE_S, self.look)
        except client.SumwireError as e:
            return self._decide(key, {"error": (e.name, e.text)})
        return json.loads(self.store.get(key))

    def _values(self, step):
        """Wait for the values of all ranks, on rank 0, and return them."""
        keys = [f"{step}/{r}" for r in range(self.n)]

        def look():
            self.look()
            if step == 0:
                self.again()
            if self.store.check([str(step)]):  # another rank has given up
                opened(json.loads(self.store.get(str(step))))
        self._await(self.store, keys, self.limit_s, look)
        said = [json.loads(s) for s in self._get_all(self.store, keys)]
        return [opened(each) for each in said]

    def _decide(self, key, answer):
        """Write an answer unless there is one, and return the first answer."""
        found = self.store.compare_set(key, "", as_json(answer))
        return json.loads(found)

    def _await(self, store, keys, limit_s, look):
        """Wait until all keys exist, and call look() meanwhile.  Past the limit
        raise an error that names the missing ranks."""
        began = time.monotonic()
        due = began + LOOK_S
        while not store.check(keys):
            if self.messenger.is_over:
                raise SumwireError("SW_EABORTED", f"{self.named([self.me])} "
                                   f"was interrupted")
            now = time.monotonic()
            if now > due:
                look()
                due = now + LOOK_S
            if now - began > limit_s:
                raise self._late()
            pause(now - began)

    def _late(self):
        """Return the error for a wait past its limit.  In the lobby, also send
        the error to the ranks that wait there."""
        store, prefix = ((self.lobby, "rank/") if self.store is None else
                         (self.store, f"{self.step - 1}/"))
        missing = absent(store, prefix, list(range(self.n)))
        here = self.n - len(missing)
        text = (f"timed out after {self.limit_s:g} s waiting for "
                f"{self.named(missing or [0])} to join group {self.group_id} "
                f"({here} of {self.n} ranks are here): read the output of "
                f"{'that rank' if len(missing) < 2 else 'those ranks'}, which "
                f"may have ended early or be stuck")
        if self.store is None:
            ids = self._get_all(store, [
                f"rank/{r}" for r in range(self.n)
                if r not in missing and r != self.me])
            self._answer_to(ids, {"error": ("SW_ETIMEDOUT", text)})
            with contextlib.suppress(RuntimeError):  # some stores cannot delete
                self.lobby.delete_key(f"rank/{self.me}")
        return SumwireError("SW_ETIMEDOUT", text)

    def _set(self, key, value):
        self.store.set(key, as_json(value))

    def _get_all(self, store, keys):
        """Read keys that exist, in one request if the store can."""
        if not keys:
            return []
        found = (store.multi_get(keys) if store.has_extended_api() else
                 [store.get(k) for k in keys])
        return [as_text(each) for each in found]

    def _set_all(self, store, keys, values):
        if keys and store.has_extended_api():
            store.multi_set(keys, values)
        else:
            for key, value in zip(keys, values):
                store.set(key, value)


def as_json(value):
    return json.dumps(value, separators=(",", ":"))


def as_text(found):
    return found if isinstance(found, str) else bytes(found).decode()


def absent(store, prefix, ranks):
    """Return the ranks without a key, with about log n checks for each."""
    if store.check([f"{prefix}{r}" for r in ranks]):
        return []
    if len(ranks) == 1:
        return ranks
    half = len(ranks) // 2
    return [*absent(store, prefix, ranks[:half]),
            *absent(store, prefix, ranks[half:])]
