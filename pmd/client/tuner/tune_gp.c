/* tune_gp.c - a Gaussian process over the unit square.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/client/tuner/tune_gp.h"

#include <math.h>
#include <string.h>

#include "engine/base/error.h"

static const double lengths[] = {0.15, 0.3, 0.6, 1.2, 2.4};
static const double noises[] = {1e-4, 1e-2};

enum {
	N_LENGTHS = sizeof(lengths) / sizeof(lengths[0]),
	N_NOISES = sizeof(noises) / sizeof(noises[0])
};

static double kernel(
	const double a[2], const double b[2], const double length[2])
{
	double d0 = (a[0] - b[0]) / length[0], d1 = (a[1] - b[1]) / length[1];
	double r = sqrt(5 * (d0 * d0 + d1 * d1));

	return (1 + r + r * r / 3) * exp(-r);
}

/* Factor the covariance for gp->length and gp->noise, solve for @y.  Returns
 * the logarithm of the likelihood but for a constant, or -INFINITY. */
static double factor(struct sw_gp *gp, const double *y)
{
	int32_t n = (int32_t)gp->n;
	double fit = 0;

	for (uint32_t i = 0; i < gp->n; i++)
		for (uint32_t j = 0; j <= i; j++)
			gp->chol[j * gp->n + i] =
				kernel(gp->x[i], gp->x[j], gp->length) +
				(i == j ? gp->noise : 0);
	if (gp->lapack->dpotrf(SW_LAPACK_COLUMNS, 'L', n, gp->chol, n))
		return -INFINITY;
	memcpy(gp->alpha, y, gp->n * sizeof(*y));
	if (gp->lapack->dpotrs(
		    SW_LAPACK_COLUMNS, 'L', n, 1, gp->chol, n, gp->alpha, n))
		return -INFINITY;
	for (uint32_t i = 0; i < gp->n; i++)
		fit -= y[i] * gp->alpha[i] / 2 + log(gp->chol[i * gp->n + i]);
	return fit;
}

/* Subtract the mean, divide by the standard deviation. */
static void standardize(struct sw_gp *gp, const double *y, double *out)
{
	double sum = 0, squares = 0;

	for (uint32_t i = 0; i < gp->n; i++)
		sum += y[i];
	gp->mean = sum / gp->n;
	for (uint32_t i = 0; i < gp->n; i++)
		squares += (y[i] - gp->mean) * (y[i] - gp->mean);
	gp->scale = sqrt(squares / gp->n);
	if (gp->scale < 1e-12)
		gp->scale = 1;
	for (uint32_t i = 0; i < gp->n; i++)
		out[i] = (y[i] - gp->mean) / gp->scale;
}

static void choose(struct sw_gp *gp, uint32_t i)
{
	gp->length[0] = lengths[i % N_LENGTHS];
	gp->length[1] = lengths[i / N_LENGTHS % N_LENGTHS];
	gp->noise = noises[i / N_LENGTHS / N_LENGTHS];
}

int sw_gp_fit(
	struct sw_gp *gp, const double (*x)[2], const double *y, uint32_t n)
{
	double z[SW_GP_MAX], best = -INFINITY;
	uint32_t best_i = 0;

	if (n == 0 || n > SW_GP_MAX)
		return SW_EINVAL;
	for (uint32_t i = 0; i < n; i++)
		if (!isfinite(y[i]) || !isfinite(x[i][0]) || !isfinite(x[i][1]))
			return SW_EINVAL;
	gp->n = n;
	memcpy(gp->x, x, n * sizeof(*x));
	standardize(gp, y, z);
	for (uint32_t i = 0; i < N_LENGTHS * N_LENGTHS * N_NOISES; i++) {
		double fit;

		choose(gp, i);
		fit = factor(gp, z);
		if (fit > best) {
			best = fit;
			best_i = i;
		}
	}
	choose(gp, best_i);
	return factor(gp, z) > -INFINITY ? 0 : SW_EINVAL;
}

void sw_gp_predict(
	const struct sw_gp *gp, const double x[2], double *mean, double *sd)
{
	int32_t n = (int32_t)gp->n;
	double k[SW_GP_MAX], v[SW_GP_MAX], m = 0, var = 1;

	for (uint32_t i = 0; i < gp->n; i++) {
		k[i] = v[i] = kernel(gp->x[i], x, gp->length);
		m += k[i] * gp->alpha[i];
	}
	gp->lapack->dtrtrs(
		SW_LAPACK_COLUMNS, 'L', 'N', 'N', n, 1, gp->chol, n, v, n);
	for (uint32_t i = 0; i < gp->n; i++)
		var -= v[i] * v[i];
	*mean = gp->mean + gp->scale * m;
	*sd = gp->scale * sqrt(fmax(var, 0));
}

double sw_gp_improvement(
	const struct sw_gp *gp, const double x[2], double best, double margin)
{
	double mean, sd, gain, z;

	sw_gp_predict(gp, x, &mean, &sd);
	gain = best - margin - mean;
	if (sd < 1e-9 * gp->scale)
		return 0;
	z = gain / sd;
	return gain * erfc(-z / M_SQRT2) / 2 +
	       sd * exp(-z * z / 2) / sqrt(2 * M_PI);
}
