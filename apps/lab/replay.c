/* replay.c - sumwire-lab replay: run a model's iterations on the real engine.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/replay.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "apps/cli/args.h"
#include "apps/cli/cmd.h"
#include "apps/cli/json.h"
#include "apps/lab/tune_text.h"
#include "conf/value.h"
#include "engine/base/error.h"
#include "engine/sched/sched.h"

/* largest piece of a device (sumwire/device.h) */
enum { PIECE_MAX = 64 << 20 };

#define RATE_BIT_S UINT64_C(10000000000) /* default */

static int run_loopback(const struct sw_replay *r, struct sw_replay_outcome *o)
{
	int err = sw_replay_dilate(r, o);

	if (!err)
		err = sw_replay_loopback(
			r, false, "fifo", o->dilation, &o->measured);
	if (err)
		return err;
	o->fifo_s = o->measured.iteration_s;
	if (!strcmp(r->policy, "fifo"))
		return 0;
	return sw_replay_loopback(
		r, false, r->policy, o->dilation, &o->measured);
}

static int report(const struct sw_replay *r, const struct sw_replay_outcome *o)
{
	const struct sw_replay_result *m = &o->measured;
	struct sw_json j;

	if (!r->is_json) {
		printf("%s, %s, %.4g Gb/s: %.2f ms an iteration; ideal %.2f "
		       "(%.3f of it), simulated %.2f",
			r->model.name, r->policy, 1e-9 * (double)r->rate_bit_s,
			1e3 * m->iteration_s, 1e3 * o->ideal_s,
			m->iteration_s / o->ideal_s, 1e3 * o->simulated_s);
		if (o->copied_s > 0)
			printf(" (with copies %.2f)", 1e3 * o->copied_s);
		if (o->fifo_s > 0)
			printf("; %.3f times as fast as fifo",
				o->fifo_s / m->iteration_s);
		printf("; spread %.1f %%", 100 * m->spread);
		if (r->is_loopback)
			printf(", others took %.2f cores", m->other_cores);
		printf("\n");
		return 0;
	}
	sw_json_init(&j, stdout);
	sw_replay_write(&j, r, o);
	return sw_json_fini(&j);
}

/* --- command line --- */

/* Find a policy by name.  Returns NULL after printing an error if it is
 * unknown. */
static const struct sw_policy *policy_of(const char *name)
{
	struct sw_nearest near;

	sw_nearest_init(&near, name);
	for (uint32_t i = 0; i < SW_N_POLICIES; i++) {
		if (!strcmp(sw_policy_at(i)->name, name))
			return sw_policy_at(i);
		sw_nearest_add(&near, sw_policy_at(i)->name);
	}
	fprintf(stderr, "sumwire-lab replay: unknown policy \"%s\"%s%s%s\n",
		name, near.best ? "; did you mean " : "",
		near.best ? near.best : "", near.best ? "?" : "");
	return NULL;
}

struct tuning {
	const char *partition, *credit;
};

static int check_device(const struct sw_replay *r)
{
	const char *fault = NULL;

	if (!r->device)
		return 0;
	if (strcspn(r->device, ":") != 4 ||
		(strncmp(r->device, "fake", 4) &&
			strncmp(r->device, "cuda", 4)))
		fault = "expected fake or cuda";
	else if (r->is_loopback && r->device[4])
		fault = "with --loopback, give fake no options: --copy sets "
			"its rate";
	else if (r->copy_bit_s && r->device[0] == 'c')
		fault = "cuda copies at full speed: leave --copy out";
	else if (r->is_table)
		fault = "--table cannot be combined with it";
	else if (r->piece_bytes % 4096 || r->piece_bytes > PIECE_MAX)
		fault = "--piece must be a multiple of 4KiB, up to 64MiB";
	if (fault)
		fprintf(stderr, "sumwire-lab replay: --device: %s\n", fault);
	return fault ? SW_EINVAL : 0;
}

static int parse_tuning(struct sw_replay *r, const struct tuning *k)
{
	const struct sw_policy *policy;
	const char *fault;
	char why[256];

	if (k->partition && sw_tune_bytes_parse(k->partition,
				    &r->partition_bytes, why, sizeof(why))) {
		fprintf(stderr, "sumwire-lab replay: --partition: %s\n", why);
		return SW_EINVAL;
	}
	if (k->credit && sw_tune_bytes_parse(k->credit, &r->credit_bytes, why,
				 sizeof(why))) {
		fprintf(stderr, "sumwire-lab replay: --credit: %s\n", why);
		return SW_EINVAL;
	}
	policy = policy_of(r->policy);
	if (!policy)
		return SW_EINVAL;
	fault = sw_sched_check(policy, r->partition_bytes, r->credit_bytes);
	if (!fault && r->is_tuned && !policy->is_tunable)
		fault = "nothing to tune: choose bytescheduler";
	if (!fault && r->is_tuned && r->is_table)
		fault = "--table cannot be combined with --tune";
	if (fault)
		fprintf(stderr, "sumwire-lab replay: policy %s: %s\n",
			r->policy, fault);
	return fault ? SW_EINVAL : check_device(r);
}

static int parse(struct sw_replay *r, int argc, char **argv)
{
	struct tuning k = {NULL, NULL};
	const struct sw_arg rows[] = {
		{"--model", SW_ARG_STRING, {.string = &r->model_name}, 0, 0,
			"network: vgg16, resnet50, transformer, bert-large, or "
			"a file [default vgg16]"},
		{"--policy", SW_ARG_STRING, {.string = &r->policy}, 0, 0,
			"scheduling policy: fifo, p3 or bytescheduler; without "
			"--loopback, that of the agents"},
		{"--rate", SW_ARG_RATE, {.u64 = &r->rate_bit_s}, 1e7, 1e12,
			"payload rate of each rank, each way; without "
			"--loopback, that of the agents [default 10Gb/s]"},
		{"--partition", SW_ARG_STRING, {.string = &k.partition}, 0, 0,
			"partition of bytescheduler, in bytes"},
		{"--credit", SW_ARG_STRING, {.string = &k.credit}, 0, 0,
			"credit of bytescheduler, in bytes"},
		{"--device", SW_ARG_STRING, {.string = &r->device}, 0, 0,
			"device that holds the tensors: cuda, or fake (host "
			"memory in place of a GPU's)"},
		{"--copy", SW_ARG_RATE, {.u64 = &r->copy_bit_s}, 0, 1e13,
			"rate of copies between device and host, each way; "
			"without --device, copies are simulated"},
		{"--piece", SW_ARG_BYTES, {.u64 = &r->piece_bytes}, 4096,
			SW_PART_MAX, "bytes per copy"},
		{"--barrier", SW_ARG_FLAG, {.flag = &r->has_barrier}, 0, 0,
			"start the forward pass only after all results"},
		{"--iters", SW_ARG_U32, {.u32 = &r->n_iters}, 1, 100000,
			"iterations to measure, after two for warm-up"},
		{"--tune", SW_ARG_FLAG, {.flag = &r->is_tuned}, 0, 0,
			"first tune partition and credit of the running job"},
		{"--loopback", SW_ARG_FLAG, {.flag = &r->is_loopback}, 0, 0,
			"start a server, agents and ranks here, and also run "
			"fifo"},
		{"--table", SW_ARG_FLAG, {.flag = &r->is_table}, 0, 0,
			"run every policy with --loopback: vgg16, resnet50 and "
			"transformer at 1, 10 and 25 Gb/s, or as given"},
		{"--ranks", SW_ARG_U32, {.u32 = &r->n_ranks}, 1, 32,
			"number of ranks with --loopback"},
		{"--agent", SW_ARG_PATH, {.string = &r->agent}, 0, 0,
			"socket of this rank's agent [default $SUMWIRE_AGENT]"},
		{"--dilate", SW_ARG_DOUBLE, {.real = &r->dilation}, 0, 1e6,
			"factor for all times; 0: as slow as the machine "
			"needs"},
		{"--probe", SW_ARG_FLAG, {.flag = &r->is_probe}, 0, 0,
			"only measure the rate that the agents carry"},
		{"--report", SW_ARG_PATH, {.string = &r->report}, 0, 0,
			"file to which rank 0 writes its measurements instead "
			"of a result"},
		{"--json", SW_ARG_FLAG, {.flag = &r->is_json}, 0, 0,
			"print one JSON object"},
	};
	const struct sw_args args = {.name = "sumwire-lab replay",
		.summary = "replay a model's iterations over real daemons",
		.rows = rows,
		.n_rows = sizeof(rows) / sizeof(rows[0])};
	int err = sw_args_parse(&args, argc, argv);

	return err ? err : parse_tuning(r, &k);
}

static int replay(struct sw_replay *r)
{
	struct sw_replay_outcome o = {.dilation = r->dilation};
	const struct sw_replay_result *m = &o.measured;
	int err;

	if (r->is_loopback) {
		err = run_loopback(r, &o);
	} else {
		if (!(r->dilation > 0))
			r->dilation = o.dilation = 1;
		err = r->is_tuned ? sw_replay_tuned(r, &o.measured)
				  : sw_replay_rank(r, &o.measured);
	}
	if (err || r->report)
		return err;
	if (r->is_probe) {
		printf("%.2f Gb/s each way; smallest tensor %.1f us\n",
			8e-9 * m->bytes_s, 1e6 * m->latency_s);
		return 0;
	}
	err = sw_replay_predict(r, &o);
	return err ? err : report(r, &o);
}

int sw_cmd_replay(int argc, char **argv)
{
	struct sw_replay r = {.policy = "bytescheduler",
		.piece_bytes = 1 << 20,
		.n_ranks = 2,
		.n_iters = 10};
	char why[256];
	int err = parse(&r, argc, argv);

	if (err)
		return err == SW_ARGS_HELP ? 0 : 2;
	if (r.is_table)
		return sw_replay_table(&r) ? 1 : 0;
	if (!r.model_name)
		r.model_name = "vgg16";
	if (!r.rate_bit_s)
		r.rate_bit_s = RATE_BIT_S;
	if (sw_model_open(&r.model, r.model_name, why, sizeof(why))) {
		fprintf(stderr, "sumwire-lab replay: %s\n", why);
		return 2;
	}
	err = replay(&r);
	sw_model_close(&r.model);
	return err ? 1 : 0;
}
