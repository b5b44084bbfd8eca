/* traces.c - every message trace that once broke the plan, as a test by name.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The names carry the number of the trace in the protocol's review; the rules
 * that came out of it are in PROTOCOL.md.
 *
 *  A2   a result that waits to be sent survives the recycle of its cell
 *  A3   a push into a sum that is complete
 *  A5   a false acknowledgement; QUERY as the universal repair
 *  A6   a retransmission rebuilt from the result in an in-place buffer
 *  A9   credit that leaks by loss; grants that are too old; overdrawing
 *  A10  classes that overtake each other are no loss
 *  A12  deltas of an asynchronous tensor: again, late, ahead; answers that are
 *       torn or go back
 *  A13  (a) the head of one queue behind the head of another; (c) jobs that
 *       share a server
 *  A14  two agents of one rank; a JOIN that comes late, and counts for nobody
 *  A16  a buffer that is written while it is pushed
 *  A17  timers after a gap in polling
 *  A18  storms of QUERIES
 *  A19  ranks that sum different steps
 *  tuning: other tuning in a running job, which all members come to use
 *  urgent, least_urgent: scheduling, with the bounds of trace_sched.c
 *  grow: tensors that are pushed before all of them is there
 *  incast: many senders before one port of a switch
 *  lanes: workers of several lcores
 *  lent: what a node's own server was lent, when its worker ends
 *  lost: members and local ranks die, groups of others go on
 *  members: the cost of a packet with 2 to 64 of them
 *  N1 to N5  packet numbers that nobody has sent
 *  probe: lcores behind a hash of source ports
 *  S1 to S9  streams: givers that run ahead, receivers that lag, types that
 *       change in a slot, groups that cross, shares; what streams beside
 *       each other wait for and what they take
 *  congestion: queues in the network's core that overflow
 *  F    what was examined and found sound stays so
 *
 * Not here, since what they are about does not exist yet:
 *  A1   retention, and restoring a server from its members
 *  A4   membership that changes under a running job (what can be tested with
 *       fixed members, that nothing is un-folded and counts travel per chunk,
 *       is in the random runs: n_local and the count of folds)
 *  A7   changes of layout, class or map
 *  A8   who decides about epochs (that no frame of an earlier one is taken is
 *       in trace_worker.c)
 *  A11  deterministic mode of tensors
 *  A13  (b) colocated servers, (d) policy p3
 *  A15  authentication
 *  A16  memory of attached processes: test/unit/host/unit_host_hostile.c
 */
#include "test/sim/traces.h"

#include <stddef.h>

int main(int argc, char **argv)
{
	const char *filter = argc > 1 ? argv[1] : NULL;
	uint32_t passed = 0, failed = 0;

	check_run(trace_again, n_trace_again, filter, &passed, &failed);
	check_run(trace_async, n_trace_async, filter, &passed, &failed);
	check_run(trace_cell, n_trace_cell, filter, &passed, &failed);
	check_run(
		trace_congestion, n_trace_congestion, filter, &passed, &failed);
	check_run(trace_worker, n_trace_worker, filter, &passed, &failed);
	check_run(trace_flow, n_trace_flow, filter, &passed, &failed);
	check_run(trace_grow, n_trace_grow, filter, &passed, &failed);
	check_run(trace_huge, n_trace_huge, filter, &passed, &failed);
	check_run(trace_incast, n_trace_incast, filter, &passed, &failed);
	check_run(trace_join, n_trace_join, filter, &passed, &failed);
	check_run(trace_tuning, n_trace_tuning, filter, &passed, &failed);
	check_run(trace_lanes, n_trace_lanes, filter, &passed, &failed);
	check_run(trace_lent, n_trace_lent, filter, &passed, &failed);
	check_run(trace_lost, n_trace_lost, filter, &passed, &failed);
	check_run(trace_members, n_trace_members, filter, &passed, &failed);
	check_run(trace_number, n_trace_number, filter, &passed, &failed);
	check_run(trace_probe, n_trace_probe, filter, &passed, &failed);
	check_run(trace_share, n_trace_share, filter, &passed, &failed);
	check_run(trace_stream, n_trace_stream, filter, &passed, &failed);
	check_run(trace_stream_load, n_trace_stream_load, filter, &passed,
		&failed);
	check_run(trace_sched, n_trace_sched, filter, &passed, &failed);
	return check_end(passed, failed);
}
