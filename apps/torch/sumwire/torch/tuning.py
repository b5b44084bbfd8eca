# tuning.py - partition and credit of the job, searched for while it trains
# SPDX-License-Identifier: BSD-3-Clause
import os
import time

from sumwire.torch.job import current


def is_asked_for(tune):
    """The argument; without one, the variable."""
    if tune is None:
        return os.environ.get("SUMWIRE_TUNE", "0") not in ("", "0")
    return tune


class Steps:
    """Rank 0 tells the tuner how long it is from one step() to the next.  What
    it decides is the job's, so the other ranks do nothing."""

    def __init__(self):
        self.job = current()
        self.job.steps = self
        self.last = None

    def ended(self):
        now = time.perf_counter()
        if self.last is not None:
            self.job.client.tune(now - self.last)
        self.last = now


def steps(tune):
    """None where there is nothing to do: not asked for, not rank 0, or another
    optimizer of this job has them."""
    if not is_asked_for(tune) or current().rank or hasattr(current(), "steps"):
        return None
    return Steps()
