/* plan.c - sumwire-lab plan: the limits of n GPU and k CPU machines.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "apps/cli/args.h"
#include "apps/cli/cmd.h"
#include "apps/cli/json.h"
#include "apps/lab/model.h"
#include "apps/lab/plan_place.h"
#include "apps/lab/plan_sim.h"
#include "apps/lab/svg.h"
#include "apps/topo/plan_share.h"
#include "engine/base/error.h"

enum { MACHINES = 1024, PAYLOAD = 8192 };

struct plan {
	uint32_t n, k;
	uint64_t rate_bits_s, bytes; /* bytes 0: the model's */
	uint64_t overhead_ns, latency_ns, partition_bytes, credit_bytes;
	uint64_t copy_bits_s, piece_bytes;
	const char *model_name, *svg;
	bool has_barrier, is_json;
	/* results */
	struct sw_model model;
	struct sw_plan_share share;
	struct sw_plan_run run;
	struct sw_policy policies[SW_N_POLICIES];
	double iteration_s[SW_N_POLICIES], fifo_s, ideal_s, bound_s;
};

static double m_bytes(const struct plan *p)
{
	return (double)(p->bytes ? p->bytes : p->model.bytes);
}

/* Return the rate that a rank sees: the rate at which M takes as long as with
 * the optimal shares. */
static double effective_rate(const struct plan *p)
{
	return p->share.optimal_s > 0 ? m_bytes(p) / p->share.optimal_s
				      : (double)p->rate_bits_s / 8;
}

/* Return the time to copy M bytes one way; NAN: no copies. */
static double copy_s(const struct plan *p)
{
	return p->copy_bits_s ? 8 * m_bytes(p) / (double)p->copy_bits_s : NAN;
}

static int compute(struct plan *p)
{
	int err;

	p->share = sw_plan_share(
		p->n, p->k, m_bytes(p), (double)p->rate_bits_s / 8);
	p->run = (struct sw_plan_run){.model = &p->model,
		.link = {.rate_bytes_s = effective_rate(p),
			.overhead_s = 1e-9 * (double)p->overhead_ns,
			.latency_s = 1e-9 * (double)p->latency_ns,
			.credit_s = 1e-9 * (double)p->latency_ns,
			.copy_bytes_s = (double)p->copy_bits_s / 8,
			.piece_bytes = (double)p->piece_bytes,
			.is_sorted = true},
		.has_barrier = p->has_barrier,
		.time_scale = 1};
	err = sw_plan_ideal(&p->run, &p->ideal_s);
	for (uint32_t i = 0; i < SW_N_POLICIES && !err; i++) {
		struct sw_policy *policy = &p->policies[i];

		*policy = *sw_policy_at(i);
		if (policy->is_tunable && p->partition_bytes)
			policy->part_bytes = p->partition_bytes;
		if (policy->is_tunable && p->credit_bytes)
			policy->credit_bytes = p->credit_bytes;
		err = sw_plan_simulate(&p->run, policy, &p->iteration_s[i]);
	}
	p->fifo_s = p->iteration_s[SW_POLICY_FIFO];
	p->bound_s = sw_plan_bound(
		&p->run, p->policies[SW_POLICY_BYTESCHEDULER].part_bytes);
	return err;
}

/* --- balance of the placement --- */

/* Return by how much the most loaded server of a placement exceeds its share,
 * as a fraction.  NAN: more servers than a job may have. */
static double unbalance(const struct plan *p, enum sw_plan_place place)
{
	struct sw_place_job job = {.n_members = (uint16_t)p->n,
		.n_servers = (uint16_t)(p->n + p->k),
		.n_colocated = (uint16_t)p->n};
	uint64_t got[SW_PLACE_SERVERS] = {0}, at = 0;
	uint32_t weight[SW_PLACE_SERVERS];
	struct sw_place_map map;
	double sum, worst = 0;

	if (!sw_place_check(&job))
		return NAN;
	sw_place_map_init(&map, &job);
	for (uint32_t t = 0; t < p->model.n_tensors; t++) {
		uint64_t bytes = 4 * p->model.tensors[t].n_elems;
		uint64_t first = at / PAYLOAD;

		for (uint64_t c = 0; c * PAYLOAD < bytes; c++) {
			uint64_t stripe = (first + c) / SW_STRIPE_CHUNKS;

			got[sw_plan_owner(
				place, &job, &map, (uint32_t)stripe)] +=
				bytes - c * PAYLOAD < PAYLOAD
					? bytes - c * PAYLOAD
					: PAYLOAD;
		}
		at += bytes;
	}
	sum = sw_place_weights(&job, weight);
	for (uint32_t s = 0; s < map.n_servers; s++) {
		double part = (double)got[s] / ((double)at * weight[s] / sum);

		if (part > worst) /* fmax() crashes GCC 12 for AArch64 */
			worst = part;
	}
	return worst - 1;
}

/* --- output --- */

static void write_policies(struct sw_json *j, const struct plan *p)
{
	sw_json_array_open(j, "policies");
	for (uint32_t i = 0; i < SW_N_POLICIES; i++) {
		sw_json_object_open(j, NULL);
		sw_json_text(j, "policy", p->policies[i].name);
		sw_json_double(j, "iteration_s", p->iteration_s[i]);
		sw_json_double(
			j, "speedup_over_fifo", p->fifo_s / p->iteration_s[i]);
		sw_json_double(j, "over_ideal", p->iteration_s[i] / p->ideal_s);
		sw_json_close(j);
	}
	sw_json_close(j);
	sw_json_array_open(j, "placements");
	for (uint32_t i = 0; i < SW_N_PLAN_PLACES; i++) {
		sw_json_object_open(j, NULL);
		sw_json_text(j, "placement", sw_plan_place_name(i));
		sw_json_double(j, "largest_over_share", unbalance(p, i));
		sw_json_close(j);
	}
	sw_json_close(j);
}

static int write_json(const struct plan *p)
{
	struct sw_json j;

	sw_json_init(&j, stdout);
	sw_json_object_open(&j, NULL);
	sw_json_u64(&j, "gpus", p->n);
	sw_json_u64(&j, "cpus", p->k);
	sw_json_text(&j, "model", p->model.name);
	sw_json_double(&j, "model_bytes", m_bytes(p));
	sw_json_double(&j, "rate_gbit_s", 1e-9 * (double)p->rate_bits_s);
	sw_json_double(&j, "ss_cpu_share", p->share.cpu);
	sw_json_double(&j, "ss_gpu_share", p->share.gpu);
	sw_json_double(&j, "optimal_time_s", p->share.optimal_s);
	sw_json_double(&j, "copy_time_s", copy_s(p));
	sw_json_double(&j, "gain_over_allreduce", p->share.over_allreduce);
	sw_json_double(&j, "gain_over_ps", p->share.over_ps);
	sw_json_double(&j, "ideal_iteration_s", p->ideal_s);
	sw_json_double(&j, "bound_over_ideal_s", p->bound_s);
	write_policies(&j, p);
	sw_json_close(&j);
	return sw_json_fini(&j);
}

static void print_number(const char *name, double value, const char *unit)
{
	if (isfinite(value))
		printf("%-28s %.4g%s%s\n", name, value, *unit ? " " : "", unit);
	else
		printf("%-28s -\n", name);
}

static void print_table(const struct plan *p)
{
	printf("%u GPU machines, %u CPU machines, %s of %.1f MB, %.4g Gb/s "
	       "(times: %s)\n\n",
		p->n, p->k, p->model.name, 1e-6 * m_bytes(p),
		1e-9 * (double)p->rate_bits_s, p->model.source);
	print_number("share of one SS_CPU", 100 * p->share.cpu, "%");
	print_number("share of one SS_GPU", 100 * p->share.gpu, "%");
	print_number("optimal time", 1e3 * p->share.optimal_s, "ms");
	if (p->copy_bits_s)
		print_number("copies, each way", 1e3 * copy_s(p), "ms");
	print_number("gain over all-reduce", p->share.over_allreduce, "");
	print_number("gain over PS", p->share.over_ps, "");
	print_number("ideal iteration (BS-T1)", 1e3 * p->ideal_s, "ms");
	print_number("bound above that (4.1)", 1e3 * p->bound_s, "ms");
	printf("\n%-14s %12s %10s %10s\n", "policy", "iteration", "over fifo",
		"over ideal");
	for (uint32_t i = 0; i < SW_N_POLICIES; i++)
		printf("%-14s %9.2f ms %10.3f %10.3f\n", p->policies[i].name,
			1e3 * p->iteration_s[i], p->fifo_s / p->iteration_s[i],
			p->iteration_s[i] / p->ideal_s);
	printf("\n%-14s %s\n", "placement", "largest part over its share");
	for (uint32_t i = 0; i < SW_N_PLAN_PLACES; i++)
		print_number(sw_plan_place_name(i), 100 * unbalance(p, i), "%");
}

/* Draw figure 12: time over k, from 0 to n CPU machines. */
static int write_svg(const struct plan *p)
{
	double x[MACHINES + 1], y[3][MACHINES + 1];
	const struct sw_svg_line lines[] = {{"optimal", y[0], false},
		{"all-reduce", y[1], false}, {"PS", y[2], false}};
	char title[160];
	struct sw_svg_plot plot = {.title = title,
		.x_name = "CPU machines",
		.y_name = "ms",
		.x = x,
		.n = p->n + 1,
		.lines = lines,
		.n_lines = 3};
	FILE *f = fopen(p->svg, "w");
	int err;

	if (!f) {
		fprintf(stderr, "sumwire-lab plan: %s: %s\n", p->svg,
			strerror(errno));
		return SW_EIO;
	}
	snprintf(title, sizeof(title),
		"Communication time of %s over %u GPU machines, %.4g Gb/s",
		p->model.name, p->n, 1e-9 * (double)p->rate_bits_s);
	for (uint32_t k = 0; k <= p->n; k++) {
		struct sw_plan_share s = sw_plan_share(
			p->n, k, m_bytes(p), (double)p->rate_bits_s / 8);

		x[k] = k;
		y[0][k] = 1e3 * s.optimal_s;
		y[1][k] = 1e3 * s.allreduce_s;
		y[2][k] = k > p->n / 8 ? 1e3 * s.ps_s : NAN;
	}
	err = sw_svg_write(&plot, f);
	if (fclose(f) || err) {
		fprintf(stderr, "sumwire-lab plan: cannot write %s\n", p->svg);
		return SW_EIO;
	}
	return 0;
}

static int parse(struct plan *p, int argc, char **argv)
{
	const struct sw_arg rows[] = {
		{"--gpus", SW_ARG_U32, {.u32 = &p->n}, 1, MACHINES,
			"GPU machines"},
		{"--cpus", SW_ARG_U32, {.u32 = &p->k}, 0, MACHINES,
			"CPU machines that sum"},
		{"--model", SW_ARG_STRING, {.string = &p->model_name}, 0, 0,
			"network: vgg16, resnet50, transformer, bert-large, or "
			"a file"},
		{"--size", SW_ARG_BYTES, {.u64 = &p->bytes}, 0, 1ULL << 44,
			"bytes to sum (M), for shares and times; 0: those of "
			"the model"},
		{"--rate", SW_ARG_RATE, {.u64 = &p->rate_bits_s}, 1e6, 1e13,
			"rate of each machine's link, each way"},
		{"--partition", SW_ARG_BYTES, {.u64 = &p->partition_bytes}, 0,
			SW_PART_MAX,
			"partition of bytescheduler; 0: its default"},
		{"--credit", SW_ARG_BYTES, {.u64 = &p->credit_bytes}, 0,
			SW_CREDIT_TOP,
			"credit of bytescheduler; 0: its default"},
		{"--overhead", SW_ARG_TIME, {.u64 = &p->overhead_ns}, 0, 1e9,
			"time that the link idles before each partition"},
		{"--latency", SW_ARG_TIME, {.u64 = &p->latency_ns}, 0, 1e9,
			"time from a partition's last byte to its result and "
			"the return of its credit"},
		{"--copy", SW_ARG_RATE, {.u64 = &p->copy_bits_s}, 0, 1e13,
			"rate of copies between device and host, each way; 0: "
			"no copies"},
		{"--piece", SW_ARG_BYTES, {.u64 = &p->piece_bytes}, 4096,
			SW_PART_MAX, "bytes per copy"},
		{"--barrier", SW_ARG_FLAG, {.flag = &p->has_barrier}, 0, 0,
			"start the forward pass only after all results"},
		{"--svg", SW_ARG_PATH, {.string = &p->svg}, 0, 0,
			"file for a plot of the time by number of CPU "
			"machines"},
		{"--json", SW_ARG_FLAG, {.flag = &p->is_json}, 0, 0,
			"print one JSON object"},
	};
	const struct sw_args args = {.name = "sumwire-lab plan",
		.summary = "compute shares, times and gains for n GPU and k "
			   "CPU machines, and iteration times by policy",
		.rows = rows,
		.n_rows = sizeof(rows) / sizeof(rows[0])};

	return sw_args_parse(&args, argc, argv);
}

int sw_cmd_plan(int argc, char **argv)
{
	struct plan p = {.n = 32,
		.k = 16,
		.rate_bits_s = 100ULL * 1000 * 1000 * 1000,
		.model_name = "vgg16",
		.latency_ns = 20000,
		.piece_bytes = 1 << 20};
	char why[256];
	int err = parse(&p, argc, argv);

	if (err)
		return err == SW_ARGS_HELP ? 0 : 2;
	err = sw_model_open(&p.model, p.model_name, why, sizeof(why));
	if (err) {
		fprintf(stderr, "sumwire-lab plan: %s\n", why);
		return 2;
	}
	err = compute(&p);
	if (err)
		fprintf(stderr, "sumwire-lab plan: %s\n", sw_error_text(err));
	else if (p.is_json)
		err = write_json(&p);
	else
		print_table(&p);
	if (!err && p.svg)
		err = write_svg(&p);
	sw_model_close(&p.model);
	return err ? 1 : 0;
}
