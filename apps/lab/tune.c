/* tune.c - sumwire-lab tune: search for partition and credit.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/tune.h"

#include <stdio.h>

#include "apps/cli/args.h"
#include "apps/cli/cmd.h"
#include "apps/lab/tune_engine.h"
#include "apps/lab/tune_text.h"
#include "engine/base/error.h"

enum { SEEDS = 1000 };

static int tuning(const char *name, const char *text, uint64_t *out)
{
	char why[256];

	if (!sw_tune_bytes_parse(text, out, why, sizeof(why)))
		return 0;
	fprintf(stderr, "sumwire-lab tune: %s: %s\n", name, why);
	return SW_EINVAL;
}

static int check(struct sw_tune_options *o)
{
	struct sw_tune_space *s = &o->space;

	if (tuning("--partition-min", o->partition_min,
		    &s->min.partition_bytes) ||
		tuning("--partition-max", o->partition_max,
			&s->max.partition_bytes) ||
		tuning("--credit-min", o->credit_min, &s->min.credit_bytes) ||
		tuning("--credit-max", o->credit_max, &s->max.credit_bytes))
		return SW_EINVAL;
	if (s->min.partition_bytes >= s->max.partition_bytes ||
		s->min.credit_bytes >= s->max.credit_bytes) {
		fprintf(stderr, "sumwire-lab tune: a minimum must be below its "
				"maximum\n");
		return SW_EINVAL;
	}
	if (o->model_name && o->is_engine) {
		fprintf(stderr,
			"sumwire-lab tune: give either --model or --engine\n");
		return SW_EINVAL;
	}
	return 0;
}

static int parse(struct sw_tune_options *o, int argc, char **argv)
{
	const struct sw_arg rows[] = {
		{"--model", SW_ARG_STRING, {.string = &o->model_name}, 0, 0,
			"network to tune; without it, compare the costs of "
			"search methods on random landscapes"},
		{"--rate", SW_ARG_RATE, {.u64 = &o->rate_bits_s}, 1e6, 1e13,
			"rate of the link, with --model or --engine"},
		{"--later", SW_ARG_RATE, {.u64 = &o->later_bits_s}, 0, 1e13,
			"rate of the link in the second half of the job, which "
			"is tuned while it runs; 0: the same (--model) or a "
			"quarter (--engine)"},
		{"--overhead", SW_ARG_TIME, {.u64 = &o->overhead_ns}, 0, 1e9,
			"time that the link idles before each partition, with "
			"--model"},
		{"--latency", SW_ARG_TIME, {.u64 = &o->latency_ns}, 0, 1e9,
			"time from a partition's last byte to its result, "
			"with --model"},
		{"--copy", SW_ARG_RATE, {.u64 = &o->copy_bits_s}, 0, 1e13,
			"rate of copies between device and host, each way, "
			"with --model; 0: no copies"},
		{"--piece", SW_ARG_BYTES, {.u64 = &o->piece_bytes}, 4096,
			SW_PART_MAX, "bytes per copy"},
		{"--engine", SW_ARG_FLAG, {.flag = &o->is_engine}, 0, 0,
			"tune the real engine: a job of two ranks on this "
			"machine, at --rate, then at --later"},
		{"--rank", SW_ARG_FLAG, {.flag = &o->is_rank}, 0, 0,
			"run as one of the ranks of --engine"},
		{"--partition-min", SW_ARG_STRING,
			{.string = &o->partition_min}, 0, 0,
			"smallest partition, in bytes"},
		{"--partition-max", SW_ARG_STRING,
			{.string = &o->partition_max}, 0, 0,
			"largest partition, in bytes"},
		{"--credit-min", SW_ARG_STRING, {.string = &o->credit_min}, 0,
			0, "smallest credit, in bytes"},
		{"--credit-max", SW_ARG_STRING, {.string = &o->credit_max}, 0,
			0, "largest credit, in bytes"},
		{"--trials", SW_ARG_U32, {.u32 = &o->n_trials}, 1,
			SW_TUNE_TRIALS, "maximum number of trials in a search"},
		{"--seeds", SW_ARG_U32, {.u32 = &o->n_seeds}, 1, SEEDS,
			"number of landscapes"},
		{"--seed", SW_ARG_U32, {.u32 = &o->seed}, 0, 0,
			"number of the first landscape"},
		{"--noise", SW_ARG_DOUBLE, {.real = &o->noise}, 0, 50,
			"noise of measured times in percent"},
		{"--trace", SW_ARG_FLAG, {.flag = &o->is_traced}, 0, 0,
			"write every decision to stderr; always on with "
			"--model"},
		{"--json", SW_ARG_FLAG, {.flag = &o->is_json}, 0, 0,
			"print one JSON object"},
	};
	const struct sw_args args = {.name = "sumwire-lab tune",
		.summary = "search for the best partition and credit over "
			   "simulated iterations",
		.rows = rows,
		.n_rows = sizeof(rows) / sizeof(rows[0])};
	int err = sw_args_parse(&args, argc, argv);

	return err ? err : check(o);
}

static int tune_engine(const struct sw_tune_options *o, int argc, char **argv)
{
	struct sw_tune_engine e = {.rate_bit_s = o->rate_bits_s,
		.later_bit_s = o->later_bits_s,
		.seed = o->seed,
		.is_json = o->is_json};

	if (!e.later_bit_s)
		e.later_bit_s = e.rate_bit_s / 4;
	return o->is_rank ? sw_tune_engine_rank(&e)
			  : sw_tune_engine(&e, argc, argv);
}

int sw_cmd_tune(int argc, char **argv)
{
	struct sw_tune_options o = {.n_seeds = 20,
		.n_trials = SW_TUNE_TRIALS,
		.rate_bits_s = 10ULL * 1000 * 1000 * 1000,
		.overhead_ns = 300000,
		.latency_ns = 100000,
		.piece_bytes = 1 << 20,
		.noise = 1,
		.partition_min = "32KiB",
		.partition_max = "128MiB",
		.credit_min = "32KiB",
		.credit_max = "512MiB"};
	int err = parse(&o, argc, argv);

	if (err)
		return err == SW_ARGS_HELP ? 0 : 2;
	if (o.is_engine)
		return tune_engine(&o, argc, argv);
	if (!o.model_name)
		return sw_tune_study(&o);
	o.is_traced = true;
	o.n_trials = o.n_trials < SW_TUNE_TRIALS ? o.n_trials : 12;
	return sw_tune_one(&o);
}
