/* tune.c - sumwire tune: search for partition and credit, and what it costs.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What is tuned here is the simulation of the layer DAG by events, with an
 * overhead for each partition (paper 000, section 4.1).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/cli/args.h"
#include "apps/cli/cmd.h"
#include "apps/cli/json.h"
#include "apps/lab/plan_sim.h"
#include "apps/lab/tune_engine.h"
#include "apps/lab/tune_knob.h"
#include "engine/base/error.h"
#include "pmd/client/tuner/tune_search.h"
#include "pmd/client/tuner/tuner.h"

enum {
	TRIALS = SW_TUNE_GRID * SW_TUNE_GRID,
	SEEDS = 1000,
	JOB = 200,
	DRAWS = 100, /* for a landscape on which it matters */
};

/* Found means: so close to the best point of the grid. */
#define CLOSE 1.03
/* A landscape on which it matters: the worst point of the grid is so much
 * slower than the best, and at most one in four is close. */
#define SPREAD_MIN 0.15
#define CLOSE_MAX  (TRIALS / 4)

struct options {
	struct sw_lapack lapack;
	uint32_t n_seeds, seed, n_trials;
	uint64_t rate_bits_s, later_bits_s, overhead_ns, latency_ns;
	double noise; /* percent */
	const char *model_name;
	const char *partition_min, *partition_max, *credit_min, *credit_max;
	bool is_json, is_traced, is_engine, is_worker;
	struct sw_tune_space space;
};

/* What is searched, and what its grid holds. */
struct landscape {
	struct sw_model model;
	struct sw_plan_run run;
	double best_s, worst_s; /* of the grid */
	uint32_t n_close;
	uint64_t rng;
	double noise;
};

struct cost {
	double sum, squares;
	uint32_t n_missed; /* runs that did not come close */
};

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

static int true_time(
	const struct landscape *l, struct sw_tune_point p, double *iteration_s)
{
	struct sw_policy policy = {.by_priority = true,
		.part_bytes = p.partition_bytes,
		.credit_bytes = p.credit_bytes};

	return sw_plan_simulate(&l->run, &policy, iteration_s);
}

/* As a training would see it. */
static double measured(struct landscape *l, double true_s)
{
	double u = 2 * (double)(draw(&l->rng) >> 11) / 0x1p53 - 1;

	return true_s * (1 + l->noise / 100 * u);
}

static int walk_grid(struct landscape *l, const struct sw_tune_space *space)
{
	double s[TRIALS];

	l->best_s = INFINITY;
	l->worst_s = l->n_close = 0;
	for (uint32_t i = 0; i < TRIALS; i++) {
		int err = true_time(l, sw_tune_grid_point(space, i), &s[i]);

		if (err)
			return err;
		l->best_s = fmin(l->best_s, s[i]);
		l->worst_s = fmax(l->worst_s, s[i]);
	}
	for (uint32_t i = 0; i < TRIALS; i++)
		l->n_close += s[i] <= CLOSE * l->best_s;
	return 0;
}

static int open_model(struct landscape *l, const char *name)
{
	char why[256];
	int err = sw_model_open(&l->model, name, why, sizeof(why));

	if (err)
		fprintf(stderr, "sumwire tune: %s\n", why);
	l->run.model = &l->model;
	l->run.time_scale = 1;
	return err;
}

/* A network, a rate and an overhead by chance, until they matter. */
static int draw_landscape(
	struct landscape *l, const struct options *o, uint64_t seed)
{
	*l = (struct landscape){.rng = seed * 7919 + 1, .noise = o->noise};
	for (uint32_t i = 0; i < DRAWS; i++) {
		const char *name = sw_model_builtin(draw(&l->rng) % 4);
		int err = open_model(l, name);

		if (err)
			return err;
		l->run.link = (struct sw_plan_link){
			.rate_bytes_s = draw_log(&l->rng, 1e9 / 8, 1e11 / 8),
			.overhead_s = draw_log(&l->rng, 50e-6, 500e-6),
			.latency_s = draw_log(&l->rng, 20e-6, 500e-6)};
		l->run.link.credit_s = l->run.link.latency_s;
		err = walk_grid(l, &o->space);
		if (err || (l->worst_s >= (1 + SPREAD_MIN) * l->best_s &&
				   l->n_close <= CLOSE_MAX))
			return err;
		sw_model_close(&l->model);
	}
	return SW_EINVAL;
}

static void say_no_landscape(int err)
{
	if (err == SW_EINVAL)
		fprintf(stderr,
			"sumwire tune: on none of %d landscapes do partition "
			"and credit matter within these limits (%.0f %% "
			"between best and worst): give wider limits\n",
			DRAWS, 100 * SPREAD_MIN);
	else
		fprintf(stderr, "sumwire tune: %s\n", sw_error_text(err));
}

/* --- one search --- */

static const char *bytes_text(uint64_t bytes, char out[32])
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
		bytes_text(p.partition_bytes, a),
		bytes_text(p.credit_bytes, b));
	if (t->expected > 0)
		fprintf(stderr, " (%.2f %% better expected)",
			100 * t->expected);
	fprintf(stderr, ": %.3f ms, %s; best %s, %s, %.3f ms\n", 1e3 * s,
		s < best_before_s ? "kept" : "not kept",
		bytes_text(best.partition_bytes, c),
		bytes_text(best.credit_bytes, d), 1e3 * best_s);
}

/* Trials until a point is close to the grid's best; o->n_trials + 1: none. */
static int search(struct landscape *l, const struct options *o,
	enum sw_tune_method method, uint64_t seed, struct sw_tune *t,
	uint32_t *n_trials)
{
	*n_trials = o->n_trials + 1;
	sw_tune_init(t, method, &o->space, seed, &o->lapack);
	for (uint32_t i = 1; i <= o->n_trials; i++) {
		struct sw_tune_point p = sw_tune_ask(t);
		double before_s, true_s, s;
		int err = true_time(l, p, &true_s);

		if (err)
			return err;
		sw_tune_best(t, &before_s);
		s = measured(l, true_s);
		err = sw_tune_tell(t, s);
		if (err)
			return err;
		if (o->is_traced)
			log_trial(t, p, s, before_s);
		if (true_s <= CLOSE * l->best_s && *n_trials > i) {
			*n_trials = i;
			if (!o->model_name)
				return 0; /* only the cost is asked for */
		}
	}
	return 0;
}

/* --- figure 14: what each method costs --- */

static void report_costs(
	const struct options *o, const struct cost *costs, double spread_min)
{
	struct sw_json j;

	sw_json_init(&j, stdout);
	if (o->is_json) {
		sw_json_object_open(&j, NULL);
		sw_json_u64(&j, "seeds", o->n_seeds);
		sw_json_double(&j, "smallest_spread", spread_min);
		sw_json_array_open(&j, "methods");
	} else {
		printf("%u landscapes, spread between best and worst at least "
		       "%.0f %%; trials until within 3 %% of the grid's best\n"
		       "%-8s %8s %8s %8s\n",
			o->n_seeds, 100 * spread_min, "method", "mean", "sd",
			"missed");
	}
	for (uint32_t m = 0; m < SW_N_TUNE_METHODS; m++) {
		double n = o->n_seeds, mean = costs[m].sum / n;
		double sd = sqrt(fmax(0, costs[m].squares / n - mean * mean));

		if (!o->is_json) {
			printf("%-8s %8.1f %8.1f %8u\n", sw_tune_method_name(m),
				mean, sd, costs[m].n_missed);
			continue;
		}
		sw_json_object_open(&j, NULL);
		sw_json_text(&j, "method", sw_tune_method_name(m));
		sw_json_double(&j, "mean_trials", mean);
		sw_json_double(&j, "sd_trials", sd);
		sw_json_u64(&j, "missed", costs[m].n_missed);
		sw_json_close(&j);
	}
	if (o->is_json) {
		sw_json_close(&j);
		sw_json_close(&j);
		sw_json_fini(&j);
	}
}

static int study(const struct options *o)
{
	struct cost costs[SW_N_TUNE_METHODS] = {{0}};
	double spread_min = INFINITY;
	static const uint64_t salt = 104729;

	for (uint32_t i = 0; i < o->n_seeds; i++) {
		struct landscape l;
		int err = draw_landscape(&l, o, o->seed + i);

		for (uint32_t m = 0; m < SW_N_TUNE_METHODS && !err; m++) {
			struct sw_tune t;
			uint32_t n = 0;

			err = search(&l, o, m, (o->seed + i) * salt, &t, &n);
			costs[m].sum += n;
			costs[m].squares += (double)n * n;
			costs[m].n_missed += n > o->n_trials;
		}
		spread_min = fmin(spread_min, l.worst_s / l.best_s - 1);
		sw_model_close(&l.model);
		if (err) {
			say_no_landscape(err);
			return 1;
		}
	}
	report_costs(o, costs, spread_min);
	return 0;
}

/* --- one network, one link --- */

static void report_best(
	const struct options *o, const struct landscape *l, struct sw_tune *t)
{
	double s, true_s = NAN;
	struct sw_tune_point best = sw_tune_best(t, &s);
	char a[32], b[32];
	struct sw_json j;

	true_time(l, best, &true_s);
	if (!o->is_json) {
		printf("best of %u trials: partition %s, credit %s: %.3f ms; "
		       "best of the grid %.3f, worst %.3f\n",
			t->n, bytes_text(best.partition_bytes, a),
			bytes_text(best.credit_bytes, b), 1e3 * true_s,
			1e3 * l->best_s, 1e3 * l->worst_s);
		return;
	}
	sw_json_init(&j, stdout);
	sw_json_object_open(&j, NULL);
	sw_json_text(&j, "model", l->model.name);
	sw_json_u64(&j, "partition_bytes", best.partition_bytes);
	sw_json_u64(&j, "credit_bytes", best.credit_bytes);
	sw_json_double(&j, "iteration_ms", 1e3 * true_s);
	sw_json_double(&j, "grid_best_ms", 1e3 * l->best_s);
	sw_json_double(&j, "grid_worst_ms", 1e3 * l->worst_s);
	sw_json_u64(&j, "trials", t->n);
	sw_json_close(&j);
	sw_json_fini(&j);
}

/* --- inside a running job, whose link changes in the middle --- */

static int run_job(struct landscape *l, const struct options *o,
	struct sw_tuner *t, double *last_s)
{
	struct sw_tuner_settings settings;

	sw_tuner_settings_init(&settings, &o->space);
	settings.seed = o->seed;
	settings.lapack = &o->lapack;
	sw_tuner_init(t, &settings);
	for (uint32_t i = 0; i < JOB; i++) {
		int err;

		if (i == JOB / 2)
			l->run.link.rate_bytes_s = (double)o->later_bits_s / 8;
		err = true_time(l, t->now, last_s);
		if (err)
			return err;
		sw_tuner_told(t, measured(l, *last_s));
		if (t->text[0])
			fprintf(stderr, "iteration %u: %s\n", i, t->text);
	}
	return 0;
}

static void report_job(const struct options *o, const struct landscape *l,
	const struct sw_tuner *t, double last_s)
{
	struct sw_json j;

	if (!o->is_json) {
		printf("%u iterations, %u searches; the last took %.3f ms; "
		       "best of the grid %.3f, worst %.3f\n",
			JOB, t->n_searches, 1e3 * last_s, 1e3 * l->best_s,
			1e3 * l->worst_s);
		return;
	}
	sw_json_init(&j, stdout);
	sw_json_object_open(&j, NULL);
	sw_json_text(&j, "model", l->model.name);
	sw_json_u64(&j, "searches", t->n_searches);
	sw_json_double(&j, "iteration_ms", 1e3 * last_s);
	sw_json_double(&j, "grid_best_ms", 1e3 * l->best_s);
	sw_json_double(&j, "grid_worst_ms", 1e3 * l->worst_s);
	sw_json_close(&j);
	sw_json_fini(&j);
}

static int tune_job(struct landscape *l, const struct options *o)
{
	struct sw_tuner t;
	double last_s = NAN;
	int err = run_job(l, o, &t, &last_s);

	if (!err)
		err = walk_grid(l, &o->space);
	if (!err)
		report_job(o, l, &t, last_s);
	return err;
}

static int tune_one(struct options *o)
{
	struct landscape l = {.rng = o->seed, .noise = o->noise};
	struct sw_tune t;
	uint32_t n;
	int err = open_model(&l, o->model_name);

	if (err)
		return 2;
	l.run.link = (struct sw_plan_link){
		.rate_bytes_s = (double)o->rate_bits_s / 8,
		.overhead_s = 1e-9 * (double)o->overhead_ns,
		.latency_s = 1e-9 * (double)o->latency_ns,
		.credit_s = 1e-9 * (double)o->latency_ns};
	if (o->later_bits_s) {
		err = tune_job(&l, o);
	} else {
		err = walk_grid(&l, &o->space);
		if (!err)
			err = search(&l, o, SW_TUNE_BO, o->seed, &t, &n);
		if (!err)
			report_best(o, &l, &t);
	}
	if (err)
		fprintf(stderr, "sumwire tune: %s\n", sw_error_text(err));
	sw_model_close(&l.model);
	return err ? 1 : 0;
}

/* --- command line --- */

static int knob(const char *name, const char *text, uint64_t *out)
{
	char why[256];

	if (!sw_tune_knob_parse(text, out, why, sizeof(why)))
		return 0;
	fprintf(stderr, "sumwire tune: %s: %s\n", name, why);
	return SW_EINVAL;
}

static int parse_space(struct options *o)
{
	struct sw_tune_space *s = &o->space;

	if (knob("--partition-min", o->partition_min,
		    &s->min.partition_bytes) ||
		knob("--partition-max", o->partition_max,
			&s->max.partition_bytes) ||
		knob("--credit-min", o->credit_min, &s->min.credit_bytes) ||
		knob("--credit-max", o->credit_max, &s->max.credit_bytes))
		return SW_EINVAL;
	if (s->min.partition_bytes < s->max.partition_bytes &&
		s->min.credit_bytes < s->max.credit_bytes)
		return 0;
	fprintf(stderr, "sumwire tune: a minimum must be below its maximum\n");
	return SW_EINVAL;
}

static int parse(struct options *o, int argc, char **argv)
{
	const struct sw_arg rows[] = {
		{"--model", SW_ARG_STRING, {.string = &o->model_name}, 0, 0,
			"tune this network; without it: what each method costs "
			"on random landscapes"},
		{"--rate", SW_ARG_RATE, {.u64 = &o->rate_bits_s}, 1e6, 1e13,
			"of the link, with --model"},
		{"--later", SW_ARG_RATE, {.u64 = &o->later_bits_s}, 0, 1e13,
			"of the link from the middle of a job on, which is "
			"tuned while it runs, with --model"},
		{"--overhead", SW_ARG_TIME, {.u64 = &o->overhead_ns}, 0, 1e9,
			"of each partition, with --model"},
		{"--latency", SW_ARG_TIME, {.u64 = &o->latency_ns}, 0, 1e9,
			"from a partition's last byte to its result, with "
			"--model"},
		{"--engine", SW_ARG_FLAG, {.flag = &o->is_engine}, 0, 0,
			"tune the real engine: a job of two workers on this "
			"machine, at --rate, then at --later"},
		{"--worker", SW_ARG_FLAG, {.flag = &o->is_worker}, 0, 0,
			"run as one of the workers of --engine"},
		{"--partition-min", SW_ARG_STRING,
			{.string = &o->partition_min}, 0, 0, "bytes"},
		{"--partition-max", SW_ARG_STRING,
			{.string = &o->partition_max}, 0, 0, "bytes"},
		{"--credit-min", SW_ARG_STRING, {.string = &o->credit_min}, 0,
			0, "bytes"},
		{"--credit-max", SW_ARG_STRING, {.string = &o->credit_max}, 0,
			0, "bytes"},
		{"--trials", SW_ARG_U32, {.u32 = &o->n_trials}, 1, TRIALS,
			"maximum number of trials in a search"},
		{"--seeds", SW_ARG_U32, {.u32 = &o->n_seeds}, 1, SEEDS,
			"landscapes"},
		{"--seed", SW_ARG_U32, {.u32 = &o->seed}, 0, 0, "the first"},
		{"--noise", SW_ARG_DOUBLE, {.real = &o->noise}, 0, 50,
			"of a measured time, in percent"},
		{"--trace", SW_ARG_FLAG, {.flag = &o->is_traced}, 0, 0,
			"every decision on stderr; always with --model"},
		{"--json", SW_ARG_FLAG, {.flag = &o->is_json}, 0, 0,
			"one JSON object"},
	};
	const struct sw_args args = {.name = "tune",
		.summary = "search for partition and credit, on the simulation "
			   "of iterations",
		.rows = rows,
		.n_rows = sizeof(rows) / sizeof(rows[0])};
	int err = sw_args_parse(&args, argc, argv);

	return err ? err : parse_space(o);
}

static int tune_engine(const struct options *o, int argc, char **argv)
{
	struct sw_tune_engine e = {.rate_bit_s = o->rate_bits_s,
		.later_bit_s = o->later_bits_s,
		.seed = o->seed,
		.is_json = o->is_json};

	if (!e.later_bit_s)
		e.later_bit_s = e.rate_bit_s / 4;
	return o->is_worker ? sw_tune_engine_worker(&e)
			    : sw_tune_engine(&e, argc, argv);
}

int sw_cmd_tune(int argc, char **argv)
{
	struct options o = {.n_seeds = 20,
		.n_trials = TRIALS,
		.rate_bits_s = 10ULL * 1000 * 1000 * 1000,
		.overhead_ns = 300000,
		.latency_ns = 100000,
		.noise = 1,
		.partition_min = "32KiB",
		.partition_max = "128MiB",
		.credit_min = "32KiB",
		.credit_max = "512MiB"};
	int err = parse(&o, argc, argv);
	const char *why;

	if (err)
		return err == SW_ARGS_HELP ? 0 : 2;
	if (o.is_engine)
		return tune_engine(&o, argc, argv);
	why = sw_lapack_open(&o.lapack);
	if (why) {
		fprintf(stderr,
			"sumwire tune: the search needs LAPACK, which "
			"cannot be loaded: %s (install liblapacke)\n",
			why);
		return 1;
	}
	if (!o.model_name)
		return study(&o);
	o.is_traced = true;
	o.n_trials = o.n_trials < TRIALS ? o.n_trials : 12;
	return tune_one(&o);
}
