/* plan_share.h - who sums how much, and how long that takes at best.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * n GPU machines and k CPU machines, each with a link of B in both directions,
 * a model of M bytes (paper 002, section 4.1).  All pure.
 */
#ifndef SW_APPS_TOPO_PLAN_SHARE_H
#define SW_APPS_TOPO_PLAN_SHARE_H

#include <stdint.h>

/* Shares are of M; what does not exist is NAN. */
struct sw_plan_share {
	double cpu, gpu;  /* one SS_CPU's, one SS_GPU's: equations 1 and 2 */
	double optimal_s; /* equation 6 */
	double allreduce_s, ps_s;       /* the two baselines */
	double over_allreduce, over_ps; /* equation 7 */
};

/* sw_plan_share - @n >= 1; @m_bytes, @rate_bytes_s > 0.  Where the theorem says
 * nothing (n = 1, k > n) the SS_CPUs have equal parts; the PS baseline uses all
 * k CPU machines and no SS_GPU, and does not exist with k = 0; all-reduce does
 * not exist with n = 1. */
struct sw_plan_share sw_plan_share(
	uint32_t n, uint32_t k, double m_bytes, double rate_bytes_s);

#endif
