# environment.py - variables of Horovod and BytePS that change nothing here
# SPDX-License-Identifier: BSD-3-Clause
import os
import warnings

PREFIXES = ("HOROVOD_", "BYTEPS_")
TAKEN = {"BYTEPS_CROSS_BARRIER", "BYTEPS_ENABLE_ASYNC", "HOROVOD_TIMELINE",
         "BYTEPS_TRACE_ON", "BYTEPS_TRACE_DIR", "BYTEPS_TRACE_START_STEP",
         "BYTEPS_TRACE_END_STEP"}
# Launchers set these for every program, so they are not reported.
PLACES = {f"{prefix}{name}" for prefix in PREFIXES for name in (
    "RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE",
    "HOSTNAME")}


def unsupported():
    """Return the variables of Horovod and BytePS that are set and that sumwire
    does not read, in alphabetical order."""
    return sorted(name for name in os.environ if name.startswith(PREFIXES) and
                  name not in TAKEN | PLACES)


def warn():
    """Warn once, with the names of all unsupported variables."""
    names = unsupported()
    if names:
        warnings.warn(f"sumwire does not read {', '.join(names)}; its own "
                      f"variables are in doc/pytorch.md", stacklevel=3)
