/* run.c - sumwire run: run a program in N processes over local daemons.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/launch/run.h"

#include <stdio.h>

#include "apps/cli/args.h"
#include "apps/cli/cmd.h"
#include "engine/base/error.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static struct sw_run run_init(void)
{
	return (struct sw_run){
		.who = "sumwire run",
		.n_ranks = 1,
		/* The others notice a dead agent after 10 s; the rest of the
		 * time lets them report it. */
		.grace_ns = UINT64_C(15000000000),
		.net.n_agents = 1,
		.net.n_local = 1,
		.net.quota_bytes = UINT64_C(4) << 30,
	};
}

/* Check the number of agents, and set it. */
static int agents_check(struct sw_run *r)
{
	if (r->n_ranks % r->net.n_local) {
		fprintf(stderr,
			"sumwire run: -np %u is not a multiple of "
			"--local-ranks %u\n",
			r->n_ranks, r->net.n_local);
		return SW_EINVAL;
	}
	r->net.n_agents = r->n_ranks / r->net.n_local;
	if (r->net.n_agents <= SW_NET_AGENTS_MAX)
		return 0;
	fprintf(stderr,
		"sumwire run: -np %u needs %u agents, but at most %d are "
		"possible: let several processes share one with "
		"--local-ranks\n",
		r->n_ranks, r->net.n_agents, SW_NET_AGENTS_MAX);
	return SW_EINVAL;
}

int sw_cmd_run(int argc, char **argv)
{
	struct sw_run r = run_init();
	bool is_verbose = false;
	int command = 0, err;
	const struct sw_arg rows[] = {
		{"-n, --nproc-per-node, -np", SW_ARG_U32, {.u32 = &r.n_ranks},
			1, SW_RUN_RANKS_MAX, "number of processes to start"},
		{"--grace", SW_ARG_TIME, {.u64 = &r.grace_ns}, 0, 3600e9,
			"grace period before killing the other processes after "
			"a failure"},
		{"--asynchronous", SW_ARG_FLAG, {.flag = &r.is_async}, 0, 0,
			"set [job] mode = asynchronous: the other processes "
			"continue after a failure"},
		{"--local-ranks", SW_ARG_U32, {.u32 = &r.net.n_local}, 1, 1023,
			"processes per agent"},
		{"--no-tags", SW_ARG_FLAG, {.flag = &r.has_no_tags}, 0, 0,
			"do not prefix output lines with the rank"},
		{"--quota", SW_ARG_BYTES, {.u64 = &r.net.quota_bytes}, 1 << 20,
			16384.0 * (1 << 30),
			"memory for tensors in the server and in each agent"},
		{"--verbose", SW_ARG_FLAG, {.flag = &is_verbose}, 0, 0,
			"also show info lines of server and agents, not only "
			"warnings"},
	};
	const struct sw_args args = {
		.name = "sumwire run",
		.summary = "run CMD in N processes on this machine, with a "
			   "server and agents that end with it",
		.rows = rows,
		.n_rows = ARRAY_SIZE(rows),
		.positional = "CMD [ARG]...",
		.command_at = &command,
	};

	err = sw_args_parse(&args, argc, argv);
	if (err)
		return err == SW_ARGS_HELP ? 0 : 2;
	r.command = argv + command;
	if (agents_check(&r))
		return 2;
	if (r.is_async)
		r.net.job_keys = "mode = asynchronous\n";
	r.net.is_keyed = true;
	r.net.log_level = is_verbose ? "info" : "warn";
	return sw_run_all(&r);
}
