# homes.py - the machines of a group's ranks, and checks of their compatibility
# SPDX-License-Identifier: BSD-3-Clause
"""Each rank gives its mark() to the first exchange of a meeting.  Rank 0's
agree() makes one answer for all ranks, and each rank reads it as a Home."""
import os

from sumwire.distributed import addresses, agents, local, numa
from sumwire.distributed.errors import SumwireError
from sumwire.distributed.meeting import digest, opened, safely


def mark(meeting, problem, job):
    """Return a description of this rank for the others.  problem: why it cannot
    join, or None; job: its (name, epoch, rank in the job), or None."""
    host = addresses.meeting_point(meeting.lobby)
    return {"problem": problem, "ranks": digest(meeting.members), "job": job,
            "by_hand": bool(os.environ.get("SUMWIRE_AGENT")),
            "machine": agents.machine(), "cpus": numa.usable(),
            "gpu": numa.node_of_gpu(), "host": host,
            "ip": safely(lambda: addresses.own(host)),
            "hierarchical": safely(lambda: local.asked_for(None))}


def agree(meeting, marks):
    """Return the answer for all ranks, on rank 0.  Raise SumwireError if the
    ranks cannot form a group."""
    problems = [f"{meeting.named([r])}: {m['problem']}"
                for r, m in enumerate(marks) if m["problem"]]
    if problems:
        raise SumwireError("SW_EREFUSED", "; ".join(problems))
    for rank, m in enumerate(marks):
        if m["ranks"] != marks[0]["ranks"]:
            raise SumwireError(
                "SW_EMISMATCH", f"group {meeting.group_id} has ranks "
                f"{marks[0]['ranks']} at {meeting.named([0])}, but "
                f"{m['ranks']} at the rank in place {rank}: give new_group the "
                f"same ranks in the same order at every rank")
    jobs = [m["job"] for m in marks]
    check_jobs(meeting, jobs)
    machines = [m["machine"] for m in marks]
    which = {m: i for i, m in enumerate(dict.fromkeys(machines))}
    answer = {"machines": [which[m] for m in machines], "jobs": None,
              "ips": [marks[machines.index(m)]["ip"] for m in which],
              "host": marks[0]["host"], "gpus": [m["gpu"] for m in marks],
              "hierarchical": marks[0]["hierarchical"]}
    if jobs[0]:
        answer["jobs"] = job_ranks(meeting, jobs)
    elif check_hands(meeting, marks):
        answer["plan"] = agents.plan([(m["machine"], m["cpus"])
                                      for m in marks], meeting.limit_s)
    return answer


def check_hands(meeting, marks):
    """Return True if the ranks start agents themselves.  Raise SumwireError if
    only some ranks name an agent."""
    by_hand = [r for r, m in enumerate(marks) if m["by_hand"]]
    if by_hand and len(by_hand) < meeting.n:
        others = set(range(meeting.n)) - set(by_hand)
        raise SumwireError(
            "SW_ECONF", f"group {meeting.group_id}: SUMWIRE_AGENT is set at "
            f"{meeting.named(by_hand)}, but not at {meeting.named(others)}: "
            f"set it for all ranks, or for none")
    return not by_hand


def check_jobs(meeting, jobs):
    """Raise SumwireError unless all ranks belong to one job, or all to none,
    and each has a different rank in it.  jobs: (name, epoch, rank in the job)
    or None, by rank."""
    by_job = {}
    for rank, job in enumerate(jobs):
        by_job.setdefault(job and tuple(job[:2]), []).append(rank)
    if len(by_job) > 1:
        names = [job[0] for job in by_job if job]
        said = [f"{meeting.named(ranks)} to " + (
            "none" if not job else f"job {job[0]}" if names.count(job[0]) == 1
            else f"job {job[0]} of epoch {job[1]:x}")
            for job, ranks in by_job.items()]
        raise SumwireError(
            "SW_EREFUSED", f"group {meeting.group_id} cannot be created, "
            f"because its ranks belong to different jobs: {', '.join(said)}. A "
            f"process joins a job with its first sumwire group and leaves it "
            f"with its last: create a group of all ranks first, then groups of "
            f"some of them")
    places = [job and job[2] for job in jobs]
    for rank, place in enumerate(places):
        if place is not None and places.index(place) != rank:
            raise SumwireError(
                "SW_EREFUSED", f"group {meeting.group_id} cannot be created, "
                f"because {meeting.named([places.index(place), rank])} are "
                f"both rank {place} of job {jobs[rank][0]}: create it of "
                f"different processes")


def job_ranks(meeting, jobs):
    """Check the jobs, on rank 0, and return each rank's rank in the job."""
    check_jobs(meeting, jobs)
    return [rank for _, _, rank in jobs]


class Home:
    """Hold the answer of rank 0's agree().

    ranks     each rank's rank in the job; None: there is no job yet
    machines  each rank's machine, as a number"""

    def __init__(self, meeting, answer):
        self.me = meeting.me
        self.machines, self.gpus = answer["machines"], answer["gpus"]
        self.ranks, self.plan = answer["jobs"], answer.get("plan")
        self.hierarchical = answer["hierarchical"]
        self._ips, self.host = answer["ips"], answer["host"]
        self.is_on_loopback = False  # its parts connect only over the loopback

    def is_one_machine(self):
        return not any(self.machines)

    def divide(self, machines, ips):
        """Count ranks that do not reach their agent as other machines.
        machines: the machine of each rank; ips: the addresses of new ones."""
        was_one = self.is_one_machine() or self.is_on_loopback
        self.machines, self._ips = machines, self._ips + ips
        found = [addresses.among([opened(ip)], 0) for ip in self._ips]
        if was_one:
            self.is_on_loopback = len(set(found)) == 1
        elif len(set(found)) < len(found):
            raise SumwireError(
                "SW_ECONF", f"ranks at {max(found, key=found.count)} share no "
                f"TMPDIR for the agent's socket: mount one folder in all "
                f"containers of that host, and set TMPDIR to it")

    def ip(self):
        """Return this machine's address for other machines.  Raise SumwireError
        if no address leads there."""
        known = [opened(ip) for ip in self._ips]
        return addresses.needed(
            addresses.among(known, self.machines[self.me]), self.host)
