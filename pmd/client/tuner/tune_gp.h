/* tune_gp.h - a Gaussian process over the unit square.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Matern 5/2 kernel with a length scale per dimension.  sw_gp_fit chooses
 * lengths and noise from a small grid to maximize the likelihood of the
 * observations (Rasmussen and Williams 2006, algorithm 2.1). */
#ifndef SW_PMD_CLIENT_TUNER_TUNE_GP_H
#define SW_PMD_CLIENT_TUNER_TUNE_GP_H

#include <stdint.h>

enum { SW_GP_MAX = 64 }; /* observations */

struct sw_gp {
	uint32_t n;
	double x[SW_GP_MAX][2];
	double mean, scale;      /* of the observations */
	double length[2], noise; /* noise is of a standardized observation */
	double chol[SW_GP_MAX *
		    SW_GP_MAX]; /* lower, column by column, n rows */
	double alpha[SW_GP_MAX];
};

/* sw_gp_fit - fit to @n observations (1 to SW_GP_MAX).  Errors: SW_EINVAL @n is
 * invalid, or a number is not finite. */
int sw_gp_fit(
	struct sw_gp *gp, const double (*x)[2], const double *y, uint32_t n);

/* sw_gp_predict - predict mean and standard deviation of the function at @x. */
void sw_gp_predict(
	const struct sw_gp *gp, const double x[2], double *mean, double *sd);

/* sw_gp_improvement - return the expected improvement at @x: how far the
 * function is below @best - @margin on average, counting 0 where it is not
 * (Jones, Schonlau and Welch 1998; the margin as in Brochu et al.  2010). */
double sw_gp_improvement(
	const struct sw_gp *gp, const double x[2], double best, double margin);

#endif
