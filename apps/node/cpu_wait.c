/* cpu_wait.c - how long an lcore was ready to run and had no CPU.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/node/cpu_wait.h"

#include <inttypes.h>
#include <stdio.h>

#include "engine/base/params.h"

#define PERIOD_NS (2 * SW_S)

bool sw_cpu_wait_read(uint32_t tid, uint64_t *ns)
{
	char path[64];
	uint64_t ran;
	FILE *f;
	int n;

	snprintf(path, sizeof(path), "/proc/self/task/%u/schedstat", tid);
	f = tid ? fopen(path, "re") : NULL;
	if (!f)
		return false;
	n = fscanf(f, "%" SCNu64 " %" SCNu64, &ran, ns);
	fclose(f);
	return n == 2;
}

void sw_cpu_wait_look(struct sw_cpu_wait *w, uint32_t tid, uint64_t now_ns)
{
	uint64_t ns;

	if (now_ns - w->from_ns < PERIOD_NS || !sw_cpu_wait_read(tid, &ns))
		return;
	if (w->from_ns) {
		w->waited_ns = ns - w->from_wait_ns;
		w->period_ns = now_ns - w->from_ns;
	}
	w->from_ns = now_ns;
	w->from_wait_ns = ns;
}
