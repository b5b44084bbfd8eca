/* accuracy.c - sum f16 and bf16 of 64 workers in f32 and round once; TAP.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Each element's error against f64 must stay within half an ulp of the result
 * plus 63 x 2^-24 x the sum of magnitudes. For comparison a TAP comment shows
 * the error of rounding after every worker. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "sum/sum.h"
#include "test/sum/data.h"

enum { WORKERS = 64, N = 16384 };

struct errors {
	double worst_of_bound; /* largest error / allowed error */
	double relative;       /* root of mean square, error / sum */
};

struct state {
	double sum[N], magnitudes[N];
	float acc[N], wide[N], stepwise[N];
	uint16_t grad[N], out[N];
};

/* Return a nearly normal number with standard deviation 1: the sum of twelve
 * uniform ones. */
static double bell(uint64_t *seed)
{
	double x = -6;

	for (int i = 0; i < 12; i++)
		x += (double)(random_u64(seed) >> 11) * 0x1p-53;
	return x;
}

static double ulp_of(enum sw_dtype dtype, double x)
{
	int frac_bits = dtype == SW_F16 ? 10 : 7;
	int min_exp = dtype == SW_F16 ? -14 : -126, exp;

	frexp(x, &exp);
	exp = exp - 1 < min_exp || x == 0 ? min_exp : exp - 1;
	return ldexp(1, exp - frac_bits);
}

static struct errors errors_of(
	const struct state *s, enum sw_dtype dtype, const float *got)
{
	struct errors e = {0};
	double squares = 0, error_squares = 0;

	for (uint32_t i = 0; i < N; i++) {
		double error = fabs(got[i] - s->sum[i]);
		double bound = ulp_of(dtype, got[i]) / 2 +
			       (WORKERS - 1) * 0x1p-24 * s->magnitudes[i];

		e.worst_of_bound = fmax(e.worst_of_bound, error / bound);
		squares += s->sum[i] * s->sum[i];
		error_squares += error * error;
	}
	e.relative = sqrt(error_squares / squares);
	return e;
}

static void print(const char *what, const struct sw_sum *sum,
	enum sw_dtype dtype, double size, const struct errors *e)
{
	printf("# %-6s %-5s %5.0e  %-18s %14.2e %20.2f\n", sum->name,
		sw_dtype_name(dtype), size, what, e->relative,
		e->worst_of_bound);
}

/* Return true if every element is within the bound. */
static bool measure(struct state *s, const struct sw_sum *sum,
	enum sw_dtype dtype, double size)
{
	const struct sw_sum_ops *ops = &sum->ops[dtype];
	struct errors once, each;
	uint64_t seed = dtype;

	for (uint32_t i = 0; i < N; i++)
		s->sum[i] = s->magnitudes[i] = s->acc[i] = s->stepwise[i] = 0;
	for (uint32_t w = 0; w < WORKERS; w++) {
		for (uint32_t i = 0; i < N; i++)
			s->wide[i] = (float)(bell(&seed) * size);
		ops->round(s->grad, s->wide, N);
		ops->put(s->wide, s->grad, N);
		for (uint32_t i = 0; i < N; i++) {
			s->sum[i] += s->wide[i];
			s->magnitudes[i] += fabsf(s->wide[i]);
		}
		ops->add(s->acc, s->grad, N);
		ops->add(s->stepwise, s->grad, N);
		ops->round(s->out, s->stepwise, N);
		ops->put(s->stepwise, s->out, N);
	}
	ops->round(s->out, s->acc, N);
	ops->put(s->wide, s->out, N);
	once = errors_of(s, dtype, s->wide);
	each = errors_of(s, dtype, s->stepwise);
	print("once", sum, dtype, size, &once);
	print("after every worker", sum, dtype, size, &each);
	return once.worst_of_bound <= 1;
}

int main(void)
{
	static const double sizes[] = {1e-6, 1e-3, 1};
	static const enum sw_dtype dtypes[] = {SW_F16, SW_BF16};
	const struct sw_sum *sum = sw_sum_best(SW_SUM_AVX512);
	struct state *s = malloc(sizeof(*s));
	int n = 0, n_failed = 0;

	if (!s)
		return 1;
	printf("# %d workers, %d elements each\n"
	       "# level  dtype  size  rounded             relative error  "
	       "worst error / bound\n",
		WORKERS, N);
	for (uint32_t d = 0; d < 2; d++) {
		for (uint32_t i = 0; i < 3; i++) {
			bool is_ok = measure(s, sum, dtypes[d], sizes[i]);

			n_failed += !is_ok;
			printf("%sok %d - %s gradients of size %.0e\n",
				is_ok ? "" : "not ", ++n,
				sw_dtype_name(dtypes[d]), sizes[i]);
		}
	}
	printf("1..%d\n", n);
	free(s);
	return n_failed != 0;
}
