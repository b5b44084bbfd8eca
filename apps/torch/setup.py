# setup.py - the version of the package, which meson.build alone says; a wheel's tag
# SPDX-License-Identifier: BSD-3-Clause
import os
import re

from setuptools import Distribution, setup

HERE = os.path.dirname(os.path.abspath(__file__))
# in a checkout, in an archive made from one
SOURCES = (("../../meson.build", r"^project\('sumwire', .*version: '([^']+)'"),
           ("PKG-INFO", r"^Version: (.+)$"))


def version():
    for name, pattern in SOURCES:
        path = os.path.join(HERE, name)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                return re.search(pattern, f.read(), re.M)[1]
    raise SystemExit("setup.py: neither a checkout of sumwire nor an archive")


def of_machine_code(tag):
    """What makes a wheel that of one platform (./wheel has put the command
    and libraries into the package)."""
    try:
        from setuptools.command.bdist_wheel import bdist_wheel
    except ImportError:  # before setuptools 70.1
        from wheel.bdist_wheel import bdist_wheel

    class Tagged(bdist_wheel):
        def get_tag(self):
            return "py3", "none", tag

    class Native(Distribution):
        def has_ext_modules(self):
            return True

    return {"cmdclass": {"bdist_wheel": Tagged}, "distclass": Native}


TAG = os.environ.get("SUMWIRE_WHEEL")
setup(version=version(), **(of_machine_code(TAG) if TAG else {}))
