/* bench.c - sumwire bench: push_pull bandwidth and latency, as a table.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/bench/bench.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/cli/cmd.h"
#include "apps/cli/find.h"
#include "apps/cli/json.h"
#include "engine/base/error.h"
#include "engine/sched/policy.h"
#include <sumwire/sumwire.h>

struct report {
	const struct bench_options *o;
	struct sw_json json;
	uint64_t wrong;
	uint32_t n_rows;
	double busbw; /* GB/s, sum over the rows */
};

static double gbit_s(const struct bench_row *r)
{
	return 8e-3 * (double)r->size_bytes * r->n_tensors / r->mean_us;
}

/* Return the bus bandwidth: the bytes of the busiest port direction over time.
 * A node's port carries the tensor each way; a server's port carries its share
 * of the tensors of all nodes. */
static double busbw(const struct bench_options *o, const struct bench_row *r)
{
	double share = (double)r->ranks / r->local_ranks / o->n_servers;

	if (o->collective)
		return gbit_s(r) *
		       sw_bench_coll_factor(
			       sw_bench_coll_find(o->collective), r->ranks);

	return gbit_s(r) * (share > 1 ? share : 1);
}

/* Convert to GB/s, as nccl-tests and users of NCCL count. */
static double gbyte_s(double gigabit_s)
{
	return gigabit_s / 8;
}

static void print_head(const struct bench_options *o)
{
	bool has_kernel = o->local_ranks > 1;
	const char *call = o->collective ? "  redop  root" : "";
	const char *again =
		o->is_both ? "       time    algbw    busbw  #wrong" : "";

	if (o->is_both)
		printf("#%*s%36s %36s\n", 31 + (int)strlen(call), "",
			"out-of-place", "in-place");
	printf("#%11s %12s %5s%s %10s %8s %8s %7s%s %9s %9s%s%s\n", "size",
		"count", "type", call, "time", "algbw", "busbw", "#wrong",
		again, "p50", "p99",
		o->is_raw ? "      raw  ratio (quartiles)" : "",
		has_kernel ? "   kernel  ratio" : "");
	printf("#%11s %12s %5s%*s %10s %8s %8s %7s%s %9s %9s%s%s\n", "(B)",
		"(elements)", "", (int)strlen(call), "", "(us)", "(GB/s)",
		"(GB/s)", "",
		o->is_both ? "       (us)   (GB/s)   (GB/s)        " : "",
		"(us)", "(us)", o->is_raw ? "   (GB/s)                   " : "",
		has_kernel ? "   (GB/s)" : "");
}

/* Print the call as nccl-tests does: -1 means no root. */
static void print_call(const struct bench_options *o)
{
	enum sw_coll_kind kind = sw_bench_coll_find(o->collective);
	bool is_copy = kind == SW_ALL_GATHER || kind == SW_BCAST;

	printf(" %6s %5d", is_copy ? "none" : o->op,
		kind == SW_BCAST || kind == SW_REDUCE ? 0 : -1);
}

/* Print the time and both bandwidths of @row as if it had taken @us. */
static void print_times(const struct bench_options *o, double us,
	const struct bench_row *row, uint64_t wrong)
{
	struct bench_row r = *row;

	r.mean_us = us;
	printf(" %10.1f %8.2f %8.2f %7llu", us, gbyte_s(gbit_s(&r)),
		gbyte_s(busbw(o, &r)), (unsigned long long)wrong);
}

static void print_row(const struct report *rep, const struct bench_row *r)
{
	printf("%12llu %12llu %5s", (unsigned long long)r->size_bytes,
		(unsigned long long)r->n_elems, sw_dtype_name(rep->o->dtype));
	if (rep->o->collective)
		print_call(rep->o);
	print_times(rep->o, r->mean_us, r, r->wrong);
	if (r->has_in_place)
		print_times(rep->o, r->in_place_us, r, r->in_place_wrong);
	printf(" %9.1f %9.1f", r->p50_us, r->p99_us);
	if (r->raw_gbit_s > 0)
		printf(" %8.2f %6.3f (%.3f-%.3f)", gbyte_s(r->raw_gbit_s),
			r->raw_ratio.middle, r->raw_ratio.low,
			r->raw_ratio.high);
	if (r->kernel_gbit_s > 0)
		printf(" %8.2f %6.3f", gbyte_s(r->kernel_gbit_s),
			gbit_s(r) / r->kernel_gbit_s);
	printf("\n");
	fflush(stdout);
}

static void write_row(struct report *rep, const struct bench_row *r)
{
	struct sw_json *j = &rep->json;

	sw_json_object_open(j, NULL);
	sw_json_u64(j, "size_bytes", r->size_bytes);
	sw_json_text(j, "collective",
		rep->o->collective ? rep->o->collective : "push_pull");
	sw_json_text(j, "op", rep->o->op);
	sw_json_text(j, "dtype", sw_dtype_name(rep->o->dtype));
	sw_json_u64(j, "ranks", r->ranks);
	sw_json_u64(j, "local_ranks", r->local_ranks);
	sw_json_u64(j, "tensors", r->n_tensors);
	sw_json_u64(j, "servers", rep->o->n_servers);
	sw_json_double(j, "time_us", r->mean_us);
	sw_json_double(j, "algbw_gbit_s", gbit_s(r));
	sw_json_double(
		j, "raw_gbit_s", r->raw_gbit_s > 0 ? r->raw_gbit_s : NAN);
	sw_json_double(
		j, "raw_ratio", r->raw_gbit_s > 0 ? r->raw_ratio.middle : NAN);
	sw_json_double(
		j, "raw_ratio_q1", r->raw_gbit_s > 0 ? r->raw_ratio.low : NAN);
	sw_json_double(
		j, "raw_ratio_q3", r->raw_gbit_s > 0 ? r->raw_ratio.high : NAN);
	sw_json_double(j, "kernel_gbit_s",
		r->kernel_gbit_s > 0 ? r->kernel_gbit_s : NAN);
	sw_json_u64(j, "wrong", r->wrong);
	sw_json_double(j, "busbw_gbit_s", busbw(rep->o, r));
	sw_json_double(j, "algbw_gbyte_s", gbyte_s(gbit_s(r)));
	sw_json_double(j, "busbw_gbyte_s", gbyte_s(busbw(rep->o, r)));
	if (r->has_in_place) {
		sw_json_double(j, "in_place_time_us", r->in_place_us);
		sw_json_u64(j, "in_place_wrong", r->in_place_wrong);
	}
	sw_json_double(j, "p50_us", r->p50_us);
	sw_json_double(j, "p99_us", r->p99_us);
	sw_json_u64(j, "iterations", r->n_iters);
	sw_json_close(j);
}

static void each(void *ctx, struct bench_row *row)
{
	struct report *rep = ctx;

	rep->wrong += row->wrong + row->in_place_wrong;
	rep->busbw += gbyte_s(busbw(rep->o, row));
	row->kernel_gbit_s = rep->o->kernels[rep->n_rows++];
	if (rep->o->is_json)
		write_row(rep, row);
	else
		print_row(rep, row);
}

/* Return the local rank of process @i at the loopback's agent. */
static uint32_t local_rank(const struct bench_options *o, uint32_t i)
{
	return o->is_loopback ? i % o->local_ranks : SW_ANY_LOCAL_RANK;
}

/* Run one process per agent or local rank.  The sums synchronize them.
 */
static int run_all(const struct bench_options *o, struct report *rep)
{
	uint32_t n = o->agents.n;
	int err, status, worst = 0;

	fflush(stdout);
	for (uint32_t i = 1; i < n; i++) {
		pid_t pid = fork();

		if (pid < 0)
			fprintf(stderr,
				"sumwire bench: cannot start a process: %s\n",
				strerror(errno));
		if (pid)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		err = sw_bench_client(
			o, o->agents.items[i], local_rank(o, i), each, rep);
		fflush(stdout);
		_exit(err || rep->wrong ? 1 : 0);
	}
	worst = sw_bench_client(
		o, o->agents.items[0], local_rank(o, 0), each, rep);
	for (uint32_t i = 1; i < n; i++)
		if (wait(&status) < 0 || status)
			worst = worst ? worst : SW_EPEER;
	return worst;
}

static int report_all(const struct bench_options *o)
{
	struct report rep = {.o = o};
	int err;

	if (o->is_json) {
		sw_json_init(&rep.json, stdout);
		sw_json_object_open(&rep.json, NULL);
		sw_json_array_open(&rep.json, "results");
	} else {
		print_head(o);
	}
	err = run_all(o, &rep);
	if (o->is_json) {
		sw_json_close(&rep.json);
		sw_json_close(&rep.json);
		sw_json_fini(&rep.json);
	} else if (rep.n_rows && !err) {
		printf("# Avg bus bandwidth    : %.4g GB/s\n",
			rep.busbw / rep.n_rows);
	}
	return err || rep.wrong ? 1 : 0;
}

/* Find the sockets of the agents that are given by name. */
static int find_agents(
	struct bench_options *o, char paths[SW_ARG_LIST_MAX][SW_FIND_BYTES])
{
	for (uint32_t i = 0; i < o->agents.n; i++) {
		if (sw_find_socket("sumwire bench", o->agents.items[i],
			    SW_FIND_AGENT, paths[i]))
			return SW_EINVAL;
		o->agents.items[i] = paths[i];
	}
	return 0;
}

static int measure(const struct bench_options *o)
{
	return o->is_urgent ? sw_bench_urgent(o, o->agents.items[0])
			    : report_all(o);
}

/* Measure the kernels alone, before daemons poll on these cores. */
static void measure_kernels(struct bench_options *o)
{
	uint32_t n = 0;

	for (uint64_t b = o->min_bytes; b <= o->max_bytes; b *= o->factor)
		o->kernels[n++] = sw_bench_kernel(o, b);
}

static int run_loopback(struct bench_options *o)
{
	if (o->local_ranks > 1 && !o->is_urgent)
		measure_kernels(o);
	if (o->is_colocated)
		o->n_servers = 2;
	return sw_bench_loopback(o, measure);
}

int sw_cmd_bench(int argc, char **argv)
{
	struct bench_options o = {
		.min_bytes = 4 << 10,
		.max_bytes = 256 << 20,
		.factor = 4,
		.n_servers = 1,
		.n_tensors = 1,
		.local_ranks = 1,
		.n_lcores = 1,
		.port = "memif",
		.op = "sum",
		.order = "arrival",
	};
	char paths[SW_ARG_LIST_MAX][SW_FIND_BYTES];
	int err;

	err = sw_bench_parse(&o, argc, argv);
	if (err)
		return err == SW_ARGS_HELP ? 0 : 2;
	if (find_agents(&o, paths))
		return 1;
	o.net = sw_bench_net(&o);
	if (o.is_raw && pipe(o.others)) {
		fprintf(stderr, "sumwire bench: %s\n", strerror(errno));
		return 1;
	}
	if (!o.policy)
		o.policy = sw_policy_at(0)->name;
	if (o.is_turns)
		return sw_bench_client(&o, o.agents.items[0], SW_ANY_LOCAL_RANK,
			       NULL, NULL)
			       ? 1
			       : 0;
	return o.is_loopback ? run_loopback(&o) : report_all(&o);
}
