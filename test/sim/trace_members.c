/* trace_members.c - the cost of a packet at a server of 2 to 64 members.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A server's work per packet must not grow with the members. The test counts
 * its work per session; its memory per member is part of the formula
 * (unit_job_memory.c).
 */
#include "test/sim/trace_job.h"

enum { FRAME = 8192, N_ROUNDS = 5, LOOKS_MAX = 4000 };

static const uint64_t RATE = 10ULL * 1000 * 1000 * 1000;

struct cost {
	uint64_t looks; /* visits to sessions per thousand packets */
	uint64_t bytes; /* bytes that the server counts for the tensors */
};

static bool has_begun(void *ctx)
{
	return ((struct sim_job *)ctx)->workers[0].round[0] > 0;
}

/* Every member pushes 64 KiB repeatedly over a link of 10 Gb/s. */
static struct cost measure(struct check *c, uint32_t n_members)
{
	struct sim_job *job = new_job(8 * FRAME / 8, N_ROUNDS);
	struct sw_stats from;
	const struct sw_stats *st;
	struct cost cost;

	job->n_workers = n_members;
	job->dtype = SW_I64;
	job->params.payload = FRAME;
	job->is_in_order = true;
	job->worker_bit_s = job->server_bit_s = RATE;
	sim_job_open(job);
	st = &job->servers[0]->stats;
	sim_net_run(&job->net, job->net.now_ns + SW_S, has_begun, job);
	from = *st; /* count after joining */
	check(c, sim_job_run(job, 20 * SW_S), "all rounds complete");
	check_eq(c, st->push_folded, 8ULL * N_ROUNDS * n_members, "pushes");
	cost.looks = 1000 * (st->session_looks - from.session_looks) /
		     (st->push_folded + st->results - from.push_folded -
			     from.results);
	cost.bytes = job->servers[0]->quota.used_bytes;
	end_job(c, job);
	return cost;
}

/* Visits are bounded, and a member costs only its marks of the tensor: a word
 * per 8 chunks. */
static void members_cost(struct check *c)
{
	uint64_t two_bytes = 0;

	for (uint32_t n = 2; n <= SIM_WORKERS; n *= 2) {
		struct cost cost = measure(c, n);

		if (n == 2)
			two_bytes = cost.bytes;
		if (!check(c, cost.looks <= LOOKS_MAX, "looks per packet"))
			check_eq(c, cost.looks, LOOKS_MAX, "of a thousand");
		check_eq(c, cost.bytes, two_bytes + 8 * (n - 2), "bytes");
	}
}

const struct check_case trace_members[] = {
	{"members_cost", members_cost},
};

const uint32_t n_trace_members = SW_ARRAY_SIZE(trace_members);
