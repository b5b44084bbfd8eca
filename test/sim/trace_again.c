/* trace_again.c - groups that are opened and closed repeatedly.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Each worker opens a stream, calls a collective of it and closes it. When the
 * close has completed at this worker, it opens the next stream at the same
 * index. It does not wait for the other workers.
 */
#include <stdio.h>

#include "engine/worker/stream.h"
#include "engine/worker/link.h"
#include "test/sim/trace_job.h"

enum {
	LOG2 = SW_WINDOW_MIN_LOG2,
	ELEMS = 700, /* three chunks */
	OFTEN = 10000,
	SOME = 300,
	FEW = 4, /* free indices left at the coordinator */
};

enum state { IDLE, OPENING, CALLING, CLOSING };

/* A worker's script. */
struct opener {
	enum state state;
	uint32_t n;  /* groups that it has closed completely */
	uint32_t id; /* id of the last group; 0: none yet */
	int32_t from[SIM_LOCAL][ELEMS], to[SIM_LOCAL][ELEMS];
};

struct scene {
	struct sim_job *job;
	struct opener w[SIM_WORKERS];
	uint16_t ranks[SIM_WORKERS * SIM_LOCAL];
	uint32_t n_ranks, often;
};

static void open_next(struct scene *s, uint32_t r)
{
	struct sim_worker *w = &s->job->workers[r];
	struct opener *o = &s->w[r];
	char name[32];
	struct sw_worker_tensor t = {.name = name,
		.window_log2 = LOG2,
		.ranks = s->ranks,
		.n_ranks = s->n_ranks,
		.again = o->id ? sw_id_next(o->id) : 0};

	snprintf(name, sizeof(name), "g#%u/a", o->n);
	for (uint32_t i = 0; i < w->n_lanes; i++)
		if (sw_worker_build(i ? &w->others[i - 1] : &w->engine, &t, 1))
			abort();
	if (sw_worker_add(&w->engine))
		abort();
	o->id = t.again ? t.again : w->engine.n_places - 1;
	o->state = OPENING;
}

static void call(struct scene *s, uint32_t r)
{
	struct sim_worker *w = &s->job->workers[r];
	struct opener *o = &s->w[r];

	for (uint32_t l = 0; l < w->n_local; l++) {
		struct sw_worker_coll ask = {.stream = o->id,
			.local = l,
			.kind = SW_ALL_REDUCE,
			.dtype = SW_I32,
			.n_elems = ELEMS,
			.from = o->from[l],
			.to = o->to[l],
			.from_bytes = sizeof(o->from[l]),
			.to_bytes = sizeof(o->to[l]),
			.cookie = SIM_COOKIE_COLL};

		for (uint32_t i = 0; i < ELEMS; i++)
			o->from[l][i] = (int32_t)(o->n + i);
		w->of_group[0].n_submitted++;
		if (sw_worker_coll(&w->engine, &ask))
			abort();
	}
	o->state = CALLING;
}

static void close_group(struct check *c, struct scene *s, uint32_t r)
{
	struct sim_worker *w = &s->job->workers[r];
	struct opener *o = &s->w[r];
	uint32_t n_wrong = 0;

	for (uint32_t l = 0; l < w->n_local; l++) {
		for (uint32_t i = 0; i < ELEMS; i++)
			n_wrong += o->to[l][i] !=
				   (int32_t)(s->n_ranks * (o->n + i));
		sw_worker_close_group(&w->engine, o->id, l);
	}
	check_eq(c, n_wrong, 0, "elements that are wrong");
	o->state = CLOSING;
}

static void step(struct check *c, struct scene *s, uint32_t r)
{
	struct sim_worker *w = &s->job->workers[r];
	struct sim_of_group *of = &w->of_group[0];
	struct opener *o = &s->w[r];
	enum state was = o->state;

	if (was == CLOSING && w->n_gone > o->n) {
		o->n++;
		o->state = IDLE;
	}
	if (o->state == IDLE && o->n < s->often && w->is_running)
		open_next(s, r);
	else if (was == OPENING && w->engine.n_admitted == w->engine.n_tensors)
		call(s, r);
	else if (was == CALLING && of->n_done == of->n_submitted)
		close_group(c, s, r);
	if (o->state == was)
		return;
	for (uint32_t i = 0; i < w->n_lanes; i++) {
		w->lcores[i]->loop.tick_at_ns = 0;
		sim_node_poke(w->lcores[i]);
	}
}

/* Use up most indices, so that the next generation of a key soon follows. */
static void leave_few(struct sim_job *job)
{
	struct sw_bitmap *free = &job->servers[0]->jobs[0].shard.free;

	for (uint32_t i = sw_bitmap_first(free) + FEW; i < SW_KEY_INDICES; i++)
		sw_bitmap_remove(free, i);
}

static bool are_through(const struct scene *s)
{
	for (uint32_t r = 0; r < s->job->n_workers; r++)
		if (s->w[r].n < s->often)
			return false;
	return true;
}

static struct scene *open_scene(struct sim_job *job, uint32_t often)
{
	struct scene *s = calloc(1, sizeof(*s));

	if (!s)
		abort();
	job->n_tensors = job->n_first = 1;
	job->is_edited = true; /* this file checks the elements */
	s->job = job;
	s->often = often;
	for (uint32_t r = 0; r < job->n_workers; r++)
		for (uint32_t l = 0; l < job->n_local[r]; l++, s->n_ranks++)
			s->ranks[s->n_ranks] = (uint16_t)s->n_ranks;
	sim_job_open(job);
	sim_job_pass(job, 50 * SW_MS);
	return s;
}

static void close_scene(struct check *c, struct scene *s)
{
	struct sim_job *job = s->job;

	for (uint32_t r = 0; r < job->n_workers; r++) {
		const struct sim_worker *w = &job->workers[r];

		check_eq(c, s->w[r].n, s->often, "groups of a worker");
		check_eq(c, w->has_failed, 0, w->text);
		check_eq(c, w->engine.n_places, 2, "indices of a worker");
	}
	for (uint32_t e = 0; e < job->n_servers * job->n_lcores; e++)
		check_eq(c, job->servers[e]->jobs[0].shard.n_tensors, 1,
			"tensors of a server");
	sim_job_close(job);
	free(job);
	free(s);
}

/* Run until all workers are done. Then engines must hold as much memory as
 * before, and never more than with the first groups. */
static void run(struct check *c, struct scene *s)
{
	struct sim_job *job = s->job;
	uint64_t before = job->mem_bytes, most = 0, early = 0;
	uint64_t until_ns = job->net.now_ns + s->often * SW_S;

	while (!are_through(s) && job->net.now_ns < until_ns) {
		for (uint32_t r = 0; r < job->n_workers; r++)
			step(c, s, r);
		sim_job_pass(job, 20 * SW_US);
		most = sw_max64(most, job->mem_bytes);
		if (s->w[0].n < 100)
			early = most;
	}
	sim_job_pass(job, SW_S);
	check_eq(c, job->mem_bytes, before, "bytes afterwards");
	check(c, most <= early + early / 4, "no more bytes than at first");
	close_scene(c, s);
}

static struct sim_job *new_groups(uint32_t n_workers, uint32_t n_servers)
{
	struct sim_job *job = new_job(1, 1);

	job->n_workers = n_workers;
	job->n_servers = n_servers;
	return job;
}

/* Use each index of a key at least twice. */
static void again_often(struct check *c)
{
	run(c, open_scene(new_groups(2, 1), OFTEN));
}

static void add_faults(struct sim_job *job)
{
	job->net.faults = (struct sim_faults){.loss = 20000,
		.dup = 20000,
		.late = 50000,
		.late_ns = 200 * SW_MS,
		.jitter_ns = 30 * SW_US};
}

/* Late frames, up to many groups later, have no effect. */
static void again_with_faults(struct check *c)
{
	struct sim_job *job = new_groups(3, 2);
	struct scene *s;

	add_faults(job);
	s = open_scene(job, SOME);
	leave_few(job);
	run(c, s);
}

/* Use lanes, local ranks and servers of several lcores. */
static void again_of_lanes(struct check *c)
{
	struct sim_job *job = new_groups(2, 2);
	struct scene *s;

	job->n_lcores = 2;
	for (uint32_t r = 0; r < 2; r++) {
		job->n_lanes[r] = (uint8_t)(2 + r);
		job->n_local[r] = (uint16_t)(1 + r);
	}
	add_faults(job);
	s = open_scene(job, SOME);
	leave_few(job);
	run(c, s);
}

const struct check_case trace_again[] = {
	{"again_often", again_often},
	{"again_with_faults", again_with_faults},
	{"again_of_lanes", again_of_lanes},
};
const uint32_t n_trace_again = SW_ARRAY_SIZE(trace_again);
