/* tune_engine.c - sumwire-lab tune --engine: the landscape of the real engine.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * One job of two ranks iterates over a small network from the beginning to the
 * end.  Only its tuning changes, and in the middle also the rate of rank 0's
 * port.  Rank 0 executes the steps below, an iteration at a time.
 */
#include "apps/lab/tune_engine.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>

#include "apps/cli/json.h"
#include "apps/lab/replay.h"
#include "apps/launch/run.h"
#include "pmd/client/tuner/tune_live.h"

enum {
	LAYERS = 12,
	LAYER_ELEMS = 131072, /* 512 KiB */
	LAYER_US = 100,       /* forward; backward takes twice as long */
	POINTS = SW_ENGINE_PARTS * SW_ENGINE_CREDITS,
	SKIPPED = 1, /* skipped iterations at each point of the grid */
	COUNTED = 3,
	PASSES = 2,       /* passes over the grid; the faster one counts */
	ITERS_MAX = 4000, /* more iterations mean that something is wrong */
	ARGS = 64,
};

#define GRACE_NS UINT64_C(15000000000)

static const uint64_t parts[SW_ENGINE_PARTS] = {
	8 << 10, 64 << 10, 512 << 10, 4 << 20};
static const uint64_t credits[SW_ENGINE_CREDITS] = {
	16 << 10, 128 << 10, 1 << 20, 8 << 20, 64 << 20};

enum step { TUNE, GRID, TUNE_LATER, GRID_LATER, OVER };

/* Results at one rate. */
struct view {
	double ms[POINTS + 1]; /* last: time of the kept point */
	struct sw_tune_point kept;
	uint32_t n_noticed, n_tuned; /* numbers of iterations */
};

struct script {
	const struct sw_tune_engine *o;
	struct sw_tune_live live;
	enum step step;
	uint32_t point, pass, n_seen, n_iters, n_searches;
	double times[COUNTED];
	struct view views[2]; /* before and after the change of the rate */
};

static struct sw_tune_point point(const struct view *v, uint32_t i)
{
	return i == POINTS ? v->kept
			   : (struct sw_tune_point){
				     .partition_bytes =
					     parts[i / SW_ENGINE_CREDITS],
				     .credit_bytes =
					     credits[i % SW_ENGINE_CREDITS]};
}

static double middle(const double t[COUNTED])
{
	double low = fmin(t[0], t[1]), high = fmax(t[0], t[1]);

	return fmax(low, fmin(high, t[2]));
}

/* --- the steps --- */

static struct view *view_of(struct script *s)
{
	return &s->views[s->step >= TUNE_LATER];
}

/* Slow rank 0's port down, with the tuning that the tuner has kept. */
static int slow_down(struct script *s)
{
	int err = sw_set_rate(s->live.client, s->o->later_bit_s);

	s->n_searches = s->live.tuner.n_searches;
	fprintf(stderr, "rank 0's port from now on: %.4g Gb/s\n",
		1e-9 * (double)s->o->later_bit_s);
	return err ? err : sw_tune_live_set(&s->live, s->views[0].kept);
}

static int begin_step(struct script *s, enum step step)
{
	s->step = step;
	s->n_iters = s->n_seen = s->point = s->pass = 0;
	switch (step) {
	case TUNE:
		return sw_tune_live_begin(
			&s->live, s->live.client, s->o->seed, 0);
	case TUNE_LATER:
		return slow_down(s);
	case GRID:
	case GRID_LATER:
		return sw_tune_live_set(&s->live, point(view_of(s), 0));
	case OVER:
		break;
	}
	return SW_REPLAY_OVER;
}

static void note(double *ms, double new_ms)
{
	*ms = *ms > 0 ? fmin(*ms, new_ms) : new_ms;
}

/* Handle an iteration of the grid. */
static int walk(struct script *s, struct view *v, double iteration_s)
{
	bool was_waiting = s->live.is_waiting;

	if (!sw_tune_live_is_set(&s->live) || was_waiting)
		return 0;
	if (s->n_seen++ < SKIPPED)
		return 0;
	s->times[s->n_seen - SKIPPED - 1] = iteration_s;
	if (s->n_seen < SKIPPED + COUNTED)
		return 0;
	note(&v->ms[s->point], 1e3 * middle(s->times));
	s->n_seen = 0;
	if (++s->point > POINTS) {
		s->point = 0;
		if (++s->pass == PASSES)
			return begin_step(s, s->step + 1);
	}
	return sw_tune_live_set(&s->live, point(v, s->point));
}

/* Handle an iteration under the tuner, until it has settled. */
static int tune(struct script *s, struct view *v, double iteration_s)
{
	const struct sw_tuner *t = &s->live.tuner;
	int err = sw_tune_live_observe(&s->live, iteration_s);

	s->n_iters++;
	if (s->step == TUNE_LATER && !v->n_noticed &&
		t->n_searches > s->n_searches)
		v->n_noticed = s->n_iters;
	if (err || t->is_searching || !(t->kept_s > 0) ||
		(s->step == TUNE_LATER && !v->n_noticed))
		return err;
	v->kept = t->now;
	v->n_tuned = s->n_iters;
	return begin_step(s, s->step + 1);
}

static int each(void *ctx, struct sw_client *client, double iteration_s)
{
	struct script *s = ctx;
	struct view *v = view_of(s);

	if (!s->live.client) {
		s->live.client = client;
		return begin_step(s, TUNE);
	}
	if (s->step == OVER)
		return SW_REPLAY_OVER;
	return s->step == GRID || s->step == GRID_LATER
		       ? walk(s, v, iteration_s)
		       : tune(s, v, iteration_s);
}

/* --- the report --- */

static void extremes(const struct view *v, uint32_t *best, uint32_t *worst)
{
	*best = *worst = 0;
	for (uint32_t i = 1; i < POINTS; i++) {
		if (v->ms[i] < v->ms[*best])
			*best = i;
		if (v->ms[i] > v->ms[*worst])
			*worst = i;
	}
}

static const char *size_text(uint64_t bytes, char out[32])
{
	if (bytes >= 1 << 20)
		snprintf(out, 32, "%.3g MiB", (double)bytes / (1 << 20));
	else
		snprintf(out, 32, "%.3g KiB", (double)bytes / (1 << 10));
	return out;
}

static void print_grid(const struct view *v, uint64_t rate_bit_s)
{
	char text[32];

	printf("rank 0 at %.4g Gb/s, ms an iteration:\n%-18s",
		1e-9 * (double)rate_bit_s, "partition, credit");
	for (uint32_t c = 0; c < SW_ENGINE_CREDITS; c++)
		printf(" %9s", size_text(credits[c], text));
	for (uint32_t i = 0; i < POINTS; i++) {
		if (i % SW_ENGINE_CREDITS == 0)
			printf("\n%18s",
				size_text(parts[i / SW_ENGINE_CREDITS], text));
		printf(" %9.2f", v->ms[i]);
	}
	printf("\n");
}

static void print_view(const struct view *v, uint64_t rate_bit_s)
{
	uint32_t best, worst;
	char a[32], b[32];

	extremes(v, &best, &worst);
	print_grid(v, rate_bit_s);
	printf("spread %.0f %%; ", 100 * (v->ms[worst] / v->ms[best] - 1));
	if (v->n_noticed)
		printf("change noticed after %u iterations; ", v->n_noticed);
	printf("tuned after %u: partition %s, credit %s: %.2f ms, %.3f of the "
	       "grid's best\n",
		v->n_tuned, size_text(v->kept.partition_bytes, a),
		size_text(v->kept.credit_bytes, b), v->ms[POINTS],
		v->ms[POINTS] / v->ms[best]);
}

static void put_view(struct sw_json *j, const struct view *v, uint64_t rate)
{
	uint32_t best, worst;

	extremes(v, &best, &worst);
	sw_json_object_open(j, NULL);
	sw_json_double(j, "rate_gbit_s", 1e-9 * (double)rate);
	sw_json_double(j, "best_ms", v->ms[best]);
	sw_json_double(j, "worst_ms", v->ms[worst]);
	sw_json_double(j, "spread", v->ms[worst] / v->ms[best] - 1);
	sw_json_u64(j, "partition_bytes", v->kept.partition_bytes);
	sw_json_u64(j, "credit_bytes", v->kept.credit_bytes);
	sw_json_double(j, "tuned_ms", v->ms[POINTS]);
	sw_json_u64(j, "noticed_after", v->n_noticed);
	sw_json_u64(j, "tuned_after", v->n_tuned);
	sw_json_array_open(j, "grid");
	for (uint32_t i = 0; i < POINTS; i++) {
		sw_json_object_open(j, NULL);
		sw_json_u64(j, "partition_bytes", point(v, i).partition_bytes);
		sw_json_u64(j, "credit_bytes", point(v, i).credit_bytes);
		sw_json_double(j, "iteration_ms", v->ms[i]);
		sw_json_close(j);
	}
	sw_json_close(j);
	sw_json_close(j);
}

static int report(const struct script *s)
{
	struct sw_json j;

	if (!s->o->is_json) {
		print_view(&s->views[0], s->o->rate_bit_s);
		print_view(&s->views[1], s->o->later_bit_s);
		return 0;
	}
	sw_json_init(&j, stdout);
	sw_json_object_open(&j, NULL);
	sw_json_array_open(&j, "rates");
	put_view(&j, &s->views[0], s->o->rate_bit_s);
	put_view(&j, &s->views[1], s->o->later_bit_s);
	sw_json_close(&j);
	sw_json_close(&j);
	return sw_json_fini(&j);
}

/* --- the job --- */

/* Make a chain of equal layers, so that a partition matters for all of them. */
static int make_model(struct sw_model *m)
{
	char text[4096], why[256];
	int n = snprintf(text, sizeof(text),
		"model Chain\nsource none: equal layers\nlayers %u\n"
		"parameters %u\n",
		LAYERS, LAYERS * LAYER_ELEMS);

	for (uint32_t i = 0; i < LAYERS; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n,
			"layer %u l%u forward %uus backward %uus\n"
			"tensor l%u.weight %u\n",
			i, i, LAYER_US, 2 * LAYER_US, i, LAYER_ELEMS);
	return sw_model_parse(m, "chain", text, (size_t)n, why, sizeof(why));
}

int sw_tune_engine_rank(const struct sw_tune_engine *o)
{
	struct script s = {.o = o};
	struct sw_replay r = {.policy = "bytescheduler",
		.dilation = 1,
		.n_iters = ITERS_MAX,
		.each = each,
		.each_ctx = &s};
	struct sw_replay_result result = {0};
	int err = make_model(&r.model);

	if (err)
		return 1;
	err = sw_replay_rank(&r, &result);
	if (!err && s.live.client && s.step != OVER) {
		fprintf(stderr,
			"sumwire-lab tune: not tuned after %u iterations\n",
			ITERS_MAX);
		err = SW_ETIMEDOUT;
	}
	if (!err && s.live.client)
		report(&s);
	sw_model_close(&r.model);
	return err ? 1 : 0;
}

int sw_tune_engine(const struct sw_tune_engine *o, int argc, char **argv)
{
	char self[] = "/proc/self/exe", rank[] = "--rank", rate[64];
	char *command[ARGS] = {self};
	const struct sw_net_end end = {.keys = rate};
	struct sw_run run = {.who = "sumwire-lab tune",
		.n_ranks = 2,
		.grace_ns = GRACE_NS,
		.has_no_tags = true,
		.command = command,
		.net = {.n_agents = 2,
			.n_local = 1,
			.log_level = "warn",
			.quota_bytes = 256 << 20,
			.ends = {end, end}}};
	int code, n = 1;

	if (argc > ARGS - 3)
		return 1;
	for (int i = 0; i < argc; i++)
		command[n++] = argv[i];
	command[n] = rank;
	snprintf(rate, sizeof(rate), "rate = %lluMb/s\n",
		(unsigned long long)(o->rate_bit_s / 1000000));
	code = sw_run_all(&run);
	if (run.number)
		/* all processes have ended: die of the same signal */
		raise(run.number);
	return code ? 1 : 0;
}
