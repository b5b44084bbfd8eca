/* tune_job.c - sumwire-lab tune --later: a running job whose link changes.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>

#include "apps/cli/json.h"
#include "apps/lab/tune.h"
#include "pmd/client/tuner/tuner.h"

enum { JOB = 200 }; /* iterations; the link changes in the middle */

static int run_job(struct sw_landscape *l, const struct sw_tune_options *o,
	struct sw_tuner *t, double *last_s)
{
	struct sw_tuner_settings settings;

	sw_tuner_settings_init(&settings, &o->space);
	settings.seed = o->seed;
	sw_tuner_init(t, &settings);
	for (uint32_t i = 0; i < JOB; i++) {
		int err;

		if (i == JOB / 2)
			l->run.link.rate_bytes_s = (double)o->later_bits_s / 8;
		err = sw_landscape_time(l, t->now, last_s);
		if (err)
			return err;
		sw_tuner_observe(t, sw_landscape_measured(l, *last_s));
		if (t->text[0])
			fprintf(stderr, "iteration %u: %s\n", i, t->text);
	}
	return 0;
}

static void report_job(const struct sw_tune_options *o,
	const struct sw_landscape *l, const struct sw_tuner *t, double last_s)
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

int sw_tune_job(struct sw_landscape *l, const struct sw_tune_options *o)
{
	struct sw_tuner t;
	double last_s = NAN;
	int err = run_job(l, o, &t, &last_s);

	if (!err)
		err = sw_landscape_walk(l, &o->space);
	if (!err)
		report_job(o, l, &t, last_s);
	return err;
}
