/* tune_study.c - sumwire-lab tune: the trials of each method (figure 14).
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>

#include "apps/cli/json.h"
#include "apps/lab/tune.h"
#include "engine/base/error.h"

static void report_costs(const struct sw_tune_options *o,
	const struct sw_tune_cost *costs, double spread_min)
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

/* Print an error, except of a draw, which has printed its own. */
static void say(int err)
{
	if (err != SW_ENOENT)
		fprintf(stderr, "sumwire-lab tune: %s\n", sw_error_text(err));
}

int sw_tune_costs(const struct sw_tune_options *o,
	struct sw_tune_cost costs[SW_N_TUNE_METHODS], double *spread_min)
{
	static const uint64_t salt = 104729;

	*spread_min = INFINITY;
	for (uint32_t i = 0; i < o->n_seeds; i++) {
		struct sw_landscape l;
		int err = sw_landscape_draw(&l, o, o->seed + i);

		for (uint32_t m = 0; m < SW_N_TUNE_METHODS && !err; m++) {
			struct sw_tune t;
			uint32_t n = 0;

			err = sw_landscape_search(
				&l, o, m, (o->seed + i) * salt, &t, &n);
			costs[m].sum += n;
			costs[m].squares += (double)n * n;
			costs[m].n_missed += n > o->n_trials;
		}
		*spread_min = fmin(*spread_min, l.worst_s / l.best_s - 1);
		sw_model_close(&l.model);
		if (err) {
			say(err);
			return err;
		}
	}
	return 0;
}

int sw_tune_study(const struct sw_tune_options *o)
{
	struct sw_tune_cost costs[SW_N_TUNE_METHODS] = {{0}};
	double spread_min;

	if (sw_tune_costs(o, costs, &spread_min))
		return 1;
	report_costs(o, costs, spread_min);
	return 0;
}
