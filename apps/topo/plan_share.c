/* plan_share.c - each machine's share of the sums, and the shortest time.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/topo/plan_share.h"

#include <math.h>

/* Apply equations 1, 2 and 6; with k = 0 they describe all-reduce. */
static void by_theorem(
	struct sw_plan_share *s, double n, double k, double all_s)
{
	double d = n * n + k * n - 2 * k;

	s->cpu = k > 0 ? 2 * (n - 1) / d : NAN;
	s->gpu = (n - k) / d;
	s->optimal_s = 2 * n * (n - 1) / d * all_s;
}

struct sw_plan_share sw_plan_share(
	uint32_t n, uint32_t k, double m_bytes, double rate_bytes_s)
{
	double all_s = m_bytes / rate_bytes_s;
	struct sw_plan_share s = {.cpu = NAN, .gpu = NAN};

	if (n >= 2 && k <= n) {
		by_theorem(&s, n, k, all_s);
	} else if (k > 0) {
		s.cpu = 1.0 / k;
		s.gpu = 0;
		/* limited by the GPU machines' own links */
		s.optimal_s = all_s;
	} else {
		s.gpu = 1; /* a single machine sends nothing */
	}
	s.allreduce_s = n >= 2 ? 2.0 * (n - 1) / n * all_s : NAN;
	s.ps_s = k > 0 ? fmax(1, (double)n / k) * all_s : NAN;
	s.over_allreduce = s.allreduce_s / s.optimal_s;
	s.over_ps = s.ps_s / s.optimal_s;
	return s;
}
