/* means.c - means over the seeds of a sweep, with confidence intervals.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/sim/means.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STUDENT = 30 };

/* Return Student's t for 97.5 %, by degrees of freedom.  Beyond the table,
 * return an approximation that is correct to three digits. */
static double student(uint32_t df)
{
	static const double t[STUDENT] = {12.706, 4.303, 3.182, 2.776, 2.571,
		2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
		2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069,
		2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};

	return df <= STUDENT ? t[df - 1] : 1.960 + 2.46 / df;
}

/* Return the distance between points that differ only in their seed; 0: one
 * seed.  Sets *@seed to the axis. */
static uint32_t step_of(const struct sw_sim_file *f, uint32_t *seed)
{
	uint32_t step = 1;

	for (uint32_t i = f->n_axes; i--; step *= f->axes[i].n) {
		*seed = i;
		if (!strcmp(f->axes[i].section, "run") &&
			!strcmp(f->axes[i].key, "seed"))
			return step;
	}
	return 0;
}

struct sums {
	uint32_t n;
	double sum[SW_SIM_COLUMNS], squares[SW_SIM_COLUMNS];
};

/* Add in two passes, since the squares are of distances from the mean. */
static void add(const struct sw_sim_table *t, const struct sw_sim_row *first,
	uint32_t n_seeds, uint32_t step, struct sums *s)
{
	memset(s, 0, sizeof(*s));
	for (uint32_t pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < t->n; i++) {
			const struct sw_sim_row *r = &t->rows[i];
			uint32_t at = r->point - first->point;

			if (r->point < first->point || at % step ||
				at / step >= n_seeds || r->has_failed ||
				strcmp(r->job, first->job) != 0)
				continue;
			s->n += !pass;
			for (uint32_t c = 0; c < SW_SIM_COLUMNS; c++) {
				double x = (double)r->values[c];
				double far = pass ? x - s->sum[c] / s->n : 0;

				s->sum[c] += pass ? 0 : x;
				s->squares[c] += far * far;
			}
		}
}

static void print(const struct sums *s, enum sw_sim_column c, double unit)
{
	double n = s->n ? s->n : 1;
	double half =
		s->n > 1 ? student(s->n - 1) * sqrt(s->squares[c] / (n - 1) / n)
			 : NAN;

	printf(" %10.3f %8.3f", s->sum[c] / n / unit, half / unit);
}

void sw_sim_means_print(
	const struct sw_sim_table *t, const struct sw_sim_file *f)
{
	char value[SW_SIM_TEXT];
	uint32_t seed = 0, step = step_of(f, &seed);

	if (!step)
		return;
	printf("\nmeans over seeds, and half of their 95 %% interval\n");
	for (uint32_t a = 0; a < f->n_axes; a++)
		if (a != seed)
			printf("%-14.14s ", f->axes[a].key);
	printf("%-10s %5s %10s %8s %10s %8s %10s %8s %10s %8s %10s %8s\n",
		"name", "seeds", "Gb/s", "+-", "round ms", "+-", "urgent ms",
		"+-", "again", "+-", "dropped", "+-");
	for (uint32_t i = 0; i < t->n; i++) {
		const struct sw_sim_row *r = &t->rows[i];
		struct sums s;

		if (r->point / step % f->axes[seed].n)
			continue;
		add(t, r, f->axes[seed].n, step, &s);
		for (uint32_t a = 0; a < f->n_axes; a++)
			if (a != seed)
				printf("%-14.14s ", sw_sim_axis_value(f, a,
							    r->point, value));
		printf("%-10.10s %5u", r->job, s.n);
		print(&s, SW_SIM_GOODPUT, 1e9);
		print(&s, SW_SIM_ROUND, 1e6);
		print(&s, SW_SIM_URGENT, 1e6);
		print(&s, SW_SIM_AGAIN, 1);
		print(&s, SW_SIM_DROPPED, 1);
		putchar('\n');
	}
}
