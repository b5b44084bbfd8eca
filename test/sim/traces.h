/* traces.h - message traces at the edges of the protocol.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef SW_TEST_SIM_TRACES_H
#define SW_TEST_SIM_TRACES_H

#include "test/sim/check.h"

extern const struct check_case trace_again[], trace_async[], trace_cell[],
	trace_congestion[], trace_flow[], trace_grow[], trace_huge[],
	trace_incast[], trace_join[], trace_tuning[], trace_lanes[],
	trace_lent[], trace_lost[], trace_members[], trace_number[],
	trace_probe[], trace_sched[], trace_share[], trace_stream[],
	trace_stream_load[], trace_worker[];
extern const uint32_t n_trace_again, n_trace_async, n_trace_cell,
	n_trace_congestion, n_trace_flow, n_trace_grow, n_trace_huge,
	n_trace_incast, n_trace_join, n_trace_tuning, n_trace_lanes,
	n_trace_lent, n_trace_lost, n_trace_members, n_trace_number,
	n_trace_probe, n_trace_sched, n_trace_share, n_trace_stream,
	n_trace_stream_load, n_trace_worker;

#endif
