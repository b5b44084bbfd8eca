/* tune_gp.c - a Gaussian process over the unit square.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/client/tuner/tune_gp.h"

#include <math.h>
#include <stdbool.h>
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

/* Replace the lower triangle of @a by the factor L of L L^T = @a (Golub and Van
 * Loan, Matrix Computations, algorithm 4.2.1).  @a has @n columns of @n
 * elements. Returns false if @a is not positive definite. */
static bool cholesky(double *a, uint32_t n)
{
	for (uint32_t j = 0; j < n; j++) {
		double *column = a + j * n;

		for (uint32_t k = 0; k < j; k++)
			for (uint32_t i = j; i < n; i++)
				column[i] -= a[k * n + i] * a[k * n + j];
		if (!(column[j] > 0))
			return false;
		column[j] = sqrt(column[j]);
		for (uint32_t i = j + 1; i < n; i++)
			column[i] /= column[j];
	}
	return true;
}

/* Solve L x = b in place, with L from cholesky. */
static void solve_lower(const double *l, uint32_t n, double *b)
{
	for (uint32_t j = 0; j < n; j++) {
		b[j] /= l[j * n + j];
		for (uint32_t i = j + 1; i < n; i++)
			b[i] -= l[j * n + i] * b[j];
	}
}

/* Solve L^T x = b in place. */
static void solve_upper(const double *l, uint32_t n, double *b)
{
	for (uint32_t j = n; j--;) {
		for (uint32_t i = j + 1; i < n; i++)
			b[j] -= l[j * n + i] * b[i];
		b[j] /= l[j * n + j];
	}
}

/* Factor the covariance for gp->length and gp->noise, solve for @y. Returns the
 * logarithm of the likelihood without its constant, or -INFINITY. */
static double factor(struct sw_gp *gp, const double *y)
{
	double fit = 0;

	for (uint32_t i = 0; i < gp->n; i++)
		for (uint32_t j = 0; j <= i; j++)
			gp->chol[j * gp->n + i] =
				kernel(gp->x[i], gp->x[j], gp->length) +
				(i == j ? gp->noise : 0);
	if (!cholesky(gp->chol, gp->n))
		return -INFINITY;
	memcpy(gp->alpha, y, gp->n * sizeof(*y));
	solve_lower(gp->chol, gp->n, gp->alpha);
	solve_upper(gp->chol, gp->n, gp->alpha);
	for (uint32_t i = 0; i < gp->n; i++)
		fit -= y[i] * gp->alpha[i] / 2 + log(gp->chol[i * gp->n + i]);
	return fit;
}

/* Subtract the mean from @y, then divide by the standard deviation. */
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
	double k[SW_GP_MAX], v[SW_GP_MAX], m = 0, var = 1;

	for (uint32_t i = 0; i < gp->n; i++) {
		k[i] = v[i] = kernel(gp->x[i], x, gp->length);
		m += k[i] * gp->alpha[i];
	}
	solve_lower(gp->chol, gp->n, v);
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
