/* trace_congestion.c - queues in the network's core that overflow.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A trunk with a finite queue lies between the members of a job.  Each case
 * measures, after some time to settle: goodput as a part of what the trunk
 * carries of payload, dropped frames, and retransmissions that were needless.
 * Sums must be exact.  With SIM_WHOLE in the environment every rate and queue
 * is tried, and each figure is held against its target.  SIM_SEED makes paths a
 * little longer, for figures that do not hang on one case.  The rounds of the
 * two ways wait for each other, so goodput also shows how evenly flows share.
 */
#include <stdio.h>

#include "engine/server/server_int.h"
#include "test/sim/trace_job.h"

enum { TENSORS = 8 };

static const uint64_t MBIT = 1000 * 1000;

struct path {
	uint64_t rate_mbit, rtt_us;
	uint32_t queue, payload;
	uint32_t loss;   /* at random, ppm */
	uint32_t tensor; /* bytes of the only one; 0: TENSORS of a MiB */
	uint32_t mark; /* 1 + queue from which on frames are marked; 0: never */
};

/* The effect of a path on a job. */
struct outcome {
	double goodput, drops, needless; /* parts of 1 */
	double jain;                     /* fairness of the members' pushes */
	uint64_t n_marked;               /* frames that arrived marked */
};

struct totals {
	uint64_t n_data, n_dropped, n_needless, n_frames, n_marked, bytes;
	uint64_t of_worker[SIM_WORKERS];
};

static struct totals count(const struct sim_job *job)
{
	struct totals sum = {0};

	for (uint32_t i = 0; i < SIM_TRUNKS; i++) {
		sum.n_data += job->net.trunks[i].n_data;
		sum.n_dropped += job->net.trunks[i].n_dropped;
	}
	for (uint32_t r = 0; r < job->n_workers; r++) {
		struct sw_stats st = sim_worker_stats(&job->workers[r]);

		sum.bytes += st.result_bytes;
		sum.of_worker[r] = st.push_bytes;
		sum.n_frames += st.tx_frames;
		sum.n_needless += st.result_again;
		sum.n_marked += st.rx_marked;
	}
	for (uint32_t i = 0; i < job->n_servers; i++) {
		const struct sw_stats *st = &job->servers[i]->stats;

		sum.n_needless += st->push_again;
		sum.n_marked += st->rx_marked;
		sum.n_frames += st->tx_frames;
	}
	return sum;
}

static double jain(
	const struct totals *from, const struct totals *to, uint32_t n)
{
	double sum = 0, squares = 0;

	for (uint32_t r = 0; r < n; r++) {
		double x = (double)(to->of_worker[r] - from->of_worker[r]);

		sum += x;
		squares += x * x;
	}
	return squares > 0 ? sum * sum / (n * squares) : 0;
}

static bool has_targets(void)
{
	return getenv("SIM_WHOLE") != NULL;
}

/* Payload that a trunk carries in @ns. */
static double capacity(const struct path *p, uint64_t ns)
{
	double full = p->payload + SW_HEAD_BYTES + SIM_WIRE_BYTES;

	return (double)(p->rate_mbit * MBIT) / 8 * (double)ns / 1e9 *
	       p->payload / full;
}

static void put_trunks(struct sim_net *net, const struct path *p, uint64_t left,
	uint64_t right)
{
	uint64_t masks[] = {left, right};

	for (uint32_t i = 0; i < SIM_TRUNKS; i++)
		net->trunks[i] =
			(struct sim_trunk){.rate_bits_s = p->rate_mbit * MBIT,
				.queue_bytes = p->queue,
				.mark_bytes = p->mark,
				.from_mask = masks[i],
				.to_mask = masks[!i]};
}

static struct sim_job *open_job(const struct path *p, uint32_t n_workers,
	uint32_t n_servers, uint32_t bytes)
{
	const char *text = getenv("SIM_SEED");
	uint64_t seed = text ? strtoull(text, NULL, 10) : 0;
	struct sim_job *job = new_job(0, 1 << 20);

	uint32_t n = p->tensor ? 1 : TENSORS;

	/* Several tensors, so that both ways have something to carry. */
	job->n_tensors = job->n_first = n;
	for (uint32_t t = 0; t < n; t++)
		job->n_elems[t] = (p->tensor ? p->tensor : bytes / n) / 8;

	job->n_workers = n_workers;
	job->n_servers = n_servers;
	job->dtype = SW_I64;
	job->is_in_order = true; /* no member dawdles */
	job->params.payload = p->payload;
	job->net.latency_ns = p->rtt_us * SW_US / 2 + 137 * seed;
	job->net.rng += seed;
	job->net.faults.loss = p->loss;
	return job;
}

/* Let it settle, then measure.  @ways: is the payload that each way carries for
 * a byte of result at a worker. */
static struct outcome measure(struct check *c, struct sim_job *job,
	const struct path *p, double ways, uint64_t settle_ns, uint64_t ns)
{
	struct totals from, to;
	struct outcome out;

	sim_job_pass(job, settle_ns);
	from = count(job);
	sim_job_pass(job, ns);
	to = count(job);
	out.goodput = (double)(to.bytes - from.bytes) / capacity(p, ns) * ways;
	out.n_marked = to.n_marked - from.n_marked;
	out.drops = (double)(to.n_dropped - from.n_dropped) /
		    (double)(to.n_data - from.n_data);
	out.needless = (double)(to.n_needless - from.n_needless) /
		       (double)(to.n_frames - from.n_frames);
	out.jain = jain(&from, &to, job->n_workers);
	printf("# %llu Mb/s, %llu us, queue %u KiB, %u B, loss %u ppm: "
	       "goodput %.3f, drops %.2f %%, needless %.2f %%, Jain %.3f\n",
		(unsigned long long)p->rate_mbit, (unsigned long long)p->rtt_us,
		p->queue >> 10, p->payload, p->loss, out.goodput,
		100 * out.drops, 100 * out.needless, out.jain);
	for (uint32_t r = 0; r < job->n_workers; r++)
		check_eq(c, job->workers[r].n_wrong, 0, "wrong elements");
	check_eq(c, job->n_bad_pushes + job->n_bad_results, 0, "bad frames");
	return out;
}

static void close_job(struct sim_job *job)
{
	sim_job_close(job);
	free(job);
}

/* Time in which the trunk carries @bytes. */
static uint64_t time_of(const struct path *p, uint64_t bytes)
{
	return bytes * 8 * 1000 / p->rate_mbit;
}

/* Two machines, each with a worker and a server, at both ends of a trunk. */
static struct outcome alone(struct check *c, const struct path *p)
{
	uint64_t some = time_of(p, 4 << 20) + 20 * p->rtt_us * SW_US;
	struct sim_job *job = open_job(p, 2, 2, 8 << 20);
	/* Of the begin, rounds of the first tensors; later, of all. */
	uint64_t settle = has_targets() ? 8 : 1;
	struct outcome out;

	job->n_colocated = 2;
	sim_job_open(job);
	put_trunks(&job->net, p, 1, 2);
	/* In each way half of a tensor goes, and half of the results. */
	out = measure(c, job, p, 0.5, settle * some, (8 + settle) * some);
	close_job(job);
	return out;
}

static void check_alone(struct check *c, const struct path *p)
{
	struct outcome out = alone(c, p);

	/* Without a window, two frames of three are dropped. */
	check(c, out.drops <= 0.02, "some frames are dropped");
	check(c, out.goodput >= 0.75, "the trunk is in use");
	check(c, out.needless <= 0.002, "few retransmissions are needless");
	if (!has_targets())
		return;
	check(c, out.goodput >= (p->queue < 64 << 10 ? 0.75 : 0.9),
		"the trunk is full");
	check(c, out.drops <= 0.01, "few frames are dropped");
}

static void congestion_alone(struct check *c)
{
	static const struct path some[] = {
		{.rate_mbit = 200,
			.rtt_us = 200,
			.queue = 64 << 10,
			.payload = 1344},
		{.rate_mbit = 1000,
			.rtt_us = 100,
			.queue = 64 << 10,
			.payload = 1344},
		{.rate_mbit = 1000,
			.rtt_us = 100,
			.queue = 256 << 10,
			.payload = 8192},
		/* A long queue fills and drains in each round. */
		{.rate_mbit = 200,
			.rtt_us = 200,
			.queue = 1 << 20,
			.payload = 1344,
			.tensor = 2 << 20},
	};

	for (uint32_t i = 0; i < SW_ARRAY_SIZE(some); i++)
		check_alone(c, &some[i]);
}

/* Every rate and queue; long, so with SIM_WHOLE alone. */
static void congestion_alone_everywhere(struct check *c)
{
	static const uint32_t queues[] = {
		16 << 10, 64 << 10, 256 << 10, 1 << 20};
	static const uint64_t rates[] = {50, 200, 1000, 10000};

	if (!has_targets())
		return;
	for (uint32_t r = 0; r < SW_ARRAY_SIZE(rates); r++)
		for (uint32_t q = 0; q < SW_ARRAY_SIZE(queues); q++)
			for (uint32_t jumbo = 0; jumbo < (q ? 2 : 1); jumbo++)
				check_alone(c,
					&(struct path){.rate_mbit = rates[r],
						.rtt_us = rates[r] < 1000 ? 200
									  : 100,
						.queue = queues[q],
						.payload =
							jumbo ? 8192 : 1344});
}

/* --- two jobs --- */

static uint64_t results_of(const struct sim_job *job, uint32_t rank)
{
	return sim_worker_stats(&job->workers[rank]).result_bytes;
}

/* A second job comes to a trunk @late_ms after the first. Return the part of
 * the smaller one in the results of both after two seconds, for @seconds. */
static double smaller_share(struct check *c, const struct path *p,
	uint64_t late_ms, uint64_t seconds)
{
	struct sim_job *job = open_job(p, 4, 4, 8 << 20);
	uint64_t ns = seconds * SW_S, a, b;
	struct totals from, to;

	job->n_colocated = 4;
	job->n_jobs = 2;
	sim_job_open(job);
	put_trunks(&job->net, p, 3, 12);
	for (uint32_t r = 1; r < 4; r += 2)
		job->workers[r].pause_until_ns =
			job->net.now_ns + late_ms * SW_MS;
	sim_job_pass(job, late_ms * SW_MS + 2 * SW_S);
	from = count(job);
	a = results_of(job, 0);
	b = results_of(job, 1);
	sim_job_pass(job, ns);
	to = count(job);
	a = results_of(job, 0) - a;
	b = results_of(job, 1) - b;
	printf("# %llu Mb/s, %llu us, queue %u KiB, %llu ms late: two jobs got "
	       "%.3f, %.3f, drops %.2f %%, needless %.2f %%\n",
		(unsigned long long)p->rate_mbit, (unsigned long long)p->rtt_us,
		p->queue >> 10, (unsigned long long)late_ms,
		(double)a / capacity(p, ns), (double)b / capacity(p, ns),
		100.0 * (double)(to.n_dropped - from.n_dropped) /
			(double)(to.n_data - from.n_data),
		100.0 * (double)(to.n_needless - from.n_needless) /
			(double)(to.n_frames - from.n_frames));
	check_eq(c, job->n_bad_pushes + job->n_bad_results, 0, "bad frames");
	close_job(job);
	return (double)sw_min64(a, b) / (double)(a + b);
}

/* With a long queue, round trips are so long that a window which grows by round
 * trips stays small. Where frames are lost all the time, a mean needs many
 * losses: in 4 s a flow of the longest case shrinks only eight times. */
static void congestion_two_jobs(struct check *c)
{
	static const struct {
		uint64_t mbit, rtt_us, late_ms;
		uint32_t kib, seconds;
	} of[] = {
		{50, 200, 2000, 1024, 4},
		/* the others with SIM_WHOLE alone */
		{200, 200, 1000, 1024, 4},
		{200, 5000, 1000, 1024, 4},
		{50, 200, 0, 1024, 4},
		{50, 5000, 2000, 1024, 4},
		{50, 200, 0, 64, 4},
		{50, 200, 0, 256, 16},
		{50, 5000, 2000, 256, 16},
	};

	for (uint32_t i = 0; i < (has_targets() ? SW_ARRAY_SIZE(of) : 1); i++) {
		struct path p = {.rate_mbit = of[i].mbit,
			.rtt_us = of[i].rtt_us,
			.queue = of[i].kib << 10,
			.payload = 1344,
			.tensor = 4 << 20};

		/* 1 / (1 + 1.25 / 0.8) is asked */
		check(c,
			smaller_share(c, &p, of[i].late_ms, of[i].seconds) >=
				0.39,
			"both have their share");
	}
}

/* --- many to one --- */

static bool have_begun(void *ctx)
{
	const struct sim_job *job = ctx;

	for (uint32_t r = 0; r < job->n_workers; r++)
		if (!job->workers[r].asked[0] && !job->workers[r].round[0])
			return false;
	return true;
}

/* @n workers push to one server behind a trunk. */
static void incast(struct check *c, uint32_t n, uint32_t payload)
{
	struct path p = {.rate_mbit = 10000,
		.rtt_us = 100,
		.queue = 64 << 10,
		.payload = payload};
	struct sim_job *job = open_job(&p, n, 1, (8 << 20) / n & ~7u);
	uint64_t workers = ((1ULL << n) - 1) << 1; /* node 0 is the server */
	struct outcome out;

	sim_job_open(job);
	put_trunks(&job->net, &p, workers, 1);
	check(c, sim_net_run(&job->net, 2 * SW_S, have_begun, job),
		"all begin");
	out = measure(c, job, &p, 1, 25 * SW_MS, 20 * SW_MS);
	close_job(job);
	/* A queue of seven jumbo frames is short for 60 senders. */
	check(c, out.drops <= (payload > 1344 ? 0.03 : 0.015),
		"few frames are dropped");
	check(c, out.goodput >= 0.7, "the trunk is in use");
	if (!has_targets())
		return;
	check(c, out.goodput >= (payload > 1344 ? 0.7 : 0.8),
		"the trunk is full");
	check(c, out.jain >= 0.9, "no member starves");
}

static void congestion_incast_4(struct check *c)
{
	incast(c, 4, 1344);
}

static void congestion_incast_32(struct check *c)
{
	incast(c, 32, 1344);
}

static void congestion_incast_60_jumbo(struct check *c)
{
	if (has_targets())
		incast(c, 60, 8192);
}

static void congestion_incast_60(struct check *c)
{
	if (has_targets())
		incast(c, 60, 1344);
}

/* --- loss at random is no congestion --- */

static void congestion_random_loss(struct check *c)
{
	static const struct {
		uint32_t ppm;
		double target, least;
	} of[] = {{100, 0.98, 0.9}, {1000, 0.95, 0.8}, {10000, 0.5, 0.5}};

	for (uint32_t i = 0; i < SW_ARRAY_SIZE(of); i++) {
		struct path p = {.rate_mbit = 10000,
			.rtt_us = 100,
			.queue = 2 << 20,
			.payload = 8192,
			.loss = of[i].ppm};

		check(c,
			alone(c, &p).goodput >=
				(has_targets() ? of[i].target : of[i].least),
			"loss at random keeps the rate");
	}
}

/* For a round trip one frame in twenty is lost.  Five milliseconds later the
 * path is as full as it was. */
static void congestion_recovers(struct check *c)
{
	static const struct path p = {.rate_mbit = 10000,
		.rtt_us = 100,
		.queue = 256 << 10,
		.payload = 1344};
	uint64_t some = time_of(&p, 16 << 20);
	struct sim_job *job = open_job(&p, 2, 2, 8 << 20);
	struct outcome before, after;

	job->n_colocated = 2;
	sim_job_open(job);
	put_trunks(&job->net, &p, 1, 2);
	before = measure(c, job, &p, 0.5, some, 2 * some);
	job->net.faults.loss = 50000;
	sim_job_pass(job, 100 * SW_US);
	job->net.faults.loss = 0;
	after = measure(c, job, &p, 0.5, 5 * SW_MS, 5 * SW_MS);
	check(c, after.goodput >= 0.9 * before.goodput,
		"the path is full again");
	close_job(job);
}

/* --- switches that mark (ECN) --- */

static void congestion_marks(struct check *c)
{
	static const struct path of[] = {
		{.rate_mbit = 200, .rtt_us = 200, .payload = 1344},
		{.rate_mbit = 1000, .rtt_us = 100, .payload = 1344},
		{.rate_mbit = 10000, .rtt_us = 100, .payload = 8192},
	};

	for (uint32_t i = 0; i < SW_ARRAY_SIZE(of); i++) {
		struct path p = of[i];
		struct outcome out;

		p.queue = 512 << 10;
		p.mark = 64 << 10;
		out = alone(c, &p);
		check(c, out.goodput >= (has_targets() ? 0.9 : 0.7),
			"the trunk is full");
		check(c, out.drops == 0, "marks come in time");
		check(c, out.n_marked > 0, "marked frames are counted");
	}
}

/* Queue and drops of the way there, each millisecond from the begin on, as
 * "# MS KIB DROPS"; for figures, with SIM_PLOT in the environment: the queue
 * from which on frames are marked, or 0. */
static void congestion_plot(struct check *c)
{
	const char *mark = getenv("SIM_PLOT");
	struct path p = {.rate_mbit = 200,
		.rtt_us = 200,
		.queue = 64 << 10,
		.payload = 1344};
	struct sim_job *job;

	(void)c;
	if (!mark)
		return;
	p.mark = (uint32_t)strtoul(mark, NULL, 10);
	job = open_job(&p, 2, 2, 8 << 20);
	job->n_colocated = 2;
	sim_job_open(job);
	put_trunks(&job->net, &p, 1, 2);
	for (uint32_t ms = 1; ms <= 300; ms++) {
		const struct sim_trunk *t = &job->net.trunks[0];
		uint64_t left;

		sim_job_pass(job, SW_MS);
		left = t->busy_until_ns > job->net.now_ns
			       ? t->busy_until_ns - job->net.now_ns
			       : 0;
		printf("# %u %.1f %llu\n", ms,
			(double)(left * t->rate_bits_s / 8 / SW_S) / 1024,
			(unsigned long long)t->n_dropped);
	}
	close_job(job);
}

/* Marks on every frame slow the job down and do no other harm. */
static void congestion_forged_marks(struct check *c)
{
	struct path p = {.rate_mbit = 1000,
		.rtt_us = 100,
		.queue = 512 << 10,
		.mark = 1,
		.payload = 1344};
	struct outcome out;

	out = alone(c, &p);
	check(c, out.goodput >= 0.01, "the job goes on");
	check(c, out.n_marked > 0, "marked frames are counted");
	check(c, out.drops == 0, "nothing is dropped");
}

const struct check_case trace_congestion[] = {
	{"congestion_alone", congestion_alone},
	{"congestion_alone_everywhere", congestion_alone_everywhere},
	{"congestion_two_jobs", congestion_two_jobs},
	{"congestion_incast_4", congestion_incast_4},
	{"congestion_incast_32", congestion_incast_32},
	{"congestion_incast_60", congestion_incast_60},
	{"congestion_incast_60_jumbo", congestion_incast_60_jumbo},
	{"congestion_random_loss", congestion_random_loss},
	{"congestion_recovers", congestion_recovers},
	{"congestion_marks", congestion_marks},
	{"congestion_forged_marks", congestion_forged_marks},
	{"congestion_plot", congestion_plot},
};
const uint32_t n_trace_congestion =
	sizeof(trace_congestion) / sizeof(trace_congestion[0]);
