/* proc_element.h - contributions to a collective, and the expected result.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Integers are computed with the same arithmetic and compared exactly; floats
 * are compared with a result in f64.
 */
#ifndef SW_TEST_PROC_PROC_ELEMENT_H
#define SW_TEST_PROC_PROC_ELEMENT_H

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "sum/half.h"
#include <sumwire/coll.h>

/* A call, the same at all ranks of its group, and this rank's place. */
struct proc_call {
	struct sw_coll_args args;
	uint64_t number;       /* seeds every value */
	const uint32_t *ranks; /* ranks of the group */
	uint32_t n, me;
};

/* --- elements --- */

static inline bool is_float(enum sw_dtype d)
{
	return d == SW_F32 || d == SW_F64 || d == SW_F16 || d == SW_BF16;
}

/* Return the distance from 1 to the next number. */
static inline double ulp_of(enum sw_dtype d)
{
	return d == SW_F32   ? 0x1p-23
	       : d == SW_F64 ? 0x1p-52
	       : d == SW_F16 ? 0x1p-10
			     : 0x1p-7;
}

static inline void put_float(enum sw_dtype d, double v, void *out)
{
	float f = (float)v;
	uint16_t half = d == SW_F16 ? sw_f16_round(f) : sw_bf16_round(f);

	if (d == SW_F64)
		memcpy(out, &v, sizeof(v));
	else if (d == SW_F32)
		memcpy(out, &f, sizeof(f));
	else
		memcpy(out, &half, sizeof(half));
}

static inline double get_float(enum sw_dtype d, const void *p)
{
	uint16_t half;
	double v;
	float f;

	memcpy(&half, p, sizeof(half));
	if (d == SW_F16)
		return sw_f16_widen(half);
	if (d == SW_BF16)
		return sw_bf16_widen(half);
	memcpy(&f, p, sizeof(f));
	if (d == SW_F32)
		return f;
	memcpy(&v, p, sizeof(v));
	return v;
}

/* Return a value wrapped to the type, as a number. */
static inline int64_t wrapped(enum sw_dtype d, uint64_t v)
{
	switch (d) {
	case SW_U8:
	case SW_BOOL:
		return (uint8_t)v;
	case SW_I8:
		return (int8_t)v;
	case SW_I32:
		return (int32_t)v;
	default:
		return (int64_t)v;
	}
}

static inline int64_t get_int(enum sw_dtype d, const void *p)
{
	uint64_t v = 0;

	memcpy(&v, p, sw_dtype_bytes(d));
	return wrapped(d, v);
}

/* Write @rank's element @i, counted through all parts. */
static inline void give(
	const struct proc_call *k, uint32_t rank, uint64_t i, void *out)
{
	uint64_t v = (i + (k->number << 36)) * 0x9e3779b97f4a7c15ULL +
		     rank * 0xbf58476d1ce4e5b9ULL;

	v ^= v >> 31;
	if (is_float(k->args.dtype)) {
		put_float(k->args.dtype, (double)(v % 4001) / 1000 - 2, out);
		return;
	}
	if (k->args.dtype == SW_BOOL)
		v &= 1;
	if (k->args.op == SW_PREMUL_SUM)
		v %= 10; /* so that a factor does not wrap */
	memcpy(out, &v, sw_dtype_bytes(k->args.dtype));
}

static inline double factor_of(const struct proc_call *k, uint32_t rank)
{
	return is_float(k->args.dtype) ? 0.3 * (rank % 8 + 1) : rank + 1;
}

/* --- the expected result --- */

static inline long double fold_floats(
	enum sw_reduce_op op, long double a, double b)
{
	return op == SW_MIN    ? fminl(a, b)
	       : op == SW_MAX  ? fmaxl(a, b)
	       : op == SW_PROD ? a * b
			       : a + b;
}

static inline bool is_right_float(
	const struct proc_call *k, uint64_t i, const void *got)
{
	enum sw_reduce_op op = k->args.op;
	double size = 0, least = 0, x;
	long double want = 0;
	uint64_t element;

	for (uint32_t r = 0; r < k->n; r++) {
		give(k, k->ranks[r], i, &element);
		x = get_float(k->args.dtype, &element);
		x *= op == SW_PREMUL_SUM ? factor_of(k, k->ranks[r]) : 1;
		want = r ? fold_floats(op, want, x) : x;
		size += fabs(x);
	}
	if (op == SW_AVG) {
		want /= k->n;
		size /= k->n;
	}
	if (op == SW_MIN || op == SW_MAX)
		size = 0;
	if (op == SW_PROD)
		size = fabsl(want);
	/* f16 has no smaller number. A product over local ranks may be that
	 * small, and other ranks then multiply it by factors up to 2. */
	if (k->args.dtype == SW_F16 && size > 0)
		least = op == SW_PROD ? ldexp(0x1p-24, (int)k->n - 1) : 0x1p-24;
	/* Half an ulp for each addition, for a factor and for its product. */
	return fabsl(get_float(k->args.dtype, got) - want) <=
	       size * ulp_of(k->args.dtype) * fmax(2, (k->n + 1) / 2.0) + least;
}

static inline uint64_t fold_ints(
	const struct proc_call *k, uint64_t a, uint64_t b)
{
	bool is_bool = k->args.dtype == SW_BOOL;

	switch (k->args.op) {
	case SW_MIN:
		return (int64_t)a < (int64_t)b ? a : b;
	case SW_MAX:
		return (int64_t)a > (int64_t)b ? a : b;
	case SW_PROD:
		return a * b;
	case SW_BAND:
		return a & b;
	case SW_BOR:
		return a | b;
	case SW_BXOR:
		return a ^ b;
	default:
		return is_bool ? a | b : a + b;
	}
}

static inline bool is_right_int(
	const struct proc_call *k, uint64_t i, const void *got)
{
	enum sw_dtype d = k->args.dtype;
	uint64_t want = 0, x, element;

	for (uint32_t r = 0; r < k->n; r++) {
		give(k, k->ranks[r], i, &element);
		x = (uint64_t)get_int(d, &element);
		x *= k->args.op == SW_PREMUL_SUM ? k->ranks[r] + 1 : 1;
		want = r ? fold_ints(k, want, x) : x;
	}
	want = (uint64_t)wrapped(d, want);
	if (k->args.op == SW_AVG)
		want = (uint64_t)((int64_t)want / (int64_t)k->n);
	return (int64_t)want == get_int(d, got);
}

/* --- any kind --- */

static inline bool is_sum(const struct proc_call *k)
{
	return k->args.kind != SW_ALL_GATHER && k->args.kind != SW_BCAST;
}

/* Return the number of parts that this rank gives, or gets. */
static inline uint64_t parts_in(const struct proc_call *k)
{
	return k->args.kind == SW_REDUCE_SCATTER ? k->n : 1;
}

static inline uint64_t parts_out(const struct proc_call *k)
{
	return k->args.kind == SW_ALL_GATHER ? k->n : 1;
}

static inline bool gets(const struct proc_call *k)
{
	return k->args.kind != SW_BARRIER &&
	       (k->args.kind != SW_REDUCE || k->args.root == k->ranks[k->me]);
}

/* Return the first element that this rank gives or gets, counted through all
 * parts. */
static inline uint64_t first_in(const struct proc_call *k)
{
	return k->args.kind == SW_ALL_GATHER ? k->me * k->args.count : 0;
}

static inline uint64_t first_out(const struct proc_call *k)
{
	return k->args.kind == SW_REDUCE_SCATTER ? k->me * k->args.count : 0;
}

/* Is element @i, counted through all parts, correct? */
static inline bool is_right(
	const struct proc_call *k, uint64_t i, const void *got)
{
	uint64_t element = 0;

	if (is_sum(k))
		return is_float(k->args.dtype) ? is_right_float(k, i, got)
					       : is_right_int(k, i, got);
	give(k,
		k->args.kind == SW_BCAST ? k->args.root
					 : k->ranks[i / k->args.count],
		i, &element);
	return !memcmp(&element, got, sw_dtype_bytes(k->args.dtype));
}

static inline bool has(
	enum sw_coll_kind kind, enum sw_reduce_op op, enum sw_dtype dtype)
{
	if (kind == SW_ALL_GATHER || kind == SW_BCAST)
		return op == SW_SUM && sw_dtype_bytes(dtype);
	if (!sw_dtype_bytes(dtype))
		return false;
	if (op == SW_AVG || op == SW_PREMUL_SUM)
		return dtype != SW_BOOL;
	return op < SW_BAND || op > SW_BXOR || !is_float(dtype);
}

#endif
