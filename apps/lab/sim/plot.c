/* plot.c - a plot of a sweep.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/lab/sim/select.h"
#include "apps/lab/sim/table.h"
#include "apps/lab/svg.h"
#include "conf/value.h"
#include "engine/base/error.h"

enum { LINES = 8 };

static const struct sw_sim_measure measures[] = {
	{"goodput", SW_SIM_GOODPUT, 1e9, "goodput of an agent", "Gb/s", true},
	{"round", SW_SIM_ROUND, 1e6, "median time of a round", "ms", false},
	{"urgent", SW_SIM_URGENT_P99, 1e6,
		"99 % of the most urgent tensor's times", "ms", false},
	{"wait", SW_SIM_URGENT, 1e6, "median time of the most urgent tensor",
		"ms", false},
	{"again", SW_SIM_AGAIN, 1, "retransmissions", "frames", false},
	{"dropped", SW_SIM_DROPPED, 1, "frames dropped by switches", "frames",
		false},
	{"queue", SW_SIM_QUEUE, 1024, "longest queue", "KiB", false},
};

struct scale {
	enum sw_unit unit;
	double per;
	const char *name;
};

/* Scale of each unit: the customary unit of an axis. */
static const struct scale scales[] = {
	{SW_UNIT_NONE, 1, ""},
	{SW_UNIT_RATE, 1e9, ", Gb/s"},
	{SW_UNIT_TIME, 1e6, ", ms"},
	{SW_UNIT_PERCENT, 1e4, ", %"},
	{SW_UNIT_BYTES, 1024, ", KiB"},
};
static const struct scale scale_of_lists = {SW_UNIT_NONE, 1, ""};

struct plot {
	const struct sw_sim_table *t;
	const struct sw_sim_file *file;
	const struct sw_sim_plot *wanted;
	const struct sw_sim_measure *measure;
	const struct scale *scale;
	uint32_t axis, n_x, n_lines;
	double *x, *y[LINES];
	char names[LINES][SW_SIM_TEXT];
};

/* Return the scale that fits all values of an axis; NULL: they are not
 * numbers. */
static const struct scale *scale_of(const struct sw_sim_file *file, uint32_t a)
{
	char value[SW_SIM_TEXT], why[SW_SIM_TEXT];
	uint64_t n;

	if (file->axes[a].is_list)
		return &scale_of_lists;
	for (uint32_t s = 0; s < sizeof(scales) / sizeof(scales[0]); s++) {
		bool fits = true;

		for (uint32_t p = 0; p < file->n_points && fits; p++)
			fits = !sw_value_parse(
				sw_sim_axis_value(file, a, p, value),
				scales[s].unit, &n, why, sizeof(why));
		if (fits)
			return &scales[s];
	}
	return NULL;
}

static double number_at(const struct plot *p, uint32_t point)
{
	char value[SW_SIM_TEXT], why[SW_SIM_TEXT];
	uint64_t n = 0;

	if (p->file->axes[p->axis].is_list)
		return sw_sim_axis_count(p->file, p->axis, point);
	sw_value_parse(sw_sim_axis_value(p->file, p->axis, point, value),
		p->scale->unit, &n, why, sizeof(why));
	return (double)n / p->scale->per;
}

/* Return whether a line's name must contain its value of an axis.  If lines are
 * compared with one of two values, all of them have the other value. */
static bool is_told(const struct plot *p, uint32_t axis)
{
	bool is_compared =
		sw_sim_select_has(p->wanted->over, p->file->axes[axis].key);

	return axis != p->axis && !(is_compared && p->file->axes[axis].n == 2);
}

static void name_line(const struct plot *p, const struct sw_sim_row *r,
	char *out, size_t size)
{
	char value[SW_SIM_TEXT];
	size_t at = 0;

	out[0] = '\0';
	for (uint32_t a = 0; a < p->file->n_axes && at < size; a++)
		if (is_told(p, a))
			at += (size_t)snprintf(out + at, size - at, "%s%s %s",
				at ? ", " : "", p->file->axes[a].key,
				sw_sim_axis_value(p->file, a, r->point, value));
	if (at < size && (!at || strcmp(r->job, "job") != 0))
		snprintf(out + at, size - at, "%s%s", at ? ", " : "", r->job);
}

/* Return the values of the line @name; NULL: more lines than colours. */
static double *line_named(struct plot *p, const char *name)
{
	uint32_t i = 0;

	while (i < p->n_lines && strcmp(p->names[i], name) != 0)
		i++;
	if (i == LINES)
		return NULL;
	if (i == p->n_lines) {
		snprintf(p->names[p->n_lines++], SW_SIM_TEXT, "%s", name);
		for (uint32_t k = 0; k < p->n_x; k++)
			p->y[i][k] = NAN;
	}
	return p->y[i];
}

/* Return the number to plot for a row; NAN: none. */
static double value_of(const struct plot *p, const struct sw_sim_row *r)
{
	const struct sw_sim_measure *m = p->measure;
	double value = (double)r->values[m->column], other;
	const struct sw_sim_row *partner;

	if (!*p->wanted->over)
		return value / m->unit;
	partner = sw_sim_select_partner(p->t, p->file, r, p->wanted->over);
	if (!partner || partner == r)
		return NAN;
	other = (double)partner->values[m->column];
	return m->is_rate ? value / other : other / value;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void take_x(struct plot *p)
{
	for (uint32_t i = 0; i < p->file->n_points; i++) {
		double x = number_at(p, i);
		uint32_t k = 0;

		while (k < p->n_x && p->x[k] != x)
			k++;
		if (k == p->n_x)
			p->x[p->n_x++] = x;
	}
	qsort(p->x, p->n_x, sizeof(*p->x), by_value);
}

static bool take_value(
	struct plot *p, uint32_t row, const char *name, double value)
{
	double *y, x = number_at(p, p->t->rows[row].point);
	uint32_t k = 0;

	if (!isfinite(value))
		return true;
	y = line_named(p, name);
	while (y && p->x[k] != x)
		k++;
	if (y)
		y[k] = value;
	return y;
}

static bool take_rows(struct plot *p)
{
	const struct sw_sim_plot *w = p->wanted;
	char name[SW_SIM_TEXT];
	bool fits = true;

	for (uint32_t i = 0; i < p->t->n; i++) {
		name_line(p, &p->t->rows[i], name, sizeof(name));
		fits &= take_value(p, i, name, value_of(p, &p->t->rows[i]));
	}
	for (uint32_t c = 0; c < w->n_curves; c++)
		for (uint32_t i = 0; i < p->t->n; i++)
			fits &= take_value(p, i, w->curve_names[c],
				w->curves[c][i] / p->measure->unit);
	return fits;
}

static bool is_curve(const struct sw_sim_plot *w, const char *name)
{
	for (uint32_t c = 0; c < w->n_curves; c++)
		if (!strcmp(w->curve_names[c], name))
			return true;
	return false;
}

static int write_plot(const struct plot *p, const char *path)
{
	const struct sw_sim_plot *w = p->wanted;
	struct sw_svg_line lines[LINES];
	char x_name[SW_SIM_TEXT], y_name[SW_SIM_TEXT];
	struct sw_svg_plot svg = {
		.title = *w->title ? w->title : p->measure->text,
		.x_name = x_name,
		.y_name = y_name,
		.x = p->x,
		.is_log = w->is_log,
		.n = p->n_x,
		.lines = lines,
		.n_lines = p->n_lines};
	FILE *f = fopen(path, "w");
	int err;

	snprintf(x_name, sizeof(x_name), "%s%s",
		*w->x_name ? w->x_name : p->file->axes[p->axis].key,
		*w->x_name ? "" : p->scale->name);
	if (*w->over)
		snprintf(y_name, sizeof(y_name), "times as fast as %.200s",
			w->over);
	else
		snprintf(y_name, sizeof(y_name), "%s, %s", p->measure->text,
			p->measure->unit_name);
	for (uint32_t i = 0; i < p->n_lines; i++)
		lines[i] = (struct sw_svg_line){
			p->names[i], p->y[i], is_curve(w, p->names[i])};
	err = f ? sw_svg_write(&svg, f) : SW_EIO;
	if (f && fclose(f))
		err = SW_EIO;
	if (err)
		fprintf(stderr, "sumwire-lab sim: %s cannot be written: %s\n",
			path, strerror(errno));
	return err;
}

const struct sw_sim_measure *sw_sim_measure_find(const char *name)
{
	uint32_t n = sizeof(measures) / sizeof(measures[0]), i = 0;

	while (i < n && strcmp(measures[i].name, name) != 0)
		i++;
	return i < n ? &measures[i] : NULL;
}

static int choose(struct plot *p)
{
	p->measure = sw_sim_measure_find(p->wanted->y);
	if (!p->measure) {
		fprintf(stderr, "sumwire-lab sim: --y %s is none of %s\n",
			p->wanted->y, SW_SIM_MEASURES);
		return SW_ECONF;
	}
	for (p->axis = 0; p->axis < p->file->n_axes; p->axis++) {
		p->scale = scale_of(p->file, p->axis);
		if (p->scale)
			return 0;
	}
	fprintf(stderr, "sumwire-lab sim: no key of the sweep has numbers "
			"alone, so there is nothing to plot along\n");
	return SW_ECONF;
}

int sw_sim_table_plot(const struct sw_sim_table *t,
	const struct sw_sim_file *file, const struct sw_sim_plot *plot,
	const char *path)
{
	struct plot *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return SW_ENOMEM;
	p->t = t;
	p->file = file;
	p->wanted = plot;
	err = choose(p);
	p->x = calloc((LINES + 1) * (size_t)file->n_points, sizeof(*p->x));
	for (uint32_t i = 0; i < LINES && p->x; i++)
		p->y[i] = p->x + (size_t)(i + 1) * file->n_points;
	if (!p->x && !err)
		err = SW_ENOMEM;
	if (!err) {
		take_x(p);
		if (!take_rows(p)) {
			fprintf(stderr,
				"sumwire-lab sim: more than %d lines "
				"in one plot\n",
				LINES);
			err = SW_ECONF;
		}
	}
	if (!err)
		err = write_plot(p, path);
	free(p->x);
	free(p);
	return err;
}
