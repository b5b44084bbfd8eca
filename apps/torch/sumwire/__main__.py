# __main__.py - the sumwire command of a wheel, or of this checkout
# SPDX-License-Identifier: BSD-3-Clause
import os
import sys

from sumwire import library


def main():
    # Do not search PATH: the sumwire found there may be this script.
    path = library.own_command()
    if path is None:
        sys.exit(f"sumwire: the package in {library.HERE} has no command: "
                 f"install the wheel, or build the checkout")
    os.execv(path, [path, *sys.argv[1:]])


if __name__ == "__main__":
    main()
