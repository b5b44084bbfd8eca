# tuning.py - search for the job's best partition and credit during training
# SPDX-License-Identifier: BSD-3-Clause
import os
import time

from sumwire.torch.job import current


def is_asked_for(tune):
    """Return the argument tune; for None, return what SUMWIRE_TUNE says."""
    if tune is None:
        return os.environ.get("SUMWIRE_TUNE", "0") not in ("", "0")
    return tune


class Steps:
    """Report the time between two step() calls of rank 0 to the tuner.  The
    tuner decides for the whole job, so the other ranks report nothing."""

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
    """Return Steps for an optimizer.  Return None if tuning is off, if this is
    not rank 0, or if another optimizer of this job reports already."""
    if not is_asked_for(tune) or current().rank or hasattr(current(), "steps"):
        return None
    return Steps()
