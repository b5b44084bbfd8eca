/* replay_table.c - sumwire-lab replay --table: models by rates by policies.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Reproduces figure 13 of ByteScheduler (SOSP 2019), as far as one machine can:
 * each model at each rate under every policy, with the optimum of BS-T1 and the
 * simulation by events.
 */
#include <stdio.h>
#include <string.h>

#include "apps/lab/replay.h"

static const char *const models[] = {"vgg16", "resnet50", "transformer"};
static const uint64_t rates_gbit_s[] = {1, 10, 25};
static const char *const policies[] = {"fifo", "p3", "bytescheduler"};

enum {
	N_MODELS = sizeof(models) / sizeof(models[0]),
	N_RATES = sizeof(rates_gbit_s) / sizeof(rates_gbit_s[0]),
	N_POLICIES = sizeof(policies) / sizeof(policies[0]),
};

struct table {
	struct sw_replay *r; /* the running case */
	struct sw_json json;
};

static void print_heads(void)
{
	printf("%-12s %5s %-14s %12s %7s %9s %7s %10s %7s %9s %8s %7s\n",
		"model", "Gb/s", "policy", "iteration", "spread", "ideal",
		"ratio", "simulated", "off by", "over fifo", "dilated",
		"others");
}

static void print_case(
	const struct sw_replay *r, const struct sw_replay_outcome *o)
{
	const struct sw_replay_result *m = &o->measured;

	printf("%-12s %5.4g %-14s %9.2f ms %6.1f%% %9.2f %7.3f %10.2f %6.1f%% "
	       "%9.3f %8.3g %7.2f\n",
		r->model.name, 1e-9 * (double)r->rate_bit_s, r->policy,
		1e3 * m->iteration_s, 100 * m->spread, 1e3 * o->ideal_s,
		m->iteration_s / o->ideal_s, 1e3 * o->simulated_s,
		100 * (o->simulated_s / m->iteration_s - 1),
		o->fifo_s / m->iteration_s, o->dilation, m->other_cores);
	fflush(stdout);
}

static int run_case(struct table *t, struct sw_replay_outcome *o)
{
	struct sw_replay *r = t->r;
	int err = sw_replay_loopback(
		r, false, r->policy, o->dilation, &o->measured);

	if (err)
		return err;
	if (!strcmp(r->policy, "fifo"))
		o->fifo_s = o->measured.iteration_s;
	err = sw_replay_predict(r, o);
	if (err)
		return err;
	if (r->is_json)
		sw_replay_write(&t->json, r, o);
	else
		print_case(r, o);
	return 0;
}

static int run_rate(struct table *t, uint64_t rate_bit_s)
{
	struct sw_replay_outcome o = {.dilation = 0};
	int err;

	t->r->rate_bit_s = rate_bit_s;
	err = sw_replay_dilate(t->r, &o);
	for (uint32_t i = 0; i < N_POLICIES && !err; i++) {
		t->r->policy = policies[i];
		err = run_case(t, &o);
	}
	return err;
}

static int run_model(struct table *t, const char *name, uint64_t rate_bit_s)
{
	struct sw_replay *r = t->r;
	char why[256];
	int err = sw_model_open(&r->model, name, why, sizeof(why));

	if (err) {
		fprintf(stderr, "sumwire-lab replay: %s\n", why);
		return err;
	}
	r->model_name = name;
	for (uint32_t i = 0; i < (rate_bit_s ? 1 : N_RATES) && !err; i++)
		err = run_rate(t,
			rate_bit_s ? rate_bit_s : rates_gbit_s[i] * 1000000000);
	sw_model_close(&r->model);
	return err;
}

int sw_replay_table(struct sw_replay *r)
{
	const char *given = r->model_name;
	uint64_t rate_bit_s = r->rate_bit_s;
	uint32_t n_models = given ? 1 : N_MODELS;
	struct table t = {.r = r};
	int err = 0;

	r->is_loopback = true;

	sw_json_init(&t.json, stdout);
	if (r->is_json) {
		sw_json_object_open(&t.json, NULL);
		sw_json_array_open(&t.json, "cases");
	} else {
		print_heads();
	}
	for (uint32_t i = 0; i < n_models && !err; i++)
		err = run_model(&t, given ? given : models[i], rate_bit_s);
	if (!r->is_json)
		return err;
	sw_json_close(&t.json);
	sw_json_close(&t.json);
	return err ? err : sw_json_fini(&t.json);
}
