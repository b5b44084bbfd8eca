#!/bin/sh
# qemu.sh CHECK - run the checker on older CPUs under qemu-x86_64
# SPDX-License-Identifier: BSD-3-Clause
#
# Exit 77 (skipped) without qemu-x86_64 (Debian: qemu-user).
check=$1
qemu=$(command -v qemu-x86_64) || {
	echo "1..0 # SKIP qemu-x86_64 is not installed (package qemu-user)"
	exit 77
}
n=0
failed=0

line()
{
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		failed=1
	fi
}

# a CPU, and the level that it selects
for pair in Opteron_G1:scalar SandyBridge:scalar Haswell:avx2; do
	cpu=${pair%:*}
	best=${pair#*:}
	# qemu warns about features that it does not emulate
	out=$("$qemu" -cpu "$cpu" "$check" --quick --best "$best" 2>&1)
	status=$?
	[ $status -eq 0 ] || echo "$out" | grep -v '^ok' | sed 's/^/# /'
	line $status "$cpu takes $best and is right"
done

# if an instruction leaked past the dispatch, the process would die like this
for pair in Opteron_G1:avx2 Haswell:avx512; do
	"$qemu" -cpu "${pair%:*}" "$check" --quick --leak "${pair#*:}" \
		>/dev/null 2>&1
	[ $? -eq 132 ] # 128 + SIGILL
	line $? "${pair%:*} dies of ${pair#*:}"
done
echo "1..$n"
exit $failed
