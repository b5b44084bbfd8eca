# setup.py - the version of the package, which meson.build alone says
# SPDX-License-Identifier: BSD-3-Clause
import os
import re

from setuptools import setup

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


setup(version=version())
