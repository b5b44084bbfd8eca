/* trials.c - the tuner's number of trials, for ByteScheduler's figure 14.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/figures/figure.h"
#include "apps/lab/tune.h"
#include "pmd/client/tuner/tune_search.h"

const char *const sw_figure_trial_texts[SW_FIGURE_TRIALS][2] = {
	{"mean trials of Bayesian optimization", "1 to 10"},
	{"fewer than SGD with momentum", "28 to 51 %"},
};

int sw_figure_trials(struct sw_figure_trials *out)
{
	const struct sw_tune_options o = {.n_seeds = out->n_landscapes,
		.n_trials = SW_TUNE_TRIALS,
		.noise = 1,
		.space = {.min = {.partition_bytes = 32 << 10,
				  .credit_bytes = 32 << 10},
			.max = {.partition_bytes = 128 << 20,
				.credit_bytes = 512 << 20}}};
	struct sw_tune_cost costs[SW_N_TUNE_METHODS] = {{0}};
	double spread_min, trials, fewer;
	int err = sw_tune_costs(&o, costs, &spread_min);

	if (err)
		return err;
	trials = costs[SW_TUNE_BO].sum / out->n_landscapes;
	fewer = 100 * (1 - costs[SW_TUNE_BO].sum / costs[SW_TUNE_SGD].sum);
	out->claims[0] = (struct sw_figure_claim){trials, trials, ""};
	out->claims[1] = (struct sw_figure_claim){fewer, fewer, "%"};
	return 0;
}
