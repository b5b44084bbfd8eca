/* placement.c - BytePS's figure 12 on the real engine over simulated links.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Measure the time of a push_pull of M bytes with eight workers, zero to eight
 * CPU machines and equal links. Compare it with equation 6 (paper 002), and
 * with PS and all-reduce. A port's link is busy while it sends and while it
 * receives; a machine's frames to itself use no link.
 *
 *     build/test/sim/placement          every k is within 3 % of equation 6;
 *                                       with SUMWIRE_TEST_QUICK k = 2, 8
 *     build/test/sim/placement --all    a table that includes PS
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/sched/place.h"
#include "test/sim/check.h"
#include "test/sim/job.h"

enum {
	N = 8,
	PAYLOAD = 1344,
	FRAME = PAYLOAD + SW_HEAD_BYTES + 66, /* size on the simulated wire */
	STRIPES = 200,                        /* M is about this many stripes */
	ROUNDS = 3,
	QUEUE = 64 << 20,
};

#define RATE_BITS_S  UINT64_C(10000000000)
#define TOLERANCE    0.03
#define TOLERANCE_PS 0.15 /* eight workers share a link: chance decides */
#define LONGEST_RUN  (20 * SW_S)

static uint32_t n_stripes(uint32_t k, uint32_t n_colocated)
{
	struct sw_place_job job = {.n_members = N,
		.n_servers = (uint16_t)(k + n_colocated),
		.n_colocated = (uint16_t)n_colocated};
	uint32_t weights[SW_PLACE_SERVERS];
	uint32_t period = sw_place_weights(&job, weights);

	return (STRIPES + period - 1) / period * period;
}

static bool has_all_of(struct sim_job *job, uint32_t round)
{
	for (uint32_t r = 0; r < N; r++)
		if (job->workers[r].round[0] < round)
			return false;
	return true;
}

static bool has_first(void *ctx)
{
	return has_all_of(ctx, 1);
}

/* Return the seconds of a push_pull of M, divided by M's time on a link at
 * payload rate. */
static double run(
	struct check *c, uint64_t seed, uint32_t k, uint32_t n_colocated)
{
	static struct sim_job job;
	uint64_t from_ns, bytes;
	const char *wrong;
	bool is_done;
	double link_s, s;

	sim_job_init(&job, seed);
	job.n_workers = N;
	job.n_servers = k + n_colocated;
	job.n_colocated = n_colocated;
	job.n_rounds = ROUNDS;
	job.is_in_order = true;
	job.params.payload = PAYLOAD;
	job.net.faults.queue_bytes = QUEUE;
	job.n_elems[0] =
		n_stripes(k, n_colocated) * SW_STRIPE_CHUNKS * (PAYLOAD / 4);
	bytes = 4ULL * job.n_elems[0];
	sim_job_open(&job);
	for (uint32_t i = 0; i < job.net.n_nodes; i++)
		job.net.nodes[i].rate_bits_s = RATE_BITS_S;
	sim_net_run(&job.net, LONGEST_RUN, has_first, &job);
	from_ns = job.net.now_ns;
	is_done = sim_job_run(&job, LONGEST_RUN);
	wrong = is_done ? sim_job_wrong(&job) : "not complete";
	check(c, !wrong, wrong);
	s = 1e-9 * (double)(job.net.now_ns - from_ns) / (ROUNDS - 1);
	link_s = 8.0 * (double)bytes / PAYLOAD * FRAME / (double)RATE_BITS_S;
	sim_job_close(&job);
	return s / link_s;
}

/* Return equation 6 in the same unit; k = 0 is all-reduce. */
static double optimum(double k)
{
	return 2.0 * N * (N - 1) / (N * N + k * N - 2 * k);
}

static void check_time(
	struct check *c, uint32_t k, double t, double best, double tolerance)
{
	printf("# k = %u: measured %.4f, at best %.4f\n", k, t, best);
	check(c, t / best - 1 < tolerance, "near the optimum");
	check(c, t / best - 1 > -0.001, "not faster than possible");
}

static void time__optimal(struct check *c)
{
	bool is_quick = getenv("SUMWIRE_TEST_QUICK") != NULL;

	for (uint32_t k = is_quick ? 2 : 0; k <= N; k += is_quick ? 6 : 1)
		check_time(c, k, run(c, 1, k, N), optimum(k), TOLERANCE);
}

/* Without colocated servers, too few CPU machines are the bottleneck. */
static void time__ps(struct check *c)
{
	double t = 0;

	for (uint64_t seed = 1; seed <= 3; seed++)
		t += run(c, seed, N / 2, 0) / 3;
	check_time(c, N / 2, t, 2, TOLERANCE_PS);
}

static void print_all(struct check *c)
{
	printf("# n = %d, times as multiples of M / B\n"
	       "# %2s %8s %8s %7s %10s %8s %8s\n",
		N, "k", "measured", "eq. 6", "over", "all-reduce", "PS",
		"at best");
	for (uint32_t k = 0; k <= N; k++) {
		double t = run(c, 1, k, N), best = optimum(k);

		printf("# %2u %8.4f %8.4f %6.2f%% %10.4f %8.4f %8.4f\n", k, t,
			best, 100 * (t / best - 1), optimum(0),
			k ? run(c, 1, k, 0) : 0, k ? (double)N / k : 0);
	}
}

int main(int argc, char **argv)
{
	static const struct check_case cases[] = {
		{"time__optimal", time__optimal}, {"time__ps", time__ps}};
	static const struct check_case all[] = {{"print_all", print_all}};
	uint32_t passed = 0, failed = 0;

	if (argc > 1 && !strcmp(argv[1], "--all"))
		check_run(all, 1, NULL, &passed, &failed);
	else
		check_run(cases, 2, NULL, &passed, &failed);
	return check_end(passed, failed);
}
