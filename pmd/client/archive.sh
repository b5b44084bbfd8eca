#!/bin/sh
# archive.sh - make libsumwire.a, in which only SW_API names can be linked to
# SPDX-License-Identifier: BSD-3-Clause
#
#   archive.sh OBJCOPY AR OUT INNER CC...
#
# Link all of INNER into one object and make its hidden symbols local, because
# programs may have functions of the same names.
set -e
objcopy=$1 ar=$2 out=$3 inner=$4
shift 4
"$@" -r -nostdlib -o "$out.o" -Wl,--whole-archive "$inner" -Wl,--no-whole-archive
"$objcopy" --localize-hidden "$out.o"
rm -f "$out"
"$ar" rcsD "$out" "$out.o"
rm "$out.o"
