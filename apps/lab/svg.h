/* svg.h - a plot of lines, as SVG.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_LAB_SVG_H
#define SW_APPS_LAB_SVG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct sw_svg_line {
	const char *name;
	const double *y; /* [plot.n]; values that are not finite are omitted */
	bool is_dashed;  /* for a formula */
};

struct sw_svg_plot {
	const char *title, *x_name, *y_name;
	const double *x; /* [n], ascending; above 0 if is_log */
	bool is_log;     /* the x axis is logarithmic */
	uint32_t n;
	const struct sw_svg_line *lines; /* at most 8 */
	uint32_t n_lines;
};

/* sw_svg_write - write the plot to @f.  The y axis begins at 0.  Points of a
 * line that is not dashed have marks.  Returns 0, or SW_EIO if the file did not
 * accept everything. */
int sw_svg_write(const struct sw_svg_plot *plot, FILE *f);

#endif
