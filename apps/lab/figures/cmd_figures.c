/* cmd_figures.c - sumwire-lab figures: compare the papers' numbers with ours.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/cli/args.h"
#include "apps/cli/clock.h"
#include "apps/cli/cmd.h"
#include "apps/lab/figures/figure.h"
#include "engine/base/error.h"

enum { FIGURES = 64 };

struct options {
	struct sw_arg_list names;
	const char *from, *out, *commit;
	uint32_t n_threads, n_landscapes;
};

struct all {
	struct sw_figure figures[FIGURES];
	uint32_t n;
};

static int parse(struct options *o, int argc, char **argv)
{
	const struct sw_arg rows[] = {
		{"--from", SW_ARG_PATH, {.string = &o->from}, 0, 0,
			"folder with one description per figure"},
		{"--out", SW_ARG_PATH, {.string = &o->out}, 0, 0,
			"folder for figures.md and figures/*.svg"},
		{"--commit", SW_ARG_STRING, {.string = &o->commit}, 0, 0,
			"commit to name in the page"},
		{"--threads", SW_ARG_U32, {.u32 = &o->n_threads}, 0, 256,
			"points to run at once; 0: one per core"},
		{"--landscapes", SW_ARG_U32, {.u32 = &o->n_landscapes}, 1, 1000,
			"number of landscapes on which the tuner searches"},
	};
	const struct sw_args args = {.name = "sumwire-lab figures",
		.summary = "run the descriptions of all figures, or of NAMEs, "
			   "and compare our numbers with those of papers",
		.rows = rows,
		.n_rows = sizeof(rows) / sizeof(rows[0]),
		.positional = "NAME",
		.max_positionals = SW_ARG_LIST_MAX,
		.positionals = &o->names};

	return sw_args_parse(&args, argc, argv);
}

static void say(void *ctx, enum sw_log_level level, const char *text)
{
	(void)ctx;
	(void)level;
	fprintf(stderr, "sumwire-lab figures: %s\n", text);
}

static int fail(const char *what, const char *path)
{
	fprintf(stderr, "sumwire-lab figures: %s %s: %s\n", path, what,
		strerror(errno));
	return SW_EIO;
}

/* --- the chosen figures --- */

static int add(struct all *a, const char *path)
{
	static const struct sw_log log = {.line = say, .level = SW_LOG_ERROR};

	if (a->n == FIGURES) {
		fprintf(stderr, "sumwire-lab figures: more than %d figures\n",
			FIGURES);
		return SW_ECONF;
	}
	return sw_figure_open(&a->figures[a->n++], path, &log);
}

static int is_description(const struct dirent *e)
{
	size_t n = strlen(e->d_name);

	return n > 4 && !strcmp(e->d_name + n - 4, ".ini");
}

/* Add all descriptions in the order of their names.  After an error, continue
 * with the other figures to show their errors. */
static int add_all(struct all *a, const char *from)
{
	struct dirent **names;
	int n = scandir(from, &names, is_description, alphasort), err = 0;

	if (n < 0)
		return fail("cannot be read", from);
	for (int i = 0; i < n; i++) {
		char path[SW_FIGURE_PATH];
		int one;

		snprintf(path, sizeof(path), "%s/%s", from, names[i]->d_name);
		one = add(a, path);
		err = err ? err : one;
		free(names[i]);
	}
	free(names);
	return err;
}

static int add_named(struct all *a, const struct options *o)
{
	int err = 0;

	for (uint32_t i = 0; i < o->names.n && !err; i++) {
		char path[SW_FIGURE_PATH];

		snprintf(path, sizeof(path), "%s/%s.ini", o->from,
			o->names.items[i]);
		err = add(a, path);
	}
	return err;
}

/* --- the runs --- */

/* Run one figure.  Its rows lie beside the plot until the plot is written, so
 * an interrupted command can continue. */
static int run_one(
	struct sw_figure *f, const struct options *o, uint32_t i, uint32_t n)
{
	char rows[SW_FIGURE_PATH], svg[SW_FIGURE_PATH], label[128];
	uint64_t from_ns = sw_now_ns();
	int err;

	snprintf(rows, sizeof(rows), "%s/figures/%s.rows.csv", o->out, f->name);
	snprintf(svg, sizeof(svg), "%s/figures/%s.svg", o->out, f->name);
	snprintf(label, sizeof(label), "[%u of %u] %s: ", i + 1, n, f->name);
	err = sw_figure_run(f, rows, label, o->n_threads);
	if (!err)
		err = sw_figure_plot(f, svg);
	if (err)
		return err;
	sw_figure_print(f);
	fprintf(stderr, "%s%u points, %.1f s\n", label, f->file.n_points,
		1e-9 * (double)(sw_now_ns() - from_ns));
	return 0;
}

static int plot_wiring(const struct options *o, uint32_t i)
{
	char svg[SW_FIGURE_PATH];

	snprintf(svg, sizeof(svg), "%s/figures/%s.svg", o->out,
		sw_figure_wiring_name(i));
	return sw_figure_wiring_plot(i, svg);
}

static int write_page(const struct all *a, const struct options *o,
	const struct sw_figure_trials *trials)
{
	char path[SW_FIGURE_PATH];
	FILE *f;
	int err;

	snprintf(path, sizeof(path), "%s/figures.md", o->out);
	f = fopen(path, "w");
	if (!f)
		return fail("cannot be written", path);
	err = sw_figures_page(a->figures, a->n, trials, o->commit, f);
	if (fclose(f))
		err = SW_EIO;
	return err ? fail("cannot be written", path) : 0;
}

static void remove_rows(const struct all *a, const struct options *o)
{
	char path[SW_FIGURE_PATH];

	for (uint32_t i = 0; i < a->n; i++) {
		snprintf(path, sizeof(path), "%s/figures/%s.rows.csv", o->out,
			a->figures[i].name);
		unlink(path);
	}
}

static int run_all(struct all *a, const struct options *o)
{
	struct sw_figure_trials trials = {.n_landscapes = o->n_landscapes};
	char folder[SW_FIGURE_PATH];
	int err = 0;

	snprintf(folder, sizeof(folder), "%s/figures", o->out);
	if (mkdir(folder, 0777) && errno != EEXIST)
		return fail("cannot be made", folder);
	for (uint32_t i = 0; i < a->n && !err; i++)
		err = run_one(&a->figures[i], o, i, a->n);
	for (uint32_t i = 0; i < SW_FIGURE_WIRINGS && !err && !o->names.n; i++)
		err = plot_wiring(o, i);
	if (!err && !o->names.n)
		err = sw_figure_trials(&trials);
	if (!err && !o->names.n)
		err = write_page(a, o, &trials);
	if (!err)
		remove_rows(a, o);
	return err;
}

int sw_cmd_figures(int argc, char **argv)
{
	struct options o = {.from = "conf/lab/figures",
		.out = "doc",
		.commit = "unknown",
		.n_landscapes = 10};
	struct all *a = calloc(1, sizeof(*a));
	int err = parse(&o, argc, argv);

	if (err) {
		free(a);
		return err == SW_ARGS_HELP ? 0 : 2;
	}
	if (!a)
		abort();
	err = o.names.n ? add_named(a, &o) : add_all(a, o.from);
	if (!err)
		err = run_all(a, &o);
	for (uint32_t i = 0; i < a->n; i++)
		sw_figure_close(&a->figures[i]);
	free(a);
	return err ? 1 : 0;
}
