/* tune_one.c - sumwire-lab tune --model: one network over one link.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>

#include "apps/cli/json.h"
#include "apps/lab/tune.h"
#include "engine/base/error.h"

static void report_best(const struct sw_tune_options *o,
	const struct sw_landscape *l, struct sw_tune *t)
{
	double s, true_s = NAN;
	struct sw_tune_point best = sw_tune_best(t, &s);
	char a[32], b[32];
	struct sw_json j;

	sw_landscape_time(l, best, &true_s);
	if (!o->is_json) {
		printf("best of %u trials: partition %s, credit %s: %.3f ms; "
		       "best of the grid %.3f, worst %.3f\n",
			t->n, sw_tune_bytes_text(best.partition_bytes, a),
			sw_tune_bytes_text(best.credit_bytes, b), 1e3 * true_s,
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

int sw_tune_one(struct sw_tune_options *o)
{
	struct sw_landscape l = {.rng = o->seed, .noise = o->noise};
	struct sw_tune t;
	uint32_t n;
	int err = sw_landscape_open(&l, o->model_name);

	if (err)
		return 2;
	l.run.link = (struct sw_plan_link){
		.rate_bytes_s = (double)o->rate_bits_s / 8,
		.overhead_s = 1e-9 * (double)o->overhead_ns,
		.latency_s = 1e-9 * (double)o->latency_ns,
		.credit_s = 1e-9 * (double)o->latency_ns,
		.copy_bytes_s = (double)o->copy_bits_s / 8,
		.piece_bytes = (double)o->piece_bytes};
	if (o->later_bits_s) {
		err = sw_tune_job(&l, o);
	} else {
		err = sw_landscape_walk(&l, &o->space);
		if (!err)
			err = sw_landscape_search(
				&l, o, SW_TUNE_BO, o->seed, &t, &n);
		if (!err)
			report_best(o, &l, &t);
	}
	if (err)
		fprintf(stderr, "sumwire-lab tune: %s\n", sw_error_text(err));
	sw_model_close(&l.model);
	return err ? 1 : 0;
}
