# process_sets.py - subsets of the ranks, as Horovod's process sets
# SPDX-License-Identifier: BSD-3-Clause
"""Each process set uses one group of the library.  Its members open the group
when the set is added, and members.py calls collectives on it."""
from sumwire.client import SumwireError
from sumwire.torch.channel import agree
from sumwire.torch.job import current
from sumwire.torch.members import Members


class ProcessSet:
    """Name some ranks of the job.  ranks is a list, tuple or range of at least
    one rank.  Pass the set to init() or add_process_set() first, then to
    operations as process_set.  Only members call operations of the set.
    Methods raise ValueError while the set is not part of the current job.

    ranks           ranks of the members, in ascending order
    process_set_id  number of the set in the job; None while it is not added"""

    def __init__(self, ranks):
        if isinstance(ranks, range):
            ranks = list(ranks)
        if not isinstance(ranks, (list, tuple)) or not ranks or not all(
                isinstance(r, int) and r >= 0 for r in ranks):
            raise ValueError(f"ProcessSet({ranks!r}): expected a list of at "
                             f"least one rank")
        self._ranks = sorted(set(ranks))
        self._members = None  # Members, if this process is one of them
        self._job = None
        self.process_set_id = None  # a number while the set is added

    @property
    def ranks(self):
        """Return the global ranks of the members, in ascending order."""
        return list(self._ranks)

    def included(self):
        """Return True if this process is a member."""
        self._check()
        return current().rank in self.ranks

    def size(self):
        """Return the number of members."""
        self._check()
        return len(self.ranks)

    def rank(self):
        """Return the rank of this process among the members, from 0.  Raise
        SumwireError if it is not a member."""
        return self.members().me

    def members(self):
        """Return the collectives of the set.  Raise SumwireError if this
        process is not a member."""
        self._check()
        if self._members is None:
            raise SumwireError(
                "SW_EINVAL", f"rank {current().rank} is not in {self}: call "
                f"operations of a process set at its members only")
        return self._members

    def _check(self):
        if self.process_set_id is None or self._job is not current():
            raise ValueError(f"{self} is not part of this job: pass it to "
                             f"sumwire.torch.init() or add_process_set() first")

    def _add(self, job, number):
        if job.rank in self._ranks:
            self._members = Members(job, f"hvd.set.{number}", self._ranks)
        self._job, self.process_set_id = job, number

    def _remove(self):
        members, self._members = self._members, None
        self._job = self.process_set_id = None
        if members:
            members.close()

    def __eq__(self, other):
        return isinstance(other, ProcessSet) and (
            (self.process_set_id, self.ranks) ==
            (other.process_set_id, other.ranks))

    __hash__ = object.__hash__

    def __repr__(self):
        number = self.process_set_id
        return (f"ProcessSet(process_set_id={number}, ranks={self._ranks})")


class GlobalSet(ProcessSet):
    """Name all ranks of the job."""

    def __init__(self):
        super().__init__([0])
        self.process_set_id = 0

    @property
    def ranks(self):
        return list(range(current().size))

    def members(self):
        """Return the collectives of all ranks; the first call opens their
        group."""
        job = current()
        if not hasattr(job, "members"):
            job.members = Members(job, "hvd.all", self.ranks)
        return job.members

    def _check(self):
        current()

    def __repr__(self):
        return "ProcessSet(process_set_id=0, all ranks)"


global_process_set = GlobalSet()


def sets():
    """Return the process sets of the job by number, without number 0."""
    job = current()
    if not hasattr(job, "process_sets"):
        job.process_sets, job.n_process_sets = {}, 0
    return job.process_sets


def add_process_set(process_set):
    """Add a ProcessSet, or a list of ranks, to the job, and return the set.
    All ranks of the job, members or not, make these calls in the same order.
    Raise ValueError if a rank does not exist, or if a set has these ranks
    already."""
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    known, job = sets(), current()
    ranks = process_set.ranks
    agree("process sets", {"add_process_set": str(ranks)})
    if ranks[-1] >= job.size:
        raise ValueError(f"{process_set}: this job has ranks 0 to "
                         f"{job.size - 1}")
    if ranks == list(range(job.size)) or any(
            s.ranks == ranks for s in known.values()):
        raise ValueError(f"a process set with ranks {ranks} exists already: use "
                         f"it, or remove it first")
    job.n_process_sets += 1
    process_set._add(job, job.n_process_sets)
    known[job.n_process_sets] = process_set
    return process_set


def remove_process_set(process_set):
    """Remove a process set from the job, and return True.  Return False if the
    set is unknown or is global_process_set.  All ranks of the job call it."""
    if process_set is global_process_set:
        return False
    known, number = sets(), process_set.process_set_id
    agree("process sets", {"remove_process_set": str(number)})
    if known.get(number) is not process_set:
        return False
    del known[number]
    process_set._remove()
    return True


def get_process_set_ids_and_ranks():
    """Return a dict from the number of each process set to its list of ranks;
    set 0 has all ranks."""
    return {0: global_process_set.ranks,
            **{number: s.ranks for number, s in sets().items()}}


def add_all(process_sets):
    """Add the process sets that init() was given."""
    if isinstance(process_sets, str):
        if process_sets.lower() != "dynamic":
            raise ValueError(f"process_sets={process_sets!r}: expected a list "
                             f"of ProcessSets, or \"dynamic\"")
        return  # sets can be added at any time
    for process_set in process_sets or ():
        add_process_set(process_set)
