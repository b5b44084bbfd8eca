/* table.h - the rows of a sweep: one for each point and job.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_LAB_SIM_TABLE_H
#define SW_APPS_LAB_SIM_TABLE_H

#include <stdio.h>

#include "apps/lab/sim/desc.h"
#include "apps/lab/sim/result.h"

enum sw_sim_column {
	SW_SIM_GOODPUT, /* bits per second */
	SW_SIM_ROUND,   /* ns: median, then the quartiles */
	SW_SIM_ROUND_LOW,
	SW_SIM_ROUND_HIGH,
	SW_SIM_URGENT,
	SW_SIM_URGENT_P99,
	SW_SIM_AGAIN, /* number of frames */
	SW_SIM_TIMEOUTS,
	SW_SIM_DROPPED,
	SW_SIM_LOST,
	SW_SIM_MARKED,
	SW_SIM_QUEUE, /* bytes */
	SW_SIM_COLUMNS
};

struct sw_sim_row {
	uint32_t point;
	char job[SW_SIM_NAME]; /* or the name of traffic */
	uint64_t values[SW_SIM_COLUMNS];
	bool has_failed;
};

struct sw_sim_table {
	struct sw_sim_row *rows;
	uint32_t n, size;
};

/* sw_sim_table_add - add the rows of a point. */
void sw_sim_table_add(
	struct sw_sim_table *t, uint32_t point, const struct sw_sim_result *r);

/* sw_sim_table_write - write the rows from @from on in the form that
 * sw_sim_table_read reads; from 0 also the head.
 * sw_sim_table_read - read the rows.  Returns 0, SW_ENOENT, or SW_ECONF if the
 * file belongs to another description. */
void sw_sim_table_write(const struct sw_sim_table *t, uint32_t from,
	const struct sw_sim_file *file, FILE *f);
int sw_sim_table_read(struct sw_sim_table *t, const struct sw_sim_file *file,
	const char *path);

/* sw_sim_table_sort - sort the rows by point. */
void sw_sim_table_sort(struct sw_sim_table *t);

/* sw_sim_table_print - print the table to stdout. */
void sw_sim_table_print(
	const struct sw_sim_table *t, const struct sw_sim_file *file);

/* A figure that can be plotted, by its name in --y. */
struct sw_sim_measure {
	const char *name;
	enum sw_sim_column column;
	double unit;
	const char *text, *unit_name;
	bool is_rate; /* more is better */
};

/* sw_sim_measure_find - find a measure by name, one of SW_SIM_MEASURES; NULL:
 * unknown. */
#define SW_SIM_MEASURES "goodput, round, urgent, wait, again, dropped, queue"

const struct sw_sim_measure *sw_sim_measure_find(const char *name);

/* A plot.  The text "" means the default. */
struct sw_sim_plot {
	const char *y, *title, *x_name;
	/* a selector: plot the ratio to the speed of these rows */
	const char *over;
	bool is_log; /* the x axis is logarithmic */
	/* Lines besides those of the rows: a value for each row of the table,
	 * in the base unit of @y; NAN: none. */
	const double *curves[SW_SIM_CURVES];
	const char *curve_names[SW_SIM_CURVES];
	uint32_t n_curves;
};

/* sw_sim_table_plot - plot over the first numeric axis, with a line for each
 * value of the other axes.  Errors: SW_ECONF, SW_EIO, reported on stderr. */
int sw_sim_table_plot(const struct sw_sim_table *t,
	const struct sw_sim_file *file, const struct sw_sim_plot *plot,
	const char *path);

void sw_sim_table_free(struct sw_sim_table *t);

#endif
