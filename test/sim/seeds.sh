#!/bin/sh
# seeds.sh - SIM over seeds 1 to 1000; to 250 with SUMWIRE_TEST_QUICK
# SPDX-License-Identifier: BSD-3-Clause
n=1000
[ -n "${SUMWIRE_TEST_QUICK-}" ] && n=250
exec "$1" --seeds $n
