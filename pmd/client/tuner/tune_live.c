/* tune_live.c - tune a running job: set the tuning of all ranks.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/client/tuner/tune_live.h"

#include "pmd/client/client.h"

static const struct sw_tune_space space = {
	.min = {.partition_bytes = 8 << 10, .credit_bytes = 16 << 10},
	.max = {.partition_bytes = 4 << 20, .credit_bytes = 64 << 20}};

int sw_tune_live_set(struct sw_tune_live *l, struct sw_tune_point p)
{
	struct sw_tuning now;

	sw_get_tuning(l->client, &now);
	l->number = now.number;
	l->is_waiting = true;
	return sw_tune(l->client, NULL, p.partition_bytes, p.credit_bytes);
}

bool sw_tune_live_is_set(struct sw_tune_live *l)
{
	struct sw_tuning now;

	sw_get_tuning(l->client, &now);
	l->is_waiting &= now.number == l->number;
	return !l->is_waiting;
}

int sw_tune_live_begin(struct sw_tune_live *l, struct sw_client *client,
	uint64_t seed, double sample_s)
{
	struct sw_tuner_settings settings;

	sw_tuner_settings_init(&settings, &space);
	settings.seed = seed;
	l->client = client;
	l->sample_s = sample_s;
	sw_tuner_init(&l->tuner, &settings);
	return sw_tune_live_set(l, l->tuner.now);
}

int sw_tune_live_observe(struct sw_tune_live *l, double iteration_s)
{
	bool has_changed;

	l->n++;
	if (l->is_waiting) {
		/* This iteration began with the previous point. */
		sw_tune_live_is_set(l);
		l->sum_s = l->n_summed = 0;
		return 0;
	}
	l->sum_s += iteration_s;
	l->n_summed++;
	if (l->sum_s < l->sample_s)
		return 0;
	has_changed = sw_tuner_observe(&l->tuner, l->sum_s / l->n_summed);
	l->sum_s = l->n_summed = 0;
	if (l->tuner.text[0])
		sw_client_log(&l->client->settings, "tuner, iteration %llu: %s",
			(unsigned long long)l->n, l->tuner.text);
	return has_changed ? sw_tune_live_set(l, l->tuner.now) : 0;
}
