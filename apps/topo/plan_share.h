/* plan_share.h - each machine's share of the sums, and the shortest time.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * n GPU machines and k CPU machines, each with a link of B in both directions,
 * and a model of M bytes (paper 002, section 4.1).  Pure functions.
 */
#ifndef SW_APPS_TOPO_PLAN_SHARE_H
#define SW_APPS_TOPO_PLAN_SHARE_H

#include <stdint.h>

/* Shares of M.  A value that does not exist is NAN. */
struct sw_plan_share {
	/* share of one SS_CPU and of one SS_GPU: equations 1 and 2 */
	double cpu, gpu;
	double optimal_s;               /* equation 6 */
	double allreduce_s, ps_s;       /* the two baselines */
	double over_allreduce, over_ps; /* equation 7 */
};

/* sw_plan_share - compute the shares and times.  @n >= 1; @m_bytes,
 * @rate_bytes_s > 0.  Where the theorem does not apply (n = 1, k > n), all
 * SS_CPUs have equal shares.  The PS baseline uses all k CPU machines and no
 * SS_GPU; it does not exist with k = 0, and all-reduce does not exist with n =
 * 1. */
struct sw_plan_share sw_plan_share(
	uint32_t n, uint32_t k, double m_bytes, double rate_bytes_s);

#endif
