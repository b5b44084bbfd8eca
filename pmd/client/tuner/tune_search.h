/* tune_search.h - search for the partition and credit of fast iterations.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Ask for a point, try it, and tell its time; repeat any number of times.  The
 * search covers both values, in bytes, together on a logarithmic scale (paper
 * 000, section 4.3).  No function here waits or reads a clock. */
#ifndef SW_PMD_CLIENT_TUNER_TUNE_SEARCH_H
#define SW_PMD_CLIENT_TUNER_TUNE_SEARCH_H

#include <stdint.h>

#include "pmd/client/tuner/tune_gp.h"

enum { SW_TUNE_GRID = 8 }; /* points of the grid per dimension */

struct sw_tune_point {
	uint64_t partition_bytes, credit_bytes;
};

struct sw_tune_space {
	struct sw_tune_point min, max; /* 1 <= min < max */
};

enum sw_tune_method {
	SW_TUNE_BO,     /* Bayesian optimisation */
	SW_TUNE_RANDOM, /* uniform */
	SW_TUNE_GRID_SEARCH,
	SW_TUNE_SGD, /* with momentum and restarts */
	SW_N_TUNE_METHODS,
};

struct sw_tune {
	enum sw_tune_method method;
	struct sw_tune_space space;
	uint64_t rng;
	uint32_t n;                           /* points told */
	double x[SW_GP_MAX][2], y[SW_GP_MAX]; /* the last points; log seconds */
	double asked[2];
	double best_x[2], best_y;
	double expected; /* gain expected from the asked point, as a share */
	struct sw_gp gp;
	/* SW_TUNE_SGD: tries @at itself, then a step in each dimension */
	double at[2], velocity[2], slope[2], at_y, last_y;
	uint32_t probe, n_stuck;
};

/* sw_tune_method_name - return "bo", …; NULL after the last. */
const char *sw_tune_method_name(uint32_t method);

/* sw_tune_init - begin without observations. */
void sw_tune_init(struct sw_tune *t, enum sw_tune_method method,
	const struct sw_tune_space *space, uint64_t seed);

/* sw_tune_ask - return the next point to try. */
struct sw_tune_point sw_tune_ask(struct sw_tune *t);

/* sw_tune_ask_at - make @p the next point to try, in place of the asked one. */
void sw_tune_ask_at(struct sw_tune *t, struct sw_tune_point p);

/* sw_tune_tell - report that the last point asked for took @iteration_s.
 * Errors: SW_EINVAL the time is not positive and finite; the point counts as
 * not tried. */
int sw_tune_tell(struct sw_tune *t, double iteration_s);

/* sw_tune_best - return the best point told so far, and its time. */
struct sw_tune_point sw_tune_best(const struct sw_tune *t, double *iteration_s);

/* sw_tune_grid_point - return point @i of the grid, i < SW_TUNE_GRID^2. */
struct sw_tune_point sw_tune_grid_point(
	const struct sw_tune_space *space, uint32_t i);

#endif
