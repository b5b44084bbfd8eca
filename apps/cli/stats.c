/* stats.c - sumwire stats: the counters of a running daemon.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>

#include "apps/cli/args.h"
#include "apps/cli/cmd.h"
#include "apps/cli/counters.h"
#include "apps/cli/find.h"
#include "apps/cli/json.h"
#include "apps/cli/rates.h"
#include "engine/base/error.h"
#include "pmd/host/stats_read.h"

struct out {
	struct sw_json json;
	bool is_json, has_zeros;
};

static void each(void *ctx, const char *name, uint64_t value)
{
	struct out *o = ctx;

	if (o->is_json)
		sw_json_u64(&o->json, name, value);
	else if (value || o->has_zeros)
		printf("%20" PRIu64 "  %s\n", value, name);
}

static int print_once(struct out *o, const char *path)
{
	int err;

	if (o->is_json) {
		sw_json_init(&o->json, stdout);
		sw_json_object_open(&o->json, NULL);
	}
	err = sw_stats_read(path, each, o);
	if (o->is_json) {
		sw_json_close(&o->json);
		sw_json_fini(&o->json);
	}
	if (err)
		fprintf(stderr, "sumwire stats: %s: %s\n", path,
			sw_stats_error(err));
	return err ? 1 : 0;
}

int sw_cmd_stats(int argc, char **argv)
{
	struct out o = {0};
	struct sw_arg_list names = {0}, counters = {0};
	struct sw_rates rates = {.names = &counters};
	bool is_explain = false, is_reference = false;
	const struct sw_arg rows[] = {
		{"--json", SW_ARG_FLAG, {.flag = &o.is_json}, 0, 0,
			"print one JSON object; with --interval, one per line"},
		{"--all", SW_ARG_FLAG, {.flag = &o.has_zeros}, 0, 0,
			"also print counters that are 0"},
		{"--interval", SW_ARG_DOUBLE, {.real = &rates.interval_s}, 0.1,
			86400,
			"print rates every X seconds, until SIGINT or the "
			"daemon's end"},
		{"--count", SW_ARG_U32, {.u32 = &rates.n_lines}, 0, 0,
			"with --interval: number of lines to print; 0: no "
			"limit"},
		{"--counter", SW_ARG_LIST, {.list = &counters}, 0, 0,
			"with --interval: counter to print instead of those of "
			"the traffic"},
		{"--explain", SW_ARG_FLAG, {.flag = &is_explain}, 0, 0,
			"explain the counter NAME, or all of them"},
		{"--reference", SW_ARG_FLAG, {.flag = &is_reference}, 0, 0,
			"print all counters as a page"},
	};
	const struct sw_args args = {.name = "sumwire stats",
		.summary = "print the counters of a running daemon; NAME is "
			   "its name, pid, job or socket",
		.rows = rows,
		.n_rows = sizeof(rows) / sizeof(rows[0]),
		.positional = "NAME",
		.max_positionals = 1,
		.positionals = &names};
	char path[SW_FIND_BYTES];
	const char *name;
	int err = sw_args_parse(&args, argc, argv);

	if (err)
		return err == SW_ARGS_HELP ? 0 : 2;
	name = names.n ? names.items[0] : NULL;
	if (is_explain)
		return sw_counter_explain(name, o.is_json);
	if (is_reference) {
		sw_counter_reference(stdout);
		return 0;
	}
	if (sw_find_socket("sumwire stats", name, SW_FIND_STATS, path))
		return 1;
	if (rates.interval_s == 0)
		return print_once(&o, path);
	rates.path = path;
	rates.is_json = o.is_json;
	return sw_rates_print(&rates);
}
