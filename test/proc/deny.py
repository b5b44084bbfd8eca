# deny.py - run a command with failing system calls, as a container's filter makes them
# SPDX-License-Identifier: BSD-3-Clause
"""deny.py CALL[,CALL...] COMMAND...: run a command; these calls fail with
EPERM."""
import ctypes
import errno
import os
import platform
import struct
import sys

NUMBERS = {  # x86_64, aarch64
    "setpgid": (109, 154), "setsid": (112, 157), "faccessat2": (439, 439),
    "fallocate": (285, 47), "madvise": (28, 233), "eventfd2": (290, 19),
    "signalfd4": (289, 74), "memfd_create": (319, 279)}
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
LOAD, IF_EQUAL, RETURN = 0x20, 0x15, 0x06  # instructions of the filter
ALLOW, ERRNO = 0x7fff0000, 0x00050000  # actions of the filter


def deny(*names):
    """Deny the calls to this thread and everything that it starts."""
    def op(code, k, if_not=0):
        return struct.pack("HBBI", code, 0, if_not, k)
    column = ("x86_64", "aarch64").index(platform.machine())
    ops = op(LOAD, 0) + b"".join(
        op(IF_EQUAL, NUMBERS[name][column], if_not=1) +
        op(RETURN, ERRNO | errno.EPERM) for name in names) + op(RETURN, ALLOW)
    code = ctypes.create_string_buffer(ops, len(ops))
    program = ctypes.create_string_buffer(
        struct.pack("H6xP", len(ops) // 8, ctypes.addressof(code)))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER,
                  ctypes.addressof(program), 0, 0)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


if __name__ == "__main__":
    deny(*sys.argv[1].split(","))
    os.execvp(sys.argv[2], sys.argv[2:])
