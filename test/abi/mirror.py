#!/usr/bin/env python3
# mirror.py - check that Python's structs match libsumwire.abi
# SPDX-License-Identifier: BSD-3-Clause
import ctypes
import os
import sys
import xml.etree.ElementTree as ET

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../apps/torch"))
from sumwire import library

MIRRORS = {"sw_settings": library.Settings, "sw_tensor_desc": library.Desc,
           "sw_coll_args": library.CollArgs,
           "sw_device_settings": library.DeviceSettings,
           "sw_device_call": library.DeviceCall}


def described(abi, name):
    """Return (field, offset) of each field in a struct, and its size, in bytes."""
    struct = abi.find(f".//class-decl[@name='{name}'][@size-in-bits]")
    return [(member.find("var-decl").get("name"),
             int(member.get("layout-offset-in-bits")) // 8)
            for member in struct.iter("data-member")], \
        int(struct.get("size-in-bits")) // 8


def mirrored(mirror):
    return [(name, getattr(mirror, name).offset)
            for name, _ in mirror._fields_], ctypes.sizeof(mirror)


def codes(abi, name):
    """Return the values of an enum."""
    return {e.get("value") for e in abi.iterfind(
        f".//enum-decl[@name='{name}']/enumerator")}


def named(abi, name):
    """Return the names of an enum with their codes."""
    return {e.get("name"): int(e.get("value")) for e in abi.iterfind(
        f".//enum-decl[@name='{name}']/enumerator")}


def main():
    abi = ET.parse(os.path.join(HERE, "libsumwire.abi"))
    bad = [name for name, mirror in MIRRORS.items()
           if described(abi, name) != mirrored(mirror)]
    for name in bad:
        print(f"{name} of apps/torch/sumwire/library.py: "
              f"{mirrored(MIRRORS[name])}\nthe library's: "
              f"{described(abi, name)}")
    unknown = [n for n, (code, _) in library.DTYPES.items()
               if str(code) not in codes(abi, "sw_dtype")]
    unknown += [n for n, code in library.COLLECTIVES.items()
                if str(code) not in codes(abi, "sw_coll_kind")]
    unknown += [n for n, code in library.OPERATIONS.items()
                if str(code) not in codes(abi, "sw_reduce_op")]
    unknown += [n for n, code in named(abi, "sw_error").items()
                if n != "SW_OK" and library.ERRORS.get(n) != code]
    missing = [s for s in library.SIGNATURES if abi.find(
        f".//elf-symbol[@name='{s}']") is None]
    for name in unknown + missing:
        print(f"{name} of apps/torch/sumwire/library.py: no such thing")
    return 1 if bad or unknown or missing else 0


if __name__ == "__main__":
    sys.exit(main())
