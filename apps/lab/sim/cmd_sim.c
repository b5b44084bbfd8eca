/* cmd_sim.c - sumwire-lab sim: run the engine in a simulated network.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/cli/args.h"
#include "apps/cli/clock.h"
#include "apps/cli/cmd.h"
#include "apps/lab/sim/means.h"
#include "apps/lab/sim/sim.h"
#include "apps/lab/sim/sweep.h"
#include "engine/base/bytes.h"
#include "engine/base/error.h"

struct options {
	struct sw_arg_list files;
	bool is_json, has_profile, is_reference;
	const char *out, *plot, *y;
	uint32_t n_threads;
};

static int parse(struct options *o, int argc, char **argv)
{
	const struct sw_arg rows[] = {
		{"--json", SW_ARG_FLAG, {.flag = &o->is_json}, 0, 0,
			"print one JSON object"},
		{"--profile", SW_ARG_FLAG, {.flag = &o->has_profile}, 0, 0,
			"also print the run's CPU time and number of events, "
			"to stderr"},
		{"--out", SW_ARG_PATH, {.string = &o->out}, 0, 0,
			"sweep: CSV file of its rows, which an interrupted "
			"sweep resumes [default NAME.sweep.csv]"},
		{"--plot", SW_ARG_PATH, {.string = &o->plot}, 0, 0,
			"sweep: SVG file for a plot"},
		{"--y", SW_ARG_STRING, {.string = &o->y}, 0, 0,
			"quantity to plot: goodput, round, urgent, wait, "
			"again, dropped or queue"},
		{"--threads", SW_ARG_U32, {.u32 = &o->n_threads}, 0, 256,
			"points to run at once; 0: one per core"},
		{"--reference", SW_ARG_FLAG, {.flag = &o->is_reference}, 0, 0,
			"print the sections and keys of a description"},
	};
	const struct sw_args args = {.name = "sumwire-lab sim",
		.summary = "run an experiment in a simulated network, with "
			   "the engine of the daemons",
		.rows = rows,
		.n_rows = sizeof(rows) / sizeof(rows[0]),
		.positional = "FILE",
		.max_positionals = 1,
		.positionals = &o->files};
	int err = sw_args_parse(&args, argc, argv);

	if (!err && !o->is_reference && !o->files.n) {
		fprintf(stderr, "sumwire-lab sim: name a description, or try "
				"--reference\n");
		return SW_EINVAL;
	}
	return err;
}

static void say(void *ctx, enum sw_log_level level, const char *text)
{
	(void)ctx;
	(void)level;
	fprintf(stderr, "sumwire-lab sim: %s\n", text);
}

/* Print the cost of a run.  @ns is CPU time of this thread, so other load does
 * not count. */
static void print_profile(const struct sw_sim_result *r, uint64_t ns)
{
	fprintf(stderr,
		"%.3f s of CPU: %.0f frames per second, %.0f hops; %llu "
		"events, at most %llu frames in flight\n",
		(double)ns / 1e9, (double)r->n_frames * 1e9 / (double)ns,
		(double)r->n_hops * 1e9 / (double)ns,
		(unsigned long long)r->n_events,
		(unsigned long long)r->most_frames);
}

static int run_one(const struct options *o, struct sw_sim_file *file,
	const struct sw_sim_desc *d)
{
	struct sw_sim *s = malloc(sizeof(*s));
	struct sw_sim_result *r = calloc(1, sizeof(*r));
	uint64_t from = sw_cpu_ns();
	int err;

	if (!s || !r)
		abort();
	err = sw_sim_open(s, d);
	if (err) {
		sw_sim_file_refuse(file, s->why);
	} else {
		sw_sim_go(s, r);
		if (o->is_json)
			err = sw_sim_print_json(r, stdout);
		else
			sw_sim_print(r);
		if (o->has_profile)
			print_profile(r, sw_cpu_ns() - from);
		if (r->why[0]) {
			fprintf(stderr, "sumwire-lab sim: %s\n", r->why);
			err = SW_EIO;
		}
	}
	sw_sim_end(s);
	free(s);
	free(r);
	return err;
}

static int run_all(const struct options *o, struct sw_sim_file *file)
{
	const char *name = strrchr(o->files.items[0], '/');
	struct sw_sim_sweep s = {
		.file = file, .out = o->out, .n_threads = o->n_threads};
	char out[300];
	int err;

	name = name ? name + 1 : o->files.items[0];
	snprintf(out, sizeof(out), "%.*s.sweep.csv",
		(int)sw_min64(strcspn(name, "."), 250), name);
	if (!s.out)
		s.out = out;
	err = sw_sim_sweep_run(&s);
	if (!err)
		sw_sim_table_print(&s.table, file);
	if (!err)
		sw_sim_means_print(&s.table, file);
	if (!err && o->plot)
		err = sw_sim_table_plot(&s.table, file,
			&(struct sw_sim_plot){.y = o->y,
				.title = "",
				.x_name = "",
				.over = ""},
			o->plot);
	sw_sim_table_free(&s.table);
	return err;
}

static int run_file(const struct options *o, struct sw_sim_file *file)
{
	struct sw_sim_desc *d;
	int err;

	if (file->n_points > 1 && !o->is_json)
		return run_all(o, file);
	if (file->n_points > 1 || o->plot || o->out) {
		fprintf(stderr, "sumwire-lab sim: %s\n",
			file->n_points > 1
				? "--json is for a single run: a sweep's rows "
				  "are in the file of --out"
				: "--out and --plot are for a sweep: give a "
				  "key several values, like rate = 1Gb/s, "
				  "10Gb/s");
		return SW_EINVAL;
	}
	err = sw_sim_desc_read(file, 0, &d);
	if (!err)
		err = run_one(o, file, d);
	sw_sim_desc_free(d);
	return err;
}

int sw_cmd_sim(int argc, char **argv)
{
	const struct sw_log log = {.line = say, .level = SW_LOG_ERROR};
	struct options o = {.y = "goodput"};
	struct sw_sim_file file;
	int err = parse(&o, argc, argv);

	if (err)
		return err == SW_ARGS_HELP ? 0 : 2;
	if (o.is_reference) {
		sw_sim_reference(stdout);
		return 0;
	}
	err = sw_sim_file_open(&file, o.files.items[0], &log);
	if (err)
		return 1;
	err = file.report.n_errors ? SW_ECONF : run_file(&o, &file);
	sw_sim_file_close(&file);
	return err ? 1 : 0;
}
