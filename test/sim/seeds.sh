#!/bin/sh
# seeds.sh - SIM over seeds 1 to 1000; fewer in the quick and the fast run
# SPDX-License-Identifier: BSD-3-Clause
n=1000
[ -n "${SUMWIRE_TEST_QUICK-}" ] && n=100
[ -n "${SUMWIRE_TEST_FAST-}" ] && n=50
exec "$1" --seeds $n
