/* bench_options.c - the command line of sumwire bench, and its rules.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "apps/bench/bench.h"
#include "conf/value.h"
#include "engine/base/error.h"
#include "engine/sched/policy.h"
#include "pmd/dpdk/port.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

enum { ROWS = 64 };

static int complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static int complain(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "sumwire bench: ");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, " (sumwire bench --help shows all options)\n");
	return SW_EINVAL;
}

/* Return an option that is set and describes the loopback; NULL: none. */
static const char *loopback_option(const struct bench_options *o)
{
	return o->is_colocated      ? "--colocated"
	       : o->n_lcores > 1    ? "--lcores"
	       : o->local_ranks > 1 ? "--local-ranks"
	       : o->has_no_crc      ? "--no-crc"
	       : o->is_keyed        ? "--keyed"
	       : o->is_encrypted    ? "--encrypted"
	       : o->is_ipv6         ? "--ipv6"
	       : o->faults          ? "--faults"
	       : o->rate_bit_s      ? "--rate"
	       : o->policy          ? "--policy"
	       : o->is_urgent       ? "--urgent"
				    : NULL;
}

static bool is_udp(const struct bench_options *o)
{
	return !strcmp(o->port, "udp");
}

/* Check the rules between options. */
static int check_loopback(const struct bench_options *o)
{
	const char *option = loopback_option(o);

	if (o->agents.n && o->is_loopback)
		return complain("give either --agent NAME or --loopback");
	if (option && !o->is_loopback)
		return complain("%s is for --loopback: with --agent it is in "
				"the daemons' files",
			option);
	if (o->devices.n && is_udp(o))
		return complain("--device: with --port udp the loopback is "
				"always on lo");
	if (o->is_ipv6 && is_udp(o))
		return complain("--ipv6: with --port udp the loopback is on "
				"lo, which has one IPv6 address; use memif");
	if (o->faults && is_udp(o))
		return complain("--faults: ports of type udp cannot inject "
				"faults; use memif");
	if (o->is_urgent && (o->is_colocated || o->local_ranks > 1))
		return complain("--urgent has one rank and one server: leave "
				"out --colocated and --local-ranks");
	if (o->is_results && (!o->is_urgent || !o->rate_bit_s))
		return complain("--results needs --urgent and --rate");
	return 0;
}

static int check_collective(const struct bench_options *o)
{
	if (o->collective &&
		sw_bench_coll_find(o->collective) == SW_N_COLL_KINDS)
		return complain("--collective %s: all_reduce, reduce_scatter, "
				"all_gather, broadcast or reduce expected",
			o->collective);
	if (o->is_staged && !o->collective)
		return complain("--staged needs --collective");
	if (o->is_in_place && !o->collective)
		return complain("--in-place needs --collective");
	if (sw_bench_op_find(o->op) == SW_N_REDUCE_OPS)
		return complain("--op %s: sum, prod, min, max, avg, mulsum, "
				"band, bor or bxor expected",
			o->op);
	if (sw_bench_op_find(o->op) != SW_SUM &&
		!(o->collective && strstr(o->collective, "reduce")))
		return complain("--op %s: only all_reduce, reduce_scatter and "
				"reduce have operations other than sum",
			o->op);
	if (o->collective && (o->n_tensors > 1 || o->local_ranks > 1))
		return complain("--collective has one tensor and one local "
				"rank: leave out --tensors and --local-ranks");
	return 0;
}

static int check(const struct bench_options *o)
{
	char why[160];
	uint64_t ppm;

	if (o->min_bytes > o->max_bytes)
		return complain("--min is %llu bytes, --max %llu: there is no "
				"size between them",
			(unsigned long long)o->min_bytes,
			(unsigned long long)o->max_bytes);
	if (sw_dpdk_type_find(o->port) < 0)
		return complain("--port %s: memif, af_packet, af_xdp or "
				"udp expected",
			o->port);
	if (o->policy && !sw_policy_find(o->policy))
		return complain("--policy %s: bytescheduler, p3 or fifo "
				"expected",
			o->policy);
	if (strcmp(o->order, "arrival") && strcmp(o->order, "rank"))
		return complain(
			"--order %s: arrival or rank expected", o->order);
	if (check_collective(o))
		return SW_EINVAL;
	if (o->faults && sw_value_parse(o->faults, SW_UNIT_PERCENT, &ppm, why,
				 sizeof(why)))
		return complain("--faults: %s", why);
	if (o->is_turns && (o->agents.n != 1 || o->n_tensors > 1 || o->is_raw))
		return complain("--turns needs one --agent, and has neither "
				"--tensors nor --raw");
	return check_loopback(o);
}

/* List the options that choose the measurement. */
static uint32_t list_measure(struct bench_options *o, struct sw_arg *out)
{
	const struct sw_arg rows[] = {
		{"--agent", SW_ARG_LIST, {.list = &o->agents}, 0, 0,
			"agent to measure, by name, pid or socket; one process "
			"for each"},
		{"--tensors", SW_ARG_U32, {.u32 = &o->n_tensors}, 1,
			BENCH_TENSORS, "number of tensors pushed together"},
		{"-b, --min", SW_ARG_BYTES, {.u64 = &o->min_bytes}, 1,
			1ULL << 36, "smallest size"},
		{"-e, --max", SW_ARG_BYTES, {.u64 = &o->max_bytes}, 1,
			1ULL << 36, "largest size"},
		{"-f, --factor", SW_ARG_U32, {.u32 = &o->factor}, 2, 1024,
			"factor from one size to the next"},
		{"-n, --iters", SW_ARG_U32, {.u32 = &o->n_iters}, 0, 1000000,
			"timed rounds per size; 0: chosen by size"},
		{"--dtype", SW_ARG_DTYPE, {.dtype = &o->dtype}, 0, 0,
			"element type"},
		{"--collective", SW_ARG_STRING, {.string = &o->collective}, 0,
			0,
			"collective to measure instead of push_pull: "
			"all_reduce, reduce_scatter, all_gather, broadcast or "
			"reduce; sizes and busbw are those of nccl-tests"},
		{"--op", SW_ARG_STRING, {.string = &o->op}, 0, 0,
			"operation of the collective: sum, prod, min, max, "
			"avg, mulsum (each rank's input times 2), band, bor or "
			"bxor"},
		{"--servers", SW_ARG_U32, {.u32 = &o->n_servers}, 1, 32,
			"number of the job's servers, to compute busbw"},
		{"--in-place", SW_ARG_FLAG, {.flag = &o->is_in_place}, 0, 0,
			"measure a collective only in place: its input and "
			"output share one buffer"},
		{"--staged", SW_ARG_FLAG, {.flag = &o->is_staged}, 0, 0,
			"measure collectives in memory that is not shared with "
			"the agent"},
		{"--polling", SW_ARG_FLAG, {.flag = &o->is_polling}, 0, 0,
			"wait by polling instead of sleeping"},
		{"--raw", SW_ARG_FLAG, {.flag = &o->is_raw}, 0, 0,
			"also measure an echo of the bare port, and print the "
			"ratio to it"},
		{"--turns", SW_ARG_FLAG, {.flag = &o->is_turns}, 0, 0,
			"measure on request: each line of standard input has "
			"bytes and rounds; rank 0 answers with bytes, median "
			"seconds and wrong elements; needs exactly one "
			"--agent"},
		{"--json", SW_ARG_FLAG, {.flag = &o->is_json}, 0, 0,
			"print one JSON object"},
	};

	memcpy(out, rows, sizeof(rows));
	return ARRAY_SIZE(rows);
}

/* List the options of the loopback. */
static uint32_t list_loopback(struct bench_options *o, struct sw_arg *out)
{
	const struct sw_arg rows[] = {
		{"--loopback", SW_ARG_FLAG, {.flag = &o->is_loopback}, 0, 0,
			"start a server and an agent, and stop them at the end "
			"[default without --agent]"},
		{"--port", SW_ARG_STRING, {.string = &o->port}, 0, 0,
			"loopback: type of the ports: memif, af_packet, af_xdp "
			"or udp (on lo)"},
		{"--device", SW_ARG_LIST, {.list = &o->devices}, 0, 0,
			"loopback: interface of the server, of the agent, and "
			"two more for --raw, as test/veth makes them [default "
			"sw0 to sw3]"},
		{"--colocated", SW_ARG_FLAG, {.flag = &o->is_colocated}, 0, 0,
			"loopback: two agents that also sum, without a server"},
		{"--lcores", SW_ARG_U32, {.u32 = &o->n_lcores}, 1, 16,
			"loopback: polling cores of each daemon"},
		{"--local-ranks", SW_ARG_U32, {.u32 = &o->local_ranks}, 1, 32,
			"loopback: processes of the agent"},
		{"--no-crc", SW_ARG_FLAG, {.flag = &o->has_no_crc}, 0, 0,
			"loopback: payloads without CRC"},
		{"--keyed", SW_ARG_FLAG, {.flag = &o->is_keyed}, 0, 0,
			"loopback: daemons share a secret; frames have tags "
			"instead of CRCs"},
		{"--encrypted", SW_ARG_FLAG, {.flag = &o->is_encrypted}, 0, 0,
			"loopback: as --keyed, with encrypted payloads"},
		{"--faults", SW_ARG_STRING, {.string = &o->faults}, 0, 0,
			"loopback: share of frames that are dropped, "
			"duplicated and reordered, each, such as 0.1%"},
		{"--ipv6", SW_ARG_FLAG, {.flag = &o->is_ipv6}, 0, 0,
			"loopback: IPv6 addresses; not with udp, because lo "
			"has only one"},
		{"--ring", SW_ARG_U32, {.u32 = &o->ring}, 0, 1024,
			"loopback: slots of a port's rings; 0: by port type"},
		{"--burst", SW_ARG_U32, {.u32 = &o->burst}, 0, 64,
			"loopback: frames per driver call; 0: by port type"},
		{"--rate", SW_ARG_RATE, {.u64 = &o->rate_bit_s}, 0, 1e12,
			"loopback: maximum payload rate that each side sends; "
			"0: unlimited"},
		{"--policy", SW_ARG_STRING, {.string = &o->policy}, 0, 0,
			"loopback: scheduling policy: bytescheduler, p3 or "
			"fifo [default bytescheduler]"},
		{"--order", SW_ARG_STRING, {.string = &o->order}, 0, 0,
			"loopback: order in which collectives add "
			"contributions: arrival or rank"},
		{"--urgent", SW_ARG_FLAG, {.flag = &o->is_urgent}, 0, 0,
			"loopback: time 64 KiB of top priority, alone and "
			"while 256 MiB of lowest priority are in flight"},
		{"--results", SW_ARG_FLAG, {.flag = &o->is_results}, 0, 0,
			"with --urgent and --rate: load only the results, by a "
			"server that sends at half the rate"},
	};

	memcpy(out, rows, sizeof(rows));
	return ARRAY_SIZE(rows);
}

int sw_bench_parse(struct bench_options *o, int argc, char **argv)
{
	struct sw_arg rows[ROWS];
	struct sw_args args = {.name = "sumwire bench",
		.summary = "measure push_pull or a collective, size by size",
		.rows = rows};
	int err;

	args.n_rows = list_measure(o, rows);
	args.n_rows += list_loopback(o, rows + args.n_rows);
	err = sw_args_parse(&args, argc, argv);
	if (err)
		return err;
	o->is_loopback |= !o->agents.n && !o->is_turns;
	o->is_both =
		o->collective && !o->is_in_place && !o->is_raw && !o->is_turns;
	return check(o);
}
