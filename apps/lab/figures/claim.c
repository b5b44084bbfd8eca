/* claim.c - compute the numbers of a paper's claims from rows.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/lab/figures/figure.h"
#include "apps/lab/sim/select.h"
#include "engine/base/error.h"

static const struct sw_sim_measure *measure_of(
	const struct sw_figure *f, const struct sw_sim_desc_claim *c)
{
	return sw_sim_measure_find(*c->y ? c->y : f->desc->figure.y);
}

/* Return the index of a curve; n_curves: unknown name. */
static uint32_t curve_of(const struct sw_figure *f, const char *name)
{
	uint32_t i = 0;

	while (i < f->desc->n_curves &&
		strcmp(f->desc->curves[i].label, name) != 0)
		i++;
	return i;
}

bool sw_figure_claim_check(const struct sw_figure *f, uint32_t i, char *why)
{
	const struct sw_sim_desc_claim *c = &f->desc->claims[i];
	bool has_curve = *c->curve;

	if (!measure_of(f, c)) {
		snprintf(why, SW_SIM_TEXT, "y: \"%.40s\" is none of %s", c->y,
			SW_SIM_MEASURES);
		return false;
	}
	if (has_curve && curve_of(f, c->curve) == f->desc->n_curves) {
		snprintf(why, SW_SIM_TEXT, "curve: there is no [curve %s]",
			c->curve);
		return false;
	}
	if ((c->show != SW_SIM_VALUE) != (has_curve || *c->over)) {
		snprintf(why, SW_SIM_TEXT,
			"over or curve is for ratio, gain and behind, which "
			"need one");
		return false;
	}
	return sw_sim_select_check(&f->file, c->of, why) &&
	       sw_sim_select_check(&f->file, c->over, why);
}

/* Return the number with which row @i is compared; NAN: none. */
static double base_of(const struct sw_figure *f,
	const struct sw_sim_desc_claim *c, const struct sw_sim_measure *m,
	uint32_t i)
{
	const struct sw_sim_row *row;

	if (*c->curve)
		return f->curves[curve_of(f, c->curve)][i];
	row = sw_sim_select_partner(
		&f->table, &f->file, &f->table.rows[i], c->over);
	return row ? (double)row->values[m->column] : NAN;
}

static double number_of(const struct sw_figure *f,
	const struct sw_sim_desc_claim *c, const struct sw_sim_measure *m,
	uint32_t i)
{
	double value = (double)f->table.rows[i].values[m->column], base;
	double faster;

	if (c->show == SW_SIM_VALUE)
		return value / m->unit;
	base = base_of(f, c, m, i);
	faster = m->is_rate ? value / base : base / value;
	if (c->show == SW_SIM_GAIN)
		return 100 * (faster - 1);
	if (c->show == SW_SIM_BEHIND) /* missing goodput, or added time */
		return 100 * (m->is_rate ? 1 - faster : 1 / faster - 1);
	return value / base;
}

int sw_figure_claim(
	const struct sw_figure *f, uint32_t i, struct sw_figure_claim *out)
{
	const struct sw_sim_desc_claim *c = &f->desc->claims[i];
	const struct sw_sim_measure *m = measure_of(f, c);

	*out = (struct sw_figure_claim){.low = INFINITY, .high = -INFINITY};
	out->unit = c->show == SW_SIM_VALUE   ? m->unit_name
		    : c->show == SW_SIM_RATIO ? ""
					      : "%";
	for (uint32_t r = 0; r < f->table.n; r++) {
		double n;

		if (!sw_sim_select_fits(&f->file, &f->table.rows[r], c->of))
			continue;
		n = number_of(f, c, m, r);
		if (isfinite(n)) {
			out->low = n < out->low ? n : out->low;
			out->high = n > out->high ? n : out->high;
		}
	}
	return isfinite(out->low) ? 0 : SW_ENOENT;
}

/* --- as text --- */

/* Format with three digits, but all digits before the point.  A percentage has
 * one decimal. */
static const char *format(
	const struct sw_figure_claim *c, double n, char out[24])
{
	bool is_percent = *c->unit == '%';

	if (fabs(n) < 0.05 && is_percent)
		n = 0;
	snprintf(out, 24, is_percent || fabs(n) >= 100 ? "%.*f" : "%.*g",
		is_percent       ? 1
		: fabs(n) >= 100 ? 0
				 : 3,
		n);
	return out;
}

const char *sw_figure_here(const struct sw_figure_claim *c, char out[64])
{
	const char *space = *c->unit ? " " : "";
	char low[24], high[24];

	format(c, c->low, low);
	format(c, c->high, high);
	if (!strcmp(low, high))
		snprintf(out, 64, "%s%s%s", low, space, c->unit);
	else
		snprintf(out, 64, "%s to %s%s%s", low, high, space, c->unit);
	return out;
}

/* Read one number, two numbers with "to" between them, or one after "at most".
 * Returns false for other text. */
static bool parse(const char *paper, double *low, double *high)
{
	const char *most = "at most ", *to = strstr(paper, " to ");
	bool is_most = !strncmp(paper, most, strlen(most));
	char *end;

	paper += is_most ? strlen(most) : 0;
	*low = *high = strtod(paper, &end);
	if (end == paper)
		return false;
	if (is_most)
		*low = -INFINITY;
	else if (to)
		*high = strtod(to + 4, NULL);
	return true;
}

static double apart(double here, double paper, bool is_percent)
{
	return is_percent ? here - paper : 100 * (here / paper - 1);
}

/* Compare our range with the paper's. Write by how much our range exceeds it
 * below and above.  If the paper has a single number, write how far both ends
 * of our range are from it. */
const char *sw_figure_deviation(
	const struct sw_figure_claim *c, const char *paper, char out[64])
{
	double low, high, below = 0, above = 0;
	bool is_percent = *c->unit == '%';
	const char *unit = is_percent ? "points" : "%";

	snprintf(out, 64, "–");
	if (!parse(paper, &low, &high))
		return out;
	if (c->low < low || low == high)
		below = apart(c->low, low, is_percent);
	if (c->high > high || low == high)
		above = apart(c->high, high, is_percent);
	if (fabs(below) < 0.05 && fabs(above) < 0.05)
		snprintf(out, 64, low < high ? "within" : "none");
	else if (fabs(below - above) < 0.05 || fabs(below) < 0.05)
		snprintf(out, 64, "%+.1f %s", above, unit);
	else if (fabs(above) < 0.05)
		snprintf(out, 64, "%+.1f %s", below, unit);
	else
		snprintf(out, 64, "%+.1f, %+.1f %s", below, above, unit);
	return out;
}
