# ft.py - a process group for torchft, whose members change while it trains
# SPDX-License-Identifier: BSD-3-Clause
"""With torchft 0.2 (pip install torchft):

    from torchft import Manager
    from sumwire.torch.ft import ProcessGroup

    manager = Manager(pg=ProcessGroup(timeout=timedelta(seconds=30)), ...)

torchft's manager calls configure() with a new store and new members whenever a
replica dies, leaves or joins.  Each configure() ends the old sumwire job and
starts a new job, with its own agents, for the new members."""
from datetime import timedelta

from torchft.process_group import ProcessGroupWrapper

from sumwire.distributed import create_group


class ProcessGroup(ProcessGroupWrapper):
    """Provide sumwire's process group to torchft.

    timeout  limit for configure(), which waits for the other members, and for
             each collective
    """

    def __init__(self, timeout=timedelta(seconds=60)):
        super().__init__(timeout)
        self._error = None  # why the group was aborted

    def configure(self, *arguments, **more):
        self._error = None
        super().configure(*arguments, **more)

    def _create_pg(self, store, rank, world_size):
        return create_group(store, rank, world_size, self._timeout,
                            f"torchft.{self._quorum_id}")

    def getBackendName(self):
        return "torchft-sumwire"

    def abort(self, errored=True):
        """Abort the collectives in flight, at all members.  torchft then calls
        configure() again."""
        if errored and self._pg is not None:
            self._error = self._pg.error or RuntimeError("abort() was called")
        super().abort(errored)

    def errored(self):
        """Return the first error of the group, or None.  After an error the
        group must be configured again."""
        return self._error or getattr(self._pg, "error", None)

    def set_timeout(self, timeout):
        super().set_timeout(timeout)
        if self._pg is not None:
            self._pg.set_timeout(timeout)

    def shutdown(self):
        """Leave the job."""
        if self._pg is not None:
            self._pg.shutdown()
        super().shutdown()
