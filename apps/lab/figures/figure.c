/* figure.c - a figure: its sweep, its curves, its plot.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/figures/figure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/lab/array.h"
#include "apps/lab/sim/select.h"
#include "apps/lab/sim/sweep.h"
#include "engine/base/error.h"

static int refuse(struct sw_figure *f, const char *section, const char *label,
	const char *why)
{
	char text[2 * SW_SIM_TEXT];

	snprintf(text, sizeof(text), "[%s%s%s] %s", section, *label ? " " : "",
		label, why);
	sw_sim_file_refuse(&f->file, text);
	return SW_ECONF;
}

static const struct sw_sim_measure *measure_of(const struct sw_figure *f)
{
	return sw_sim_measure_find(f->desc->figure.y);
}

static int check(struct sw_figure *f)
{
	const struct sw_sim_desc *d = f->desc;
	char why[SW_SIM_TEXT];

	if (!*d->figure.title || !*d->figure.y)
		return refuse(f, "figure", "", "has no title or no y");
	if (f->file.n_points == 1)
		return refuse(
			f, "figure", "", "needs a key with several values");
	if (!measure_of(f)) {
		snprintf(why, sizeof(why), "y: \"%.40s\" is none of %s",
			d->figure.y, SW_SIM_MEASURES);
		return refuse(f, "figure", "", why);
	}
	if (!sw_sim_select_check(&f->file, d->figure.over, why))
		return refuse(f, "figure", "", why);
	for (uint32_t i = 0; i < d->n_curves; i++)
		if (!sw_sim_select_check(&f->file, d->curves[i].of, why))
			return refuse(f, "curve", d->curves[i].label, why);
	for (uint32_t i = 0; i < d->n_claims; i++)
		if (!sw_figure_claim_check(f, i, why))
			return refuse(f, "claim", d->claims[i].label, why);
	return 0;
}

int sw_figure_open(
	struct sw_figure *f, const char *path, const struct sw_log *log)
{
	const char *name = strrchr(path, '/');
	int err;

	*f = (struct sw_figure){0};
	name = name ? name + 1 : path;
	snprintf(f->name, sizeof(f->name), "%.*s", (int)strcspn(name, "."),
		name);
	snprintf(f->path, sizeof(f->path), "%s", path);
	err = sw_sim_file_open(&f->file, f->path, log);
	if (!err && f->file.report.n_errors)
		err = SW_ECONF;
	if (!err)
		err = sw_sim_desc_read(&f->file, 0, &f->desc);
	return err ? err : check(f);
}

void sw_figure_close(struct sw_figure *f)
{
	for (uint32_t i = 0; i < SW_SIM_CURVES; i++)
		free(f->curves[i]);
	sw_sim_table_free(&f->table);
	sw_sim_desc_free(f->desc);
	sw_sim_file_close(&f->file);
}

static void draw(struct sw_figure *f, uint32_t c)
{
	const struct sw_sim_table *t = &f->table;
	bool is_rate = measure_of(f)->is_rate;

	f->curves[c] = sw_lab_array(t->n + 1, sizeof(double));
	for (uint32_t i = 0; i < t->n; i++)
		f->curves[c][i] = sw_sim_select_fits(&f->file, &t->rows[i],
					  f->desc->curves[c].of)
					  ? sw_figure_formula(f, c,
						    t->rows[i].point, is_rate)
					  : NAN;
}

int sw_figure_run(struct sw_figure *f, const char *rows, const char *label,
	uint32_t n_threads)
{
	struct sw_sim_sweep s = {.file = &f->file,
		.out = rows,
		.label = label,
		.drops_other = true,
		.n_threads = n_threads};
	int err = sw_sim_sweep_run(&s);

	f->table = s.table;
	for (uint32_t c = 0; c < f->desc->n_curves && !err; c++)
		draw(f, c);
	for (uint32_t i = 0; i < f->table.n && !err; i++)
		if (f->table.rows[i].has_failed) {
			fprintf(stderr,
				"sumwire-lab figures: %s: point %u did not end "
				"in [run] duration\n",
				f->path, f->table.rows[i].point);
			err = SW_EIO;
		}
	return err;
}

int sw_figure_plot(const struct sw_figure *f, const char *path)
{
	const struct sw_sim_desc *d = f->desc;
	struct sw_sim_plot plot = {.y = d->figure.y,
		.title = d->figure.title,
		.x_name = d->figure.x_name,
		.over = d->figure.over,
		.is_log = d->figure.is_log,
		.n_curves = d->n_curves};

	for (uint32_t i = 0; i < d->n_curves; i++) {
		plot.curves[i] = f->curves[i];
		plot.curve_names[i] = *d->curves[i].text ? d->curves[i].text
							 : d->curves[i].label;
	}
	return sw_sim_table_plot(&f->table, &f->file, &plot, path);
}
