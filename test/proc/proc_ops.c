/* proc_ops.c - a training process that calls every operation of collectives.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Each kind that sums, with each operation, of each element type that has it.
 * Every element is compared: integers with the same arithmetic, bit by bit,
 * floats with what f64 comes to.  Says how far it got as proc_client does.
 */
#include <getopt.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sum/half.h"
#include "test/proc/proc_say.h"
#include "test/support/random.h"
#include <sumwire/coll.h>

enum { COUNT_MAX = 20000, RANKS_MAX = 8 };

struct call {
	struct sw_coll_args args;
	uint64_t number;
	uint32_t rank, size;
};

struct ops_client {
	struct sw_client *c;
	struct sw_group *group;
	char *send, *recv;
	uint64_t bits; /* of all results, FNV-1a */
	uint64_t odd;  /* the call that this rank makes of another operation */
	struct call call;
};

static void must(struct ops_client *k, int err, const char *where)
{
	proc_must(&k->c, err, where);
}

/* --- elements --- */

static bool is_float(enum sw_dtype d)
{
	return d == SW_F32 || d == SW_F64 || d == SW_F16 || d == SW_BF16;
}

/* The distance of 1 and the next number. */
static double ulp_of(enum sw_dtype d)
{
	return d == SW_F32   ? 0x1p-23
	       : d == SW_F64 ? 0x1p-52
	       : d == SW_F16 ? 0x1p-10
			     : 0x1p-7;
}

static void put_float(enum sw_dtype d, double v, void *out)
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

static double get_float(enum sw_dtype d, const void *p)
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

/* What has wrapped to the type, as a number. */
static int64_t wrapped(enum sw_dtype d, uint64_t v)
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

static int64_t get_int(enum sw_dtype d, const void *p)
{
	uint64_t v = 0;

	memcpy(&v, p, sw_dtype_bytes(d));
	return wrapped(d, v);
}

/* What @rank gives as element @i, all parts counted. */
static void give(const struct call *k, uint32_t rank, uint64_t i, void *out)
{
	uint64_t state = (k->number << 32 | i) * RANKS_MAX + rank;
	uint64_t v = test_random(&state);

	if (is_float(k->args.dtype)) {
		put_float(k->args.dtype, (double)(v % 4001) / 1000 - 2, out);
		return;
	}
	if (k->args.dtype == SW_BOOL)
		v &= 1;
	if (k->args.op == SW_PREMUL_SUM)
		v %= 10; /* a factor does not wrap */
	memcpy(out, &v, sw_dtype_bytes(k->args.dtype));
}

static double factor_of(const struct call *k, uint32_t rank)
{
	return is_float(k->args.dtype) ? 0.3 * (rank + 1) : rank + 1;
}

/* --- what it comes to --- */

static double fold_floats(enum sw_op op, double a, double b)
{
	return op == SW_MIN    ? fmin(a, b)
	       : op == SW_MAX  ? fmax(a, b)
	       : op == SW_PROD ? a * b
			       : a + b;
}

static bool is_right_float(const struct call *k, uint64_t i, const void *got)
{
	enum sw_op op = k->args.op;
	double want = 0, size = 0, x;
	uint64_t element;

	for (uint32_t r = 0; r < k->size; r++) {
		give(k, r, i, &element);
		x = get_float(k->args.dtype, &element);
		x *= op == SW_PREMUL_SUM ? factor_of(k, r) : 1;
		want = r ? fold_floats(op, want, x) : x;
		size += fabs(x);
	}
	if (op == SW_AVG) {
		want /= k->size;
		size /= k->size;
	}
	if (op == SW_MIN || op == SW_MAX)
		size = 0;
	if (op == SW_PROD)
		size = fabs(want);
	return fabs(get_float(k->args.dtype, got) - want) <=
	       size * ulp_of(k->args.dtype) * 2 +
		       (k->args.dtype == SW_F16 && size > 0 ? 0x1p-24 : 0);
}

static uint64_t fold_ints(const struct call *k, uint64_t a, uint64_t b)
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

static bool is_right_int(const struct call *k, uint64_t i, const void *got)
{
	enum sw_dtype d = k->args.dtype;
	uint64_t want = 0, x, element;

	for (uint32_t r = 0; r < k->size; r++) {
		give(k, r, i, &element);
		x = (uint64_t)get_int(d, &element);
		x *= k->args.op == SW_PREMUL_SUM ? r + 1 : 1;
		want = r ? fold_ints(k, want, x) : x;
	}
	want = (uint64_t)wrapped(d, want);
	if (k->args.op == SW_AVG)
		want = (uint64_t)((int64_t)want / (int64_t)k->size);
	return (int64_t)want == get_int(d, got);
}

/* --- calls --- */

static void fill(struct ops_client *k)
{
	const struct call *c = &k->call;
	uint32_t each = sw_dtype_bytes(c->args.dtype);
	uint64_t n = c->args.count *
		     (c->args.kind == SW_REDUCE_SCATTER ? c->size : 1);
	uint64_t element;

	for (uint64_t i = 0; i < n; i++) {
		give(c, c->rank, i, &element);
		memcpy(k->send + i * each, &element, each);
	}
	memset(k->recv, 0x77, c->args.count * each);
}

static void check(struct ops_client *k)
{
	const struct call *c = &k->call;
	uint32_t each = sw_dtype_bytes(c->args.dtype);
	uint64_t first =
		c->args.kind == SW_REDUCE_SCATTER ? c->args.count * c->rank : 0;

	if (c->args.kind == SW_REDUCE && c->rank != c->args.root)
		return;
	for (uint64_t i = 0; i < c->args.count; i++) {
		char got[8] = {0};

		memcpy(got, k->recv + i * each, each);
		for (uint32_t b = 0; b < each; b++)
			k->bits =
				(k->bits ^ (uint8_t)got[b]) * 1099511628211ULL;
		if (is_float(c->args.dtype) ? is_right_float(c, first + i, got)
					    : is_right_int(c, first + i, got))
			continue;
		printf("wrong: %s of %s %s, element %llu of %llu\n",
			sw_coll_name(c->args.kind), sw_op_name(c->args.op),
			sw_dtype_name(c->args.dtype), (unsigned long long)i,
			(unsigned long long)c->args.count);
		exit(EXIT_WRONG);
	}
}

static void run_one(struct ops_client *k, enum sw_coll_kind kind, enum sw_op op,
	enum sw_dtype dtype)
{
	uint64_t state = ++k->call.number, handle;
	struct call *c = &k->call;

	c->args = (struct sw_coll_args){.size = sizeof(c->args),
		.kind = kind,
		.dtype = dtype,
		.op = op,
		.count = 1 + test_random(&state) % COUNT_MAX,
		.root = (uint32_t)(c->number % c->size),
		.send = k->send,
		.recv = k->recv};
	c->args.scale = factor_of(c, c->rank); /* which depends on the type */
	fill(k);
	if (c->number == k->odd)
		c->args.op = c->args.op == SW_MAX ? SW_MIN : SW_MAX;
	must(k, sw_coll(k->group, &c->args, &handle), "coll");
	must(k, sw_wait(k->c, handle), "wait");
	check(k);
}

static bool has(enum sw_op op, enum sw_dtype dtype)
{
	if (!sw_dtype_bytes(dtype))
		return false;
	if (op == SW_AVG || op == SW_PREMUL_SUM)
		return dtype != SW_BOOL;
	return op < SW_BAND || op > SW_BXOR || !is_float(dtype);
}

static void run(struct ops_client *k)
{
	static const enum sw_coll_kind kinds[] = {
		SW_ALL_REDUCE, SW_REDUCE_SCATTER, SW_REDUCE};

	for (uint32_t i = 0; i < 3; i++)
		for (uint32_t op = 0; op < SW_N_OPS; op++)
			for (uint32_t d = 0; d < SW_N_DTYPES; d++)
				if (has((enum sw_op)op, (enum sw_dtype)d))
					run_one(k, kinds[i], (enum sw_op)op,
						(enum sw_dtype)d);
	printf("%llu calls\nbits %016llx\n", (unsigned long long)k->call.number,
		(unsigned long long)k->bits);
}

static void open_all(struct ops_client *k, const struct sw_settings *s)
{
	size_t bytes;
	void *p;

	must(k, sw_open(s, &k->c), "open");
	k->call.rank = sw_rank(k->c);
	k->call.size = sw_size(k->c);
	printf("attached %u of %u\n", k->call.rank, k->call.size);
	fflush(stdout);
	bytes = sizeof(uint64_t) * COUNT_MAX * k->call.size;
	must(k, sw_alloc(k->c, bytes, &p), "alloc");
	k->send = p;
	must(k, sw_alloc(k->c, bytes, &p), "alloc");
	k->recv = p;
	must(k, sw_group_open(k->c, "all", NULL, 0, &k->group), "group");
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"agent", required_argument, NULL, 'a'},
		{"odd", required_argument, NULL, 'o'}, {0}};
	static struct ops_client k;
	struct sw_settings s;
	int o;

	sw_settings_init(&s);
	s.wait_timeout_s = 60;
	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (o) {
		case 'a':
			s.agent = optarg;
			break;
		case 'o':
			k.odd = strtoull(optarg, NULL, 10);
			break;
		default:
			return 2;
		}
	open_all(&k, &s);
	run(&k);
	printf("exact\n");
	sw_close(&k.c);
	printf("ended\n");
	return 0;
}
