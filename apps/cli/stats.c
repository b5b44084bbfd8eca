/* stats.c - sumwire stats: the counters of a running daemon.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>

#include "apps/cli/args.h"
#include "apps/cli/cmd.h"
#include "apps/cli/find.h"
#include "apps/cli/json.h"
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

static const char *error_text(int err)
{
	switch (err) {
	case SW_ECLOSED:
		return "no daemon is listening there";
	case SW_EPERM:
		return "permission denied: only the user that runs the daemon "
		       "and root may read its counters";
	case SW_EPROTO:
		return "this socket is not for counters: give the one that the "
		       "daemon's log names";
	default:
		return sw_error_text(err);
	}
}

int sw_cmd_stats(int argc, char **argv)
{
	struct out o = {0};
	struct sw_arg_list paths = {0};
	const struct sw_arg rows[] = {
		{"--json", SW_ARG_FLAG, {.flag = &o.is_json}, 0, 0,
			"one JSON object"},
		{"--all", SW_ARG_FLAG, {.flag = &o.has_zeros}, 0, 0,
			"also counters that are 0"},
	};
	const struct sw_args args = {.name = "sumwire stats",
		.summary = "print the counters of a running daemon",
		.rows = rows,
		.n_rows = 2,
		.positional = "NAME",
		.max_positionals = 1,
		.positionals = &paths};
	char path[SW_FIND_BYTES];
	int err = sw_args_parse(&args, argc, argv);

	if (err)
		return err == SW_ARGS_HELP ? 0 : 2;
	if (sw_find_socket("sumwire stats", paths.n ? paths.items[0] : NULL,
		    SW_FIND_STATS, path))
		return 1;
	if (o.is_json) {
		sw_json_init(&o.json, stdout);
		sw_json_object_open(&o.json, NULL);
	}
	err = sw_stats_read(path, each, &o);
	if (o.is_json) {
		sw_json_close(&o.json);
		sw_json_fini(&o.json);
	}
	if (err)
		fprintf(stderr, "sumwire stats: %s: %s\n", path,
			error_text(err));
	return err ? 1 : 0;
}
