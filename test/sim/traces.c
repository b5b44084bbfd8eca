/* traces.c - every message trace that once broke the design, as a test.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A name carries the number of its trace in the protocol's review; PROTOCOL.md
 * has the rules that followed.
 *
 *  A2   a result queued for sending survives the recycle of its cell
 *  A3   a push into a complete sum
 *  A5   a false acknowledgement; QUERY as the universal repair
 *  A6   a retransmission rebuilt from the result in an in-place buffer
 *  A9   credit leaks by loss; stale grants; overdrawing
 *  A10  reordering between classes is no loss
 *  A12  deltas of an asynchronous tensor: duplicate, late, ahead; answers that
 *       are torn or go back
 *  A13  (a) heads of two queues that wait for each other; (c) jobs that share
 *       a server
 *  A14  two agents with one rank; a late JOIN without a worker
 *  A16  a buffer that the process writes while it is pushed
 *  A17  timers after a gap in polling
 *  A18  storms of QUERIES
 *  A19  ranks that sum different steps
 *  tuning: tuning changes in a running job, which all members adopt
 *  urgent, least_urgent: scheduling, with the bounds of trace_sched.c
 *  grow: tensors that are pushed before they are completely written
 *  incast: many senders before one port of a switch
 *  lanes: workers of several lcores
 *  lent: payloads lent to a node's own server, when its worker ends
 *  lost: members and local ranks die; other groups continue
 *  members: the cost of a packet with 2 to 64 members
 *  N1 to N5  forged packet numbers
 *  probe: lcores behind a hash of source ports
 *  S1 to S9  streams: givers that run ahead, receivers that lag, types that
 *       change in a slot, groups that cross, shares; latency and resources of
 *       concurrent streams
 *  congestion: queues in the network's core that overflow
 *  F    behaviour that the review found correct
 *
 * Not here, because the feature does not exist yet or another test has it:
 *  A1   retention, and restoring a server from its members
 *  A4   membership changes in a running job (random runs test the part with
 *       fixed members, that servers un-fold nothing and counts travel per
 *       chunk: n_local and the count of folds)
 *  A7   changes of layout, class or map
 *  A8   the authority for epochs (trace_worker.c tests that frames of an
 *       earlier epoch are ignored)
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
