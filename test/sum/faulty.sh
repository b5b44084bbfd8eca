#!/bin/sh
# faulty.sh CHECK - the checker must fail on kernels that lose one element
# SPDX-License-Identifier: BSD-3-Clause
out=$("$1" 2>/dev/null)
status=$?
echo 1..3
for level in avx2 avx512; do
	n=$((n + 1))
	if echo "$out" | grep -q "SKIP.*$level\|$level.*SKIP"; then
		echo "ok $n - $level # SKIP not on this CPU"
	elif echo "$out" | grep -q "^not ok .*$level.*f32"; then
		echo "ok $n - $level: f32 went red"
	else
		echo "not ok $n - $level: nothing went red"
		failed=1
	fi
done
[ $status -ne 0 ] && echo "ok 3 - exit code $status" && exit $failed
echo "not ok 3 - exit code 0"
exit 1
