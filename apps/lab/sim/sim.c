/* sim.c - run one simulation from its description to its figures.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/sim/sim.h"

#include <stdlib.h>
#include <string.h>

#include "apps/lab/array.h"
#include "apps/lab/sim/copies.h"
#include "apps/lab/sim/kernels.h"
#include "apps/lab/sim/record.h"
#include "apps/lab/sim/route.h"
#include "apps/lab/sim/traffic.h"
#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/random.h"

/* --- the environment of engines --- */

static void *mem_get(void *ctx, uint64_t bytes)
{
	return sw_sim_arena_take(&((struct sw_sim *)ctx)->arena, bytes);
}

static void mem_put(void *ctx, void *mem, uint64_t bytes)
{
	sw_sim_arena_put(&((struct sw_sim *)ctx)->arena, mem, bytes);
}

static uint64_t env_random(void *ctx)
{
	return sw_random_next(&((struct sw_sim *)ctx)->rng);
}

static void drop_line(void *ctx, enum sw_log_level level, const char *text)
{
	(void)ctx;
	(void)level;
	(void)text;
}

int sw_sim_open(struct sw_sim *s, const struct sw_sim_desc *d)
{
	int err;

	memset(s, 0, sizeof(*s));
	s->desc = d;
	s->rng = d->run.seed * 2 + 1;
	s->log = (struct sw_log){.line = drop_line, .level = SW_LOG_ERROR};
	s->kernels = d->run.has_oracle ? *sw_sum_best(SW_SUM_AVX512)
				       : sw_sim_kernels();
	s->env = (struct sw_env){.log = &s->log,
		.sum = &s->kernels,
		.is_lazy = true,
		.ctx = s,
		.mem_get = mem_get,
		.mem_put = mem_put,
		.random = env_random};
	err = sw_sim_build(&s->net, d, s->why);
	sw_sim_nodes_init(&s->net);
	if (!err)
		err = sw_sim_jobs_open(s);
	if (!err)
		err = sw_sim_rosters_open(s);
	if (!err)
		err = sw_sim_flaps_open(&s->net, d, s->flaps, s->why);
	if (!err)
		err = sw_sim_traffic_open(&s->net, d, &s->traffic, s->why);
	if (!err)
		err = sw_sim_plain_open(s);
	if (!err)
		err = sw_sim_record_open(s, &s->record);
	if (err && !s->why[0])
		snprintf(s->why, sizeof(s->why), "%s", sw_error_text(err));
	return err;
}

/* --- figures --- */

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Return the value at @percent of @n sorted values, by nearest rank. */
static uint64_t rank_of(const uint64_t *sorted, uint64_t n, uint32_t percent)
{
	return n ? sorted[(n * percent + 99) / 100 - (percent > 0)] : 0;
}

static void measure_rounds(
	const struct sw_sim_job *j, struct sw_sim_job_result *r)
{
	uint32_t warm = j->desc->n_warm ? j->desc->n_warm : 1;
	uint64_t *times, span;
	uint32_t n;

	if (j->n_rounds <= warm)
		return;
	n = j->n_rounds - warm;
	times = sw_lab_array(n, sizeof(*times));
	for (uint32_t i = 0; i < n; i++)
		times[i] =
			j->round_ends[warm + i] - j->round_ends[warm + i - 1];
	qsort(times, n, sizeof(*times), compare);
	for (uint32_t q = 0; q < 3; q++)
		r->round_ns[q] = rank_of(times, n, 25 * (q + 1));
	free(times);
	span = j->round_ends[j->n_rounds - 1] - j->round_ends[warm - 1];
	r->goodput_bit_s = (uint64_t)((unsigned __int128)j->bytes * n * 8 *
				      SW_S / sw_max64(span, 1));
}

static void count_engine(const struct sw_sim *s, const struct sw_sim_job *j,
	struct sw_sim_job_result *r)
{
	for (uint32_t i = 0; i < j->n_agents * j->desc->agent.lcores; i++) {
		const struct sw_sim_agent *a =
			&j->agents[i / j->desc->agent.lcores];
		const struct sw_stats *st =
			sw_worker_stats(&a->worker[i % j->desc->agent.lcores]);

		r->n_again += sw_word(&st->retransmissions);
		r->n_timeouts += sw_word(&st->timeouts);
	}
	for (uint32_t i = 0; i < s->net.n_cores; i++) {
		const struct sw_stats *st;

		if (!s->servers[i] || !j->has_used[i % s->net.n_nodes])
			continue;
		st = sw_server_stats(s->servers[i]);
		r->n_again += sw_word(&st->retransmissions);
		r->n_timeouts += sw_word(&st->timeouts);
	}
}

static void count_job(const struct sw_sim *s, struct sw_sim_job *j,
	struct sw_sim_job_result *r)
{
	snprintf(r->name, sizeof(r->name), "%s", j->desc->label);
	r->n_agents = j->n_agents;
	r->n_servers = j->n_servers;
	r->n_rounds = j->n_rounds;
	r->n_wanted = j->desc->n_rounds;
	r->bytes = j->bytes;
	r->n_wrong = j->n_wrong;
	if (j->plain)
		sw_sim_plain_count(j->plain, r);
	else
		count_engine(s, j, r);
	qsort(j->urgent, j->n_urgent, sizeof(*j->urgent), compare);
	r->urgent_ns[0] = rank_of(j->urgent, j->n_urgent, 50);
	r->urgent_ns[1] = rank_of(j->urgent, j->n_urgent, 99);
	measure_rounds(j, r);
}

static void count_net(struct sw_sim *s, struct sw_sim_result *r)
{
	char buf[SW_SIM_NAME];

	for (uint32_t i = 0; i < s->net.n_links; i++) {
		const struct sw_sim_link *l = &s->net.links[i];

		r->n_dropped += l->n.n_dropped + l->n.n_down;
		r->n_lost += l->n.n_lost;
		r->n_marked += l->n.n_marked;
		if (l->from < s->net.n_nodes) {
			r->n_frames += l->n.n_frames;
			continue;
		}
		if (l->n.most <= r->most_queued)
			continue;
		r->most_queued = l->n.most;
		snprintf(r->most_from, sizeof(r->most_from), "%s",
			sw_sim_name_of(&s->net, s->desc, l->from, buf));
		snprintf(r->most_to, sizeof(r->most_to), "%s",
			sw_sim_name_of(&s->net, s->desc, l->to, buf));
	}
	for (uint32_t i = 0; i < s->net.n_cores; i++)
		r->n_full += s->net.nodes[i].n_full;
	r->n_events = s->net.n_events;
	r->n_hops = s->net.n_arrived;
	r->most_frames = s->net.most_alive;
}

static void judge(const struct sw_sim *s, struct sw_sim_result *r)
{
	snprintf(r->why, sizeof(r->why), "%s", s->why);
	for (uint32_t i = 0; i < s->n_jobs && !r->why[0]; i++)
		if (!s->jobs[i].is_done)
			snprintf(r->why, sizeof(r->why),
				"job %s: %u of %u rounds in [run] duration",
				s->jobs[i].desc->label, s->jobs[i].n_rounds,
				s->jobs[i].desc->n_rounds);
}

void sw_sim_go(struct sw_sim *s, struct sw_sim_result *r)
{
	uint64_t from_ns = s->net.now_ns;

	memset(r, 0, sizeof(*r));
	sw_sim_run(&s->net, from_ns + s->desc->run.duration_ns);
	r->time_ns = s->net.now_ns - from_ns;
	r->n_jobs = s->n_jobs;
	for (uint32_t i = 0; i < s->n_jobs; i++)
		count_job(s, &s->jobs[i], &r->jobs[i]);
	sw_sim_copies_fold(s->desc, r);
	if (s->traffic)
		sw_sim_traffic_count(s->traffic, r);
	count_net(s, r);
	sw_sim_record_close(s, s->record);
	s->record = NULL;
	judge(s, r);
}

void sw_sim_end(struct sw_sim *s)
{
	sw_sim_record_close(s, s->record);
	sw_sim_rosters_close(s);
	sw_sim_jobs_close(s);
	sw_sim_traffic_close(s->traffic);
	sw_sim_close(&s->net);
	sw_sim_arena_close(&s->arena);
}
