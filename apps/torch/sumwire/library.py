# library.py - find libsumwire and declare its functions to ctypes
# SPDX-License-Identifier: BSD-3-Clause
"""This module declares the functions of sumwire.h, coll.h, device.h and
autotune.h in pmd/client/sumwire to ctypes.  It searches for the library in this
order:

1. $SUMWIRE_LIBRARY, which sumwire run sets;
2. lib/ in this package, as in a wheel;
3. build/ of the checkout that holds this file;
4. the system's linker;
5. the installation that holds the sumwire command of $PATH."""
import ctypes
import functools
import glob
import os
import shutil

SONAME = "libsumwire.so.1"
HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.normpath(os.path.join(HERE, "../../../build"))  # of a checkout

# enum sw_dtype (sum/dtype.h): name, code, bytes
DTYPES = {"f32": (0, 4), "f64": (1, 8), "f16": (2, 2), "u8": (3, 1),
          "i32": (4, 4), "i8": (5, 1), "i64": (6, 8), "bool": (9, 1),
          "bf16": (10, 2)}

# enum sw_coll_kind (engine/base/coll_kind.h)
COLLECTIVES = {"all_reduce": 1, "reduce_scatter": 2, "all_gather": 3,
               "broadcast": 4, "reduce": 5, "barrier": 6}
# enum sw_reduce_op
OPERATIONS = {"sum": 0, "avg": 1, "min": 2, "max": 3, "prod": 4, "band": 5,
              "bor": 6, "bxor": 7, "premul_sum": 8}

# enum sw_error (engine/base/errors.def)
ERRORS = {"SW_EINVAL": -1, "SW_ENOMEM": -2, "SW_EAGAIN": -3, "SW_EBUSY": -4,
          "SW_ETIMEDOUT": -5, "SW_ECLOSED": -6, "SW_EPEER": -7,
          "SW_EMISMATCH": -8, "SW_EREFUSED": -9, "SW_EVERSION": -10,
          "SW_EPROTO": -11, "SW_ECORRUPT": -12, "SW_ECONF": -13, "SW_EIO": -14,
          "SW_EPERM": -15, "SW_ESTALL": -16, "SW_ENOENT": -17,
          "SW_ESERVER": -18, "SW_EABORTED": -19, "SW_EDEVICE": -20,
          "SW_EEXPIRED": -21}
# enum sw_conflict (engine/base/error.h)
CONFLICTS = {"declared": 1, "round": 2, "step": 3, "call": 4}
# Codes that this package handles separately.
EINVAL, ENOMEM, EPERM, ENOENT = -1, -2, -15, -17
EAGAIN, EBUSY, ETIMEDOUT, ECLOSED, EMISMATCH = -3, -4, -5, -6, -8
EABORTED, EEXPIRED = -19, -21


class Settings(ctypes.Structure):
    """struct sw_settings"""
    _fields_ = [("size", ctypes.c_size_t),
                ("agent", ctypes.c_char_p),
                ("agent_user", ctypes.c_char_p),
                ("local_rank", ctypes.c_uint32),
                ("open_timeout_s", ctypes.c_uint32),
                ("wait_timeout_s", ctypes.c_uint32),
                ("pad", ctypes.c_uint32),
                ("log", ctypes.c_void_p),
                ("log_ctx", ctypes.c_void_p)]


class Desc(ctypes.Structure):
    """struct sw_tensor_desc"""
    _fields_ = [("size", ctypes.c_size_t),
                ("name", ctypes.c_char_p),
                ("n_elems", ctypes.c_uint64),
                ("dtype", ctypes.c_int),
                ("priority", ctypes.c_uint32),
                ("is_async", ctypes.c_uint32),
                ("pad", ctypes.c_uint32)]


class CollArgs(ctypes.Structure):
    """struct sw_coll_args"""
    _fields_ = [("size", ctypes.c_size_t),
                ("kind", ctypes.c_int),
                ("dtype", ctypes.c_int),
                ("count", ctypes.c_uint64),
                ("root", ctypes.c_uint32),
                ("op", ctypes.c_int),
                ("send", ctypes.c_void_p),
                ("recv", ctypes.c_void_p),
                ("scale", ctypes.c_double),
                ("parts", ctypes.c_void_p)]


class DeviceSettings(ctypes.Structure):
    """struct sw_device_settings"""
    _fields_ = [("size", ctypes.c_size_t),
                ("backend", ctypes.c_char_p),
                ("piece_bytes", ctypes.c_uint64),
                ("number", ctypes.c_int32),
                ("pad", ctypes.c_uint32)]


class DeviceCall(ctypes.Structure):
    """struct sw_device_call"""
    _fields_ = [("size", ctypes.c_size_t),
                ("from", ctypes.c_void_p),
                ("to", ctypes.c_void_p),
                ("stream", ctypes.c_void_p),
                ("step", ctypes.c_uint32),
                ("root", ctypes.c_uint32)]


def describe(descs, is_async=False):
    """Return an array of Desc for (name, elements, dtype, priority)..."""
    array = (Desc * len(descs))()
    for at, (name, n_elems, dtype, priority) in zip(array, descs):
        at.size = ctypes.sizeof(at)
        at.name, at.n_elems = name.encode(), n_elems
        at.dtype, at.priority = DTYPES[dtype][0], priority
        at.is_async = is_async
    return array


POINTER, U32, INT = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int
SIGNATURES = {
    "sw_version": (U32, []),
    "sw_settings_init_sized": (None, [ctypes.POINTER(Settings),
                                      ctypes.c_size_t]),
    "sw_open": (INT, [ctypes.POINTER(Settings), ctypes.POINTER(POINTER)]),
    "sw_leave": (None, [POINTER]),
    "sw_abort": (INT, [POINTER, ctypes.c_char_p]),
    "sw_close": (None, [ctypes.POINTER(POINTER)]),
    "sw_rank": (U32, [POINTER]),
    "sw_size": (U32, [POINTER]),
    "sw_local_rank": (U32, [POINTER]),
    "sw_local_size": (U32, [POINTER]),
    "sw_agent_rank": (U32, [POINTER]),
    "sw_agent_size": (U32, [POINTER]),
    "sw_is_async": (ctypes.c_int, [POINTER]),
    "sw_job": (ctypes.c_char_p, [POINTER, ctypes.POINTER(ctypes.c_uint64)]),
    "sw_declare": (INT, [POINTER, ctypes.POINTER(Desc), U32,
                         ctypes.POINTER(POINTER)]),
    "sw_tensor_data": (POINTER, [POINTER]),
    "sw_tensor_result": (POINTER, [POINTER]),
    "sw_push_pull": (INT, [POINTER, POINTER, U32,
                           ctypes.POINTER(ctypes.c_uint64)]),
    "sw_broadcast": (INT, [POINTER, POINTER, U32, U32,
                           ctypes.POINTER(ctypes.c_uint64)]),
    "sw_is_traced": (INT, [POINTER]),
    "sw_note_copy": (None, [POINTER, ctypes.c_uint64, INT, ctypes.c_uint64, ctypes.c_uint64,
                            ctypes.c_uint64]),
    "sw_poll": (INT, [POINTER, ctypes.c_uint64]),
    "sw_wait_for": (INT, [POINTER, ctypes.c_uint64, U32]),
    "sw_wait_ended_for": (INT, [POINTER, U32,
                                ctypes.POINTER(ctypes.c_uint64)]),
    "sw_alloc": (INT, [POINTER, ctypes.c_size_t, ctypes.POINTER(POINTER)]),
    "sw_free": (INT, [POINTER, POINTER]),
    "sw_group_open": (INT, [POINTER, ctypes.c_char_p, ctypes.POINTER(U32), U32,
                            ctypes.POINTER(POINTER)]),
    "sw_group_set_timeout": (INT, [POINTER, U32]),
    "sw_wait_group_failed_for": (INT, [POINTER, U32, ctypes.POINTER(U32)]),
    "sw_group_abort": (INT, [POINTER, INT, ctypes.c_char_p]),
    "sw_group_close": (INT, [POINTER]),
    "sw_coll": (INT, [POINTER, ctypes.POINTER(CollArgs),
                      ctypes.POINTER(ctypes.c_uint64)]),
    "sw_device_open": (INT, [POINTER, ctypes.POINTER(DeviceSettings),
                             ctypes.POINTER(POINTER)]),
    "sw_device_close": (None, [ctypes.POINTER(POINTER)]),
    "sw_device_declare": (INT, [POINTER, ctypes.POINTER(Desc), U32,
                                ctypes.POINTER(POINTER)]),
    "sw_push_pull_device": (INT, [POINTER, ctypes.POINTER(DeviceCall)]),
    "sw_broadcast_device": (INT, [POINTER, ctypes.POINTER(DeviceCall)]),
    "sw_device_poll": (INT, [POINTER]),
    "sw_device_wait_for": (INT, [POINTER, U32]),
    "sw_device_hold": (INT, [POINTER, POINTER]),
    "sw_device_can_hold": (INT, [POINTER, POINTER]),
    "sw_coll_device": (INT, [POINTER, POINTER, ctypes.POINTER(CollArgs),
                             POINTER, ctypes.POINTER(ctypes.c_uint64)]),
    "sw_coll_hold": (INT, [POINTER, ctypes.c_uint64, POINTER]),
    "sw_last_error": (ctypes.c_char_p, [POINTER]),
    "sw_last_conflict": (INT, [POINTER, ctypes.POINTER(U32),
                               ctypes.POINTER(U32)]),
    "sw_error_name": (ctypes.c_char_p, [INT]),
    "sw_autotune_open": (INT, [POINTER, ctypes.POINTER(POINTER)]),
    "sw_autotune_observe": (INT, [POINTER, ctypes.c_double]),
    "sw_autotune_close": (None, [ctypes.POINTER(POINTER)]),
}


def candidates():
    """Return the paths to try for the library, best first."""
    named = os.environ.get("SUMWIRE_LIBRARY")
    if named:
        return [named]
    return [*filter(os.path.exists, (os.path.join(HERE, "lib", SONAME),
                                     os.path.join(BUILD, "pmd/client", SONAME))),
            SONAME, *beside_command()]


def beside_command():
    """Return paths of libraries that were built or installed with the command.
    """
    command = shutil.which("sumwire")
    if command is None:
        return []
    above = os.path.dirname(os.path.dirname(os.path.realpath(command)))
    return [path for folder in ("pmd/client", "lib", "lib64", "lib/*")
            for path in glob.glob(os.path.join(glob.escape(above), folder,
                                               SONAME))]


def own_command():
    """Return the path of the sumwire command in the package or the checkout, or
    None."""
    for path in (os.path.join(HERE, "bin", "sumwire"),
                 os.path.join(BUILD, "apps", "sumwire")):
        if os.access(path, os.X_OK):
            return path
    return None


def command():
    """Return the path of the sumwire command: the package's own, or the one in
    PATH.  Raise ImportError if neither exists."""
    found = own_command() or shutil.which("sumwire")
    if found is None:
        raise ImportError("cannot start this machine's agent: found no command "
                          "sumwire in PATH; install sumwire, or add its folder "
                          "to PATH")
    return found


def declare(lib, path, signatures):
    """Set the result and argument types of the functions.  Raise ImportError if
    the library lacks one."""
    for name, (result, arguments) in signatures.items():
        try:
            function = getattr(lib, name)
        except AttributeError:
            raise ImportError(
                f"{path} has no function {name}, so it is from another release "
                f"than this package: install both from one checkout") from None
        function.restype, function.argtypes = result, arguments


@functools.lru_cache(maxsize=None)
def load():
    """Load the library, once per process, and return it.  Raise ImportError if
    it is not found."""
    tried = []
    for path in candidates():
        try:
            lib = ctypes.CDLL(path)
        except OSError as e:
            tried.append(str(e))
            continue
        declare(lib, path, SIGNATURES)
        return lib
    raise ImportError(
        f"{SONAME} was not found ({'; '.join(tried)}); build it with "
        f"'ninja -C build' in the checkout, or 'meson install -C build', or "
        f"name it in SUMWIRE_LIBRARY")


def problem():
    """Return the reason why the library cannot be loaded, or None."""
    try:
        load()
        return None
    except ImportError as e:
        return str(e)
