/* tune_landscape.c - a search over simulated iterations, by their tuning.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>

#include "apps/lab/tune.h"
#include "engine/base/error.h"

enum { DRAWS = 100 }; /* draws for a landscape on which tuning matters */

/* Tuning matters on a landscape if the worst point of the grid is this much
 * slower than the best, and at most one point in four is close. */
#define SPREAD_MIN 0.15
#define CLOSE_MAX  (SW_TUNE_TRIALS / 4)

static uint64_t draw(uint64_t *rng)
{
	uint64_t z = *rng += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	return z ^ z >> 27;
}

static double draw_log(uint64_t *rng, double min, double max)
{
	return min * pow(max / min, (double)(draw(rng) >> 11) / 0x1p53);
}

int sw_landscape_time(const struct sw_landscape *l, struct sw_tune_point p,
	double *iteration_s)
{
	struct sw_policy policy = {.by_priority = true,
		.part_bytes = p.partition_bytes,
		.credit_bytes = p.credit_bytes};

	return sw_plan_simulate(&l->run, &policy, iteration_s);
}

/* Add noise, as a training would measure. */
double sw_landscape_measured(struct sw_landscape *l, double true_s)
{
	double u = 2 * (double)(draw(&l->rng) >> 11) / 0x1p53 - 1;

	return true_s * (1 + l->noise / 100 * u);
}

int sw_landscape_walk(struct sw_landscape *l, const struct sw_tune_space *space)
{
	double s[SW_TUNE_TRIALS];

	l->best_s = INFINITY;
	l->worst_s = l->n_close = 0;
	for (uint32_t i = 0; i < SW_TUNE_TRIALS; i++) {
		int err = sw_landscape_time(
			l, sw_tune_grid_point(space, i), &s[i]);

		if (err)
			return err;
		l->best_s = fmin(l->best_s, s[i]);
		l->worst_s = fmax(l->worst_s, s[i]);
	}
	for (uint32_t i = 0; i < SW_TUNE_TRIALS; i++)
		l->n_close += s[i] <= SW_LANDSCAPE_CLOSE * l->best_s;
	return 0;
}

int sw_landscape_open(struct sw_landscape *l, const char *name)
{
	char why[256];
	int err = sw_model_open(&l->model, name, why, sizeof(why));

	if (err)
		fprintf(stderr, "sumwire-lab tune: %s\n", why);
	l->run.model = &l->model;
	l->run.time_scale = 1;
	return err;
}

/* Draw a network, a rate and an overhead until partition and credit matter. */
int sw_landscape_draw(
	struct sw_landscape *l, const struct sw_tune_options *o, uint64_t seed)
{
	*l = (struct sw_landscape){.rng = seed * 7919 + 1, .noise = o->noise};
	for (uint32_t i = 0; i < DRAWS; i++) {
		const char *name = sw_model_builtin(draw(&l->rng) % 4);
		int err = sw_landscape_open(l, name);

		if (err)
			return err;
		l->run.link = (struct sw_plan_link){
			.rate_bytes_s = draw_log(&l->rng, 1e9 / 8, 1e11 / 8),
			.overhead_s = draw_log(&l->rng, 50e-6, 500e-6),
			.latency_s = draw_log(&l->rng, 20e-6, 500e-6)};
		l->run.link.credit_s = l->run.link.latency_s;
		err = sw_landscape_walk(l, &o->space);
		if (err || (l->worst_s >= (1 + SPREAD_MIN) * l->best_s &&
				   l->n_close <= CLOSE_MAX))
			return err;
		sw_model_close(&l->model);
	}
	fprintf(stderr,
		"sumwire-lab tune: on none of %d landscapes do partition and "
		"credit matter within these limits (%.0f %% between best and "
		"worst): give wider limits\n",
		DRAWS, 100 * SPREAD_MIN);
	return SW_ENOENT;
}

const char *sw_tune_bytes_text(uint64_t bytes, char out[32])
{
	snprintf(out, 32, "%.3g MiB", (double)bytes / (1 << 20));
	return out;
}

static void log_trial(const struct sw_tune *t, struct sw_tune_point p, double s,
	double best_before_s)
{
	struct sw_tune_point best;
	double best_s;
	char a[32], b[32], c[32], d[32];

	best = sw_tune_best(t, &best_s);
	fprintf(stderr, "%s, trial %u: partition %s, credit %s",
		sw_tune_method_name(t->method), t->n,
		sw_tune_bytes_text(p.partition_bytes, a),
		sw_tune_bytes_text(p.credit_bytes, b));
	if (t->expected > 0)
		fprintf(stderr, " (%.2f %% better expected)",
			100 * t->expected);
	fprintf(stderr, ": %.3f ms, %s; best %s, %s, %.3f ms\n", 1e3 * s,
		s < best_before_s ? "kept" : "not kept",
		sw_tune_bytes_text(best.partition_bytes, c),
		sw_tune_bytes_text(best.credit_bytes, d), 1e3 * best_s);
}

/* Search until a point is close to the grid's best.  Sets *n_trials to
 * o->n_trials + 1 if none is. */
int sw_landscape_search(struct sw_landscape *l, const struct sw_tune_options *o,
	enum sw_tune_method method, uint64_t seed, struct sw_tune *t,
	uint32_t *n_trials)
{
	*n_trials = o->n_trials + 1;
	sw_tune_init(t, method, &o->space, seed);
	for (uint32_t i = 1; i <= o->n_trials; i++) {
		struct sw_tune_point p = sw_tune_ask(t);
		double before_s, true_s, s;
		int err = sw_landscape_time(l, p, &true_s);

		if (err)
			return err;
		sw_tune_best(t, &before_s);
		s = sw_landscape_measured(l, true_s);
		err = sw_tune_tell(t, s);
		if (err)
			return err;
		if (o->is_traced)
			log_trial(t, p, s, before_s);
		if (true_s <= SW_LANDSCAPE_CLOSE * l->best_s && *n_trials > i) {
			*n_trials = i;
			if (!o->model_name)
				return 0; /* the caller only wants the cost */
		}
	}
	return 0;
}
