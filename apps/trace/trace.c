/* trace.c - sumwire trace: record the events of each tensor and chunk.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/cli/args.h"
#include "apps/cli/cmd.h"
#include "apps/trace/load.h"
#include "apps/trace/record.h"
#include "engine/base/bytes.h"
#include "engine/base/params.h"

struct options {
	const char *out;
	uint64_t time_ns, max_bytes;
	bool is_reading, has_report;
	struct sw_arg_list names;
};

static int parse(struct options *o, int argc, char **argv)
{
	const struct sw_arg rows[] = {
		{"-o, --output", SW_ARG_PATH, {.string = &o->out}, 0, 0,
			"file for the trace: FILE.json for Perfetto, any other "
			"name for --read"},
		{"--time", SW_ARG_TIME, {.u64 = &o->time_ns}, 0, 0,
			"how long to record; 0: until Ctrl-C"},
		{"--size", SW_ARG_BYTES, {.u64 = &o->max_bytes}, 1,
			(double)(UINT64_C(1) << 44),
			"end the trace after so many recorded bytes"},
		{"--read", SW_ARG_FLAG, {.flag = &o->is_reading}, 0, 0,
			"read recorded files, of one or several machines"},
		{"--report", SW_ARG_FLAG, {.flag = &o->has_report}, 0, 0,
			"print the slowest steps and what bounded them"},
	};
	const struct sw_args args = {.name = "sumwire trace",
		.summary = "record events of tensors and chunks at this "
			   "machine's daemons",
		.rows = rows,
		.n_rows = SW_ARRAY_SIZE(rows),
		.positional = "JOB|FILE",
		.max_positionals = SW_ARG_LIST_MAX,
		.positionals = &o->names};
	int err = sw_args_parse(&args, argc, argv);

	if (err)
		return err == SW_ARGS_HELP ? 0 : 2;
	if (!o->is_reading || o->names.n)
		return -1;
	fprintf(stderr, "sumwire trace: --read needs files\n");
	return 2;
}

static bool is_json(const char *path)
{
	size_t n = path ? strlen(path) : 0;

	return n > 5 && !strcmp(path + n - 5, ".json");
}

static int complain(const char *path)
{
	fprintf(stderr, "sumwire trace: %s: %s\n", path, strerror(errno));
	return 1;
}

/* Write the loaded events, as JSON and as a report. */
static int show(const struct options *o, struct sw_trace_data *t)
{
	FILE *to;
	int err = sw_trace_join(t);

	if (err)
		return err;
	sw_trace_print(t, stderr);
	if (is_json(o->out)) {
		to = fopen(o->out, "w");
		if (!to)
			return complain(o->out);
		err = sw_trace_chrome(t, to, o->out);
		if (fclose(to) && !err)
			err = complain(o->out);
	}
	if (o->has_report)
		err |= sw_trace_report(t, stdout);
	return err;
}

static int read_files(const struct options *o, struct sw_trace_data *t)
{
	int err = 0;

	for (uint32_t i = 0; i < o->names.n && !err; i++) {
		const char *path = o->names.items[i];
		uint32_t before = t->n_daemons;
		FILE *f = fopen(path, "r");

		if (!f)
			return complain(path);
		err = sw_trace_load(t, f, path);
		fclose(f);
		if (!err && t->n_daemons == before) {
			fprintf(stderr, "sumwire trace: %s: has no daemon\n",
				path);
			err = 1;
		}
	}
	return err;
}

/* Open a file that only its owner may read: a recording has the sessions'
 * seeds, with which anyone could forge frames of a job without a secret. */
static FILE *open_private(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w+");

	if (!f && fd >= 0)
		close(fd);
	return f;
}

/* Write a block unchanged. */
static size_t keep(void *ctx, FILE *to, const struct sw_found_daemon *d,
	const struct sw_trace_block *b, const void *bytes)
{
	(void)ctx;
	(void)d;
	return fwrite(b, 1, sizeof(*b), to) + fwrite(bytes, 1, b->bytes, to);
}

/* Record into a file that is kept, or into a temporary file without a name. */
static int record(const struct options *o, struct sw_trace_data *t)
{
	bool is_kept = !is_json(o->out);
	static const struct sw_trace_ask ask = {.kind = SW_TRACE_ASK_EVENTS};
	struct sw_record r = {.who = "sumwire trace",
		.verb = "traced",
		.ask = &ask,
		.write = keep,
		.names = &o->names,
		.time_ns = o->time_ns,
		.max_bytes = o->max_bytes,
		.path = is_kept ? o->out : "the temporary file"};
	int err;

	r.to = is_kept ? open_private(o->out) : tmpfile();
	if (!r.to)
		return complain(r.path);
	err = sw_record_run(
		&r, fwrite(SW_TRACE_MAGIC, 1, SW_TRACE_MAGIC_BYTES, r.to));
	rewind(r.to);
	if (ftell(r.to) == 0)
		err |= sw_trace_load(t, r.to, r.path);
	fclose(r.to);
	return err;
}

int sw_cmd_trace(int argc, char **argv)
{
	struct options o = {
		.out = NULL, .time_ns = 10 * SW_S, .max_bytes = 32 << 20};
	struct sw_trace_data t = {0};
	int code = parse(&o, argc, argv), err;

	if (code >= 0)
		return code;
	if (!o.out && !o.is_reading)
		o.out = "trace.json";
	err = o.is_reading ? read_files(&o, &t) : record(&o, &t);
	if (t.n_daemons)
		err |= show(&o, &t);
	sw_trace_free(&t);
	return err ? 1 : 0;
}
