/* bench_client.c - one process of the benchmark: push, pull, time, check.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/bench/bench.h"
#include "apps/cli/clock.h"
#include "engine/base/error.h"
#include <sumwire/sumwire.h>
#include "sum/half.h"

enum { WARM_UP = 2, ITERS_MAX = 2000, ITERS_MIN = 5 };

#define BYTES_PER_SIZE UINT64_C(2000000000) /* pushed, all iterations */

/* The value @v, a small whole number, as an element of @dtype. */
static void encode(enum sw_dtype dtype, uint32_t v, void *out)
{
	float f = (float)v;
	double d = (double)v;
	uint64_t u = dtype == SW_BOOL ? v != 0 : v;
	uint16_t half = dtype == SW_F16 ? sw_f16_round(f) : sw_bf16_round(f);

	switch (dtype) {
	case SW_F32:
		memcpy(out, &f, sizeof(f));
		return;
	case SW_F64:
		memcpy(out, &d, sizeof(d));
		return;
	case SW_F16:
	case SW_BF16:
		memcpy(out, &half, sizeof(half));
		return;
	default: /* integers, little-endian */
		memcpy(out, &u, sw_dtype_bytes(dtype));
	}
}

/* All elements i become factor * (1 + i % 3), the same at every rank: the sum
 * is exact in every dtype up to 42 workers. */
static void fill(const struct bench_options *o, char *data, uint64_t n)
{
	uint32_t size = sw_dtype_bytes(o->dtype);
	char pattern[3][8];

	for (uint32_t i = 0; i < 3; i++)
		encode(o->dtype, 1 + i, pattern[i]);
	for (uint64_t i = 0; i < n; i++)
		memcpy(data + i * size, pattern[i % 3], size);
}

static uint64_t count_wrong(const struct bench_options *o, const char *data,
	uint64_t n, uint32_t workers)
{
	uint32_t size = sw_dtype_bytes(o->dtype);
	char pattern[3][8];
	uint64_t wrong = 0;

	for (uint32_t i = 0; i < 3; i++)
		encode(o->dtype, workers * (1 + i), pattern[i]);
	for (uint64_t i = 0; i < n; i++)
		wrong += memcmp(data + i * size, pattern[i % 3], size) != 0;
	return wrong;
}

static int complain(struct sw_client *c, int err)
{
	if (err)
		fprintf(stderr, "sumwire bench: %s: %s\n", sw_error_text(err),
			sw_last_error(c));
	return err;
}

/* One round of all @n tensors. */
static int push_pull(const struct bench_options *o, struct sw_client *c,
	struct sw_tensor *const *t, uint32_t n, uint32_t step)
{
	uint64_t handles[BENCH_TENSORS];
	int err = 0;

	for (uint32_t i = 0; i < n && !err; i++)
		err = sw_push_pull(c, t[i], step, &handles[i]);
	for (uint32_t i = 0; i < n && !err; i++)
		err = o->is_polling ? sw_wait_polling(c, handles[i])
				    : sw_wait(c, handles[i]);
	return complain(c, err);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void summarize(struct bench_row *row, double *us)
{
	uint32_t n = row->n_iters;

	qsort(us, n, sizeof(*us), compare);
	row->min_us = us[0];
	row->p50_us = us[n / 2];
	row->p99_us = us[(uint64_t)n * 99 / 100];
	row->mean_us = 0;
	for (uint32_t i = 0; i < n; i++)
		row->mean_us += us[i] / n;
}

static uint32_t iterations(const struct bench_options *o, uint64_t bytes)
{
	uint64_t n = BYTES_PER_SIZE / bytes;

	if (o->n_iters)
		return o->n_iters;
	return (uint32_t)(n < ITERS_MIN   ? ITERS_MIN
			  : n > ITERS_MAX ? ITERS_MAX
					  : n);
}

/* One round that is checked. */
static int check_round(const struct bench_options *o, struct sw_client *c,
	struct sw_tensor *const *t, uint32_t step, struct bench_row *row)
{
	int err;

	for (uint32_t i = 0; i < row->n_tensors; i++)
		fill(o, sw_tensor_data(t[i]), row->n_elems);
	err = push_pull(o, c, t, row->n_tensors, step);
	for (uint32_t i = 0; i < row->n_tensors && !err; i++)
		row->wrong += count_wrong(
			o, sw_tensor_result(t[i]), row->n_elems, row->workers);
	return err;
}

/* Timed rounds in the middle, checked ones at both ends. */
static int measure(const struct bench_options *o, struct sw_client *c,
	struct sw_tensor *const *t, struct bench_row *row)
{
	uint32_t n = iterations(o, row->size_bytes * row->n_tensors), step = 0;
	double *us = calloc(n, sizeof(*us));
	int err = us ? 0 : SW_ENOMEM;

	row->n_iters = n;
	row->workers = sw_size(c);
	row->local_ranks = sw_agent_size(c);
	for (uint32_t i = 0; i < WARM_UP && !err; i++)
		err = check_round(o, c, t, step++, row);
	for (uint32_t i = 0; i < n && !err; i++) {
		uint64_t from = sw_now_ns();

		err = push_pull(o, c, t, row->n_tensors, step++);
		us[i] = (double)(sw_now_ns() - from) / 1e3;
	}
	if (!err)
		err = check_round(o, c, t, step, row);
	if (!err)
		summarize(row, us);
	free(us);
	return err;
}

static int run_size(const struct bench_options *o, struct sw_client *c,
	uint64_t bytes, struct bench_row *row)
{
	uint32_t elem = sw_dtype_bytes(o->dtype);
	struct sw_tensor_desc descs[BENCH_TENSORS];
	struct sw_tensor *t[BENCH_TENSORS];
	char names[BENCH_TENSORS][32];
	int err;

	*row = (struct bench_row){.n_elems = bytes / elem ? bytes / elem : 1,
		.n_tensors = o->n_tensors};
	row->size_bytes = row->n_elems * elem;
	for (uint32_t i = 0; i < o->n_tensors; i++) {
		snprintf(names[i], sizeof(names[i]), "bench.%llu.%u",
			(unsigned long long)row->size_bytes, i);
		descs[i] = (struct sw_tensor_desc){.name = names[i],
			.n_elems = row->n_elems,
			.dtype = o->dtype,
			.priority = i};
	}
	err = complain(c, sw_declare(c, descs, o->n_tensors, t));
	return err ? err : measure(o, c, t, row);
}

int sw_bench_client(const struct bench_options *o, const char *path,
	uint32_t local_rank, void (*each)(void *ctx, struct bench_row *row),
	void *ctx)
{
	struct sw_settings s;
	struct sw_client *c = NULL;
	struct bench_row row;
	int err;

	sw_settings_init(&s);
	s.agent = path;
	s.local_rank = local_rank;
	err = sw_open(&s, &c);
	if (err)
		fprintf(stderr, "sumwire bench: %s: %s\n", sw_error_text(err),
			sw_last_error(NULL));
	for (uint64_t b = o->min_bytes; b <= o->max_bytes && !err;
		b *= o->factor) {
		err = run_size(o, c, b, &row);
		if (!err && sw_rank(c) == 0)
			each(ctx, &row);
	}
	sw_close(&c);
	return err;
}
