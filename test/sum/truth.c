/* truth.c - check the reference itself, the fold kernels and the table.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "test/sum/truth.h"

#include "test/sum/arena.h"
#include "test/sum/data.h"

/* The parameters of a 16-bit float format. */
struct format {
	enum sw_dtype dtype;
	int frac_bits, min_exp;
	double inf_from; /* the smallest magnitude that rounds to infinity */
	uint16_t inf, nan;
};

static const struct format f16 = {SW_F16, 10, -14, 65520, 0x7c00, 0x7e00};
static const struct format bf16 = {
	SW_BF16, 7, -126, 0x1.ffp127, 0x7f80, 0x7fc0};

static double number(const struct format *f, uint16_t h)
{
	int exp = (h & 0x7fff) >> f->frac_bits;
	int frac = h & ((1 << f->frac_bits) - 1);
	double x = exp ? ldexp((1 << f->frac_bits) + frac,
				 exp - 1 + f->min_exp - f->frac_bits)
		       : ldexp(frac, f->min_exp - f->frac_bits);

	return h & 0x8000 ? -x : x;
}

static uint16_t rounded(const struct format *f, float x)
{
	uint16_t sign = signbit(x) ? 0x8000 : 0;
	double mag = fabs((double)x), ulp;
	int exp;

	if (isnan(x))
		return f->nan;
	if (mag >= f->inf_from)
		return sign | f->inf;
	frexp(mag, &exp);
	exp = exp - 1 < f->min_exp || mag == 0 ? f->min_exp : exp - 1;
	ulp = ldexp(1, exp - f->frac_bits);
	/* rint rounds ties to even, and ulps are numbered across exponents. */
	return sign | (uint16_t)(rint(mag / ulp) +
				 ((exp - f->min_exp) << f->frac_bits));
}

static bool widen_is_right(const struct sw_sum *sum, const struct format *f)
{
	for (uint32_t h = 0; h < 65536; h++) {
		uint16_t in = (uint16_t)h;
		float x;

		sum->ops[f->dtype].put(&x, &in, 1);
		if ((h & 0x7fff) > f->inf ? !isnan(x)
			: (h & 0x7fff) == f->inf
				? x != (h & 0x8000 ? -INFINITY : INFINITY)
				: x != number(f, in) ||
					  !signbit(x) != !(h >> 15)) {
			printf("# %s widens 0x%04x to %a\n", sum->name, h, x);
			return false;
		}
	}
	return true;
}

static bool round_is_right(
	const struct sw_sum *sum, const struct format *f, uint32_t bits)
{
	uint16_t want[6], got[6];
	float x[6];

	for (uint32_t i = 0; i < 6; i++) {
		uint32_t u = bits + (i % 3) - 1 + i / 3 * 0x80000000;

		memcpy(&x[i], &u, 4);
		want[i] = rounded(f, x[i]);
	}
	sum->ops[f->dtype].round(got, x, 6);
	if (!memcmp(got, want, sizeof(got)))
		return true;
	printf("# %s rounds around 0x%08x to 0x%04x, not 0x%04x\n", sum->name,
		bits, got[1], want[1]);
	return false;
}

/* Try f32 numbers half an ulp of the format apart, and their two neighbours. */
static bool rounds_are_right(const struct sw_sum *sum, const struct format *f)
{
	for (uint32_t h = 0; h < f->inf; h++) {
		double a = number(f, (uint16_t)h);
		double b = h + 1 < f->inf ? number(f, (uint16_t)(h + 1))
					  : f->inf_from * 2 - a;
		float at[2] = {(float)a, (float)((a + b) / 2)};

		for (uint32_t i = 0; i < 2; i++) {
			uint32_t bits;

			memcpy(&bits, &at[i], 4);
			if (!round_is_right(sum, f, bits))
				return false;
		}
	}
	/* Also try every 10007th f32 number, NaN included; 10007 is prime. */
	for (uint32_t bits = 1; bits < 0x7fffffff - 10007; bits += 10007)
		if (!round_is_right(sum, f, bits))
			return false;
	return true;
}

bool truth_f16(const struct sw_sum *sum)
{
	return widen_is_right(sum, &f16) && rounds_are_right(sum, &f16);
}

bool truth_bf16(const struct sw_sum *sum)
{
	return widen_is_right(sum, &bf16) && rounds_are_right(sum, &bf16);
}

/* Operands and results as bits; for f16 and bf16 the bits of the
 * accumulator. */
static const struct {
	char op; /* + < > * & | ^ */
	enum sw_dtype dtype;
	uint64_t acc, src, want;
} cases[] = {
	{'+', SW_F32, 0x3f800000, 0x40000000, 0x40400000},
	{'+', SW_F32, 0x80000000, 0x80000000, 0x80000000},
	{'+', SW_F32, 0x80000000, 0, 0},
	{'+', SW_F32, 1, 1, 2},
	{'+', SW_F32, 0x00800000, 0x80000001, 0x007fffff},
	{'+', SW_F32, 0x7f7fffff, 0x7f7fffff, 0x7f800000},
	{'+', SW_F32, 0x7f800000, 0xff800000, 0x7fc00000},
	{'+', SW_F32, 0xffc12345, 0x3f800000, 0x7fc00000},
	{'+', SW_F32, 0x3f800000, 0x7f800001, 0x7fc00000},
	{'+', SW_F64, 0x3ff0000000000000, 0x3ff0000000000000,
		0x4000000000000000},
	{'+', SW_F64, 0x7ff0000000000000, 0xfff0000000000000,
		0x7ff8000000000000},
	{'+', SW_F16, 0, 1, 0x33800000},
	{'+', SW_F16, 0x477fe000, 0x7bff, 0x47ffe000},
	{'+', SW_F16, 0, 0x7c01, 0x7fc00000},
	{'+', SW_BF16, 0, 1, 0x00010000},
	{'+', SW_U8, 200, 100, 44},
	{'+', SW_I8, 100, 100, 200},
	{'+', SW_I32, 0x7fffffff, 1, 0x80000000},
	{'+', SW_I64, 0x7fffffffffffffff, 1, 0x8000000000000000},
	{'+', SW_BOOL, 1, 1, 1},
	{'+', SW_BOOL, 0, 1, 1},
	{'<', SW_F32, 0, 0x80000000, 0x80000000},
	{'>', SW_F32, 0x80000000, 0, 0},
	{'<', SW_F32, 0x7fc12345, 0, 0x7fc00000},
	{'>', SW_F32, 0x3f800000, 0xff812345, 0x7fc00000},
	{'>', SW_F64, 0xbff0000000000000, 0xc000000000000000,
		0xbff0000000000000},
	{'<', SW_F16, 0, 0xfc00, 0xff800000},
	{'<', SW_U8, 200, 100, 100},
	{'<', SW_I8, 200, 100, 200},
	{'>', SW_I32, 0x80000000, 1, 1},
	{'<', SW_I64, 0x8000000000000000, 1, 0x8000000000000000},
	{'*', SW_F32, 0x40400000, 0xc0000000, 0xc0c00000},
	{'*', SW_F32, 0, 0x7f800000, 0x7fc00000},
	{'*', SW_F32, 0xff812345, 0x3f800000, 0x7fc00000},
	{'*', SW_F64, 0x4008000000000000, 0x8000000000000000,
		0x8000000000000000},
	{'*', SW_F16, 0x477fe000, 0x7bff, 0x4f7fc004},
	{'*', SW_BF16, 0x40400000, 0x4040, 0x41100000},
	{'*', SW_U8, 200, 3, 88},
	{'*', SW_I8, 0x80, 0xff, 0x80},
	{'*', SW_I32, 0x10001, 0x10001, 0x20001},
	{'*', SW_I64, 0xffffffffffffffff, 3, 0xfffffffffffffffd},
	{'*', SW_BOOL, 1, 0, 0},
	{'*', SW_BOOL, 1, 1, 1},
	{'&', SW_U8, 0xcc, 0xaa, 0x88},
	{'|', SW_I8, 0xcc, 0xaa, 0xee},
	{'^', SW_I32, 0xffff0000, 0xff00ff00, 0xffff00},
	{'&', SW_I64, 0xffffffff00000000, 0xf0000000f, 0xf00000000},
	{'^', SW_BOOL, 1, 1, 0},
};

/* Scaling multiplies 64 by 53 bits and rounds once. */
static bool i64_scales_are_right(const struct sw_sum *sum)
{
	static const int64_t odd = ((int64_t)1 << 53) + 1;
	static const struct {
		int64_t v;
		double factor;
		int64_t want;
	} cases_64[] = {
		{odd, 1, odd},
		{-odd, 1, -odd},
		{odd, 2, 2 * odd},
		{odd, -3, -3 * odd},
		{odd, 0.5, (odd - 1) / 2},     /* a tie, to even */
		{odd + 2, 0.5, (odd + 3) / 2}, /* the same */
		{-odd - 2, 0.5, (-odd - 3) / 2},
		{odd, 1.5, (int64_t)1 << 53 | 1LL << 52 | 2},
		{INT64_MAX, 0.25, (int64_t)1 << 61},
		{INT64_MAX, 1, INT64_MAX},
		{INT64_MIN, 1, INT64_MIN},
		{INT64_MIN, -1, INT64_MAX},
		{INT64_MAX, -1, -INT64_MAX},
		{INT64_MAX, 1 + 0x1p-52, INT64_MAX},
		{INT64_MIN, 2, INT64_MIN},
		{5, 0x1p61, INT64_MAX},
		{1, 0x1p62, (int64_t)1 << 62},
		{-1, 0x1p63, INT64_MIN},
		{1, 0x1p63, INT64_MAX},
		{-1, 1e300, INT64_MIN},
		{INT64_MAX, 0x1p-63, 1},
		{INT64_MAX, 0x1p-64, 0},
		{INT64_MIN, 0x1p-64, 0}, /* a tie */
		{INT64_MIN, 3 * 0x1p-65, -1},
		{INT64_MIN, 1e-300, 0},
		{INT64_MAX, 0x1p-1074, 0},
		{5, INFINITY, INT64_MAX},
		{-5, INFINITY, INT64_MIN},
		{5, -INFINITY, INT64_MIN},
		{0, INFINITY, 0},
		{5, NAN, 0},
		{5, 0, 0},
	};

	for (size_t i = 0; i < sizeof(cases_64) / sizeof(cases_64[0]); i++) {
		int64_t v = cases_64[i].v;

		sum->ops[SW_I64].scale(&v, &v, cases_64[i].factor, 1);
		if (v == cases_64[i].want)
			continue;
		printf("# %s i64 scale %zu: %lld\n", sum->name, i,
			(long long)v);
		return false;
	}
	return true;
}

static bool scales_are_right(const struct sw_sum *sum)
{
	int32_t i[4] = {3, 5, -7, INT32_MAX}, want_i[4] = {2, 2, -4, 1 << 30};
	uint8_t u[2] = {200, 3}, want_u[2] = {255, 6};
	int64_t l[2] = {INT64_MAX, INT64_MIN};
	float f[2] = {3, -0.0f}, want_f[2] = {1.5f, -0.0f}, acc = 196560;
	uint16_t half;

	sum->ops[SW_I32].scale(i, i, 0.5, 4);
	sum->ops[SW_U8].scale(u, u, 2, 2);
	sum->ops[SW_I64].scale(l, l, 1, 2);
	sum->ops[SW_F32].scale(f, f, 0.5, 2);
	/* a third of acc is the tie between the largest f16 and infinity */
	sum->ops[SW_F16].round_scale(&half, &acc, 0.25, 1);
	return !memcmp(i, want_i, sizeof(i)) && !memcmp(u, want_u, sizeof(u)) &&
	       l[0] == INT64_MAX && l[1] == INT64_MIN &&
	       !memcmp(f, want_f, sizeof(f)) && half == 0x7a00;
}

static bool divides_are_right(const struct sw_sum *sum)
{
	int8_t i[3] = {-7, 7, -128}, want_i[3] = {-3, 3, -64};
	uint8_t u = 255;
	int64_t l[2] = {INT64_MIN, INT64_MAX};
	float f[2] = {1, -INFINITY}, third = 1.0f / 3;
	double d = 1;
	uint32_t bits = 0xffc12345;

	sum->ops[SW_I8].divide(i, i, 2, 3);
	sum->ops[SW_U8].divide(&u, &u, 200, 1);
	sum->ops[SW_I64].divide(l, l, 3, 2);
	sum->ops[SW_BF16].divide(f, f, 3, 2);
	sum->ops[SW_F64].divide(&d, &d, 3, 1);
	sum->ops[SW_F32].divide(&bits, &bits, 1, 1);
	return !memcmp(i, want_i, sizeof(i)) && u == 1 &&
	       l[0] == INT64_MIN / 3 && l[1] == INT64_MAX / 3 &&
	       f[0] == third && f[1] == -INFINITY && d == 1.0 / 3 &&
	       bits == 0x7fc00000 && !sum->ops[SW_BOOL].divide;
}

/* A double holds the quotient exactly, so its conversion rounds once. */
static bool halves_are_right(const struct sw_sum *sum)
{
	const float values[] = {3 * FLT_TRUE_MIN, FLT_TRUE_MIN, -5 * FLT_MIN,
		FLT_MAX, 1.0f / 3, -0.0f, -INFINITY};
	enum { N = sizeof(values) / sizeof(values[0]) };

	for (uint32_t by = 1; by; by *= 2) {
		float got[N], want[N];

		for (int i = 0; i < N; i++)
			want[i] = (float)((double)values[i] / by);
		sum->ops[SW_F32].divide(got, values, by, N);
		if (memcmp(got, want, sizeof(got))) {
			printf("# %s f32 divide by %u\n", sum->name, by);
			return false;
		}
	}
	return true;
}

typedef void fold_fn(void *acc, const void *src, size_t n);

static fold_fn *fold_of(const struct sw_sum_ops *ops, char op)
{
	switch (op) {
	case '+':
		return ops->add;
	case '<':
		return ops->min;
	case '>':
		return ops->max;
	case '*':
		return ops->mul;
	case '&':
		return ops->band;
	case '|':
		return ops->bor;
	default:
		return ops->bxor;
	}
}

bool truth_cases(const struct sw_sum *sum)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct sw_sum_ops *ops = &sum->ops[cases[i].dtype];
		uint64_t acc = cases[i].acc, src = cases[i].src;

		fold_of(ops, cases[i].op)(&acc, &src, 1);
		if (acc != cases[i].want) {
			printf("# %s %c case %zu: 0x%llx\n", sum->name,
				cases[i].op, i, (unsigned long long)acc);
			return false;
		}
	}
	return scales_are_right(sum) && i64_scales_are_right(sum) &&
	       divides_are_right(sum) && halves_are_right(sum);
}

bool truth_fold(const struct sw_sum *sum)
{
	const struct sw_sum_ops *ops = &sum->ops[SW_F16];
	uint16_t src[1000];
	float acc[1000] = {0}, sums[1000] = {0}, before[1000];
	uint32_t crc;

	for (uint32_t i = 0; i < 1000; i++)
		src[i] = (uint16_t)(i * 31);
	crc = sw_crc32c(0, src, sizeof(src));
	ops->put(sums, src, 1000);
	if (!sw_sum_fold(ops, ops->put, acc, src, 1000, crc) ||
		memcmp(acc, sums, sizeof(acc)))
		return false;
	ops->add(sums, src, 1000);
	if (!sw_sum_fold(ops, ops->add, acc, src, 1000, crc) ||
		memcmp(acc, sums, sizeof(acc)))
		return false;
	memcpy(before, acc, sizeof(acc));
	src[999] ^= 1;
	return !sw_sum_fold(ops, ops->add, acc, src, 1000, crc) &&
	       !memcmp(acc, before, sizeof(acc)) &&
	       sw_sum_fold(ops, ops->add, acc, src, 0, 0) &&
	       !memcmp(acc, before, sizeof(acc));
}

bool truth_table(void)
{
	const struct sw_sum *row, *best = NULL;
	bool runs;

	for (uint32_t i = 0; (row = sw_sum_row(i, &runs)); i++) {
		if (sw_sum_find(row->name) != (runs ? row : NULL))
			return false;
		if (best && row->level <= best->level)
			return false;
		if (runs)
			best = row;
		if (sw_sum_best(row->level) != best)
			return false;
	}
	return best && sw_sum_find("auto") == best && !sw_sum_find("avx") &&
	       !sw_sum_find("");
}
