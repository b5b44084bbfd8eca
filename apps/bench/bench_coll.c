/* bench_coll.c - one process of the benchmark of collectives.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Sizes and bus bandwidth are those of nccl-tests: the size is that of the
 * larger buffer.  The bus bandwidth of all_reduce is 2 (n - 1) / n times the
 * algorithm's, that of reduce_scatter and all_gather (n - 1) / n times.
 */
#include <stdlib.h>
#include <string.h>

#include "apps/bench/bench.h"
#include "engine/base/error.h"

enum sw_coll_kind sw_bench_coll_find(const char *name)
{
	uint32_t kind = SW_ALL_REDUCE;

	while (kind < SW_BARRIER && strcmp(sw_coll_name(kind), name) != 0)
		kind++;
	return kind < SW_BARRIER ? (enum sw_coll_kind)kind : SW_N_COLL_KINDS;
}

enum sw_reduce_op sw_bench_op_find(const char *name)
{
	uint32_t op = SW_SUM;

	if (!strcmp(name, "mulsum"))
		return SW_PREMUL_SUM;
	while (op < SW_N_REDUCE_OPS && strcmp(sw_reduce_op_name(op), name) != 0)
		op++;
	return (enum sw_reduce_op)op;
}

double sw_bench_coll_factor(enum sw_coll_kind kind, uint32_t n)
{
	double others = (double)(n - 1) / n;

	switch (kind) {
	case SW_ALL_REDUCE:
		return 2 * others;
	case SW_REDUCE_SCATTER:
	case SW_ALL_GATHER:
		return others;
	default:
		return 1;
	}
}

static bool is_parted(const struct bench_coll *b)
{
	return b->args.kind == SW_REDUCE_SCATTER ||
	       b->args.kind == SW_ALL_GATHER;
}

int sw_bench_coll_open(const struct bench_options *o, struct sw_client *c,
	struct bench_coll *b)
{
	int err = sw_group_open(c, "bench", NULL, 0, &b->group);
	void *p;

	b->args.size = sizeof(b->args);
	b->args.kind = sw_bench_coll_find(o->collective);
	b->args.dtype = o->dtype;
	b->args.op = sw_bench_op_find(o->op);
	b->args.scale = 2;
	b->rank = sw_rank(c);
	b->size = sw_size(c);
	for (int i = 0; i < 2 && !err; i++) {
		if (o->is_staged)
			err = (p = calloc(1, o->max_bytes)) ? 0 : SW_ENOMEM;
		else
			err = sw_alloc(c, o->max_bytes, &p);
		b->memory[i] = err ? NULL : p;
	}
	b->is_in_place = o->is_in_place;
	return err;
}

void sw_bench_coll_shape(struct bench_coll *b, struct bench_row *row)
{
	uint32_t elem = sw_dtype_bytes(b->args.dtype);
	uint32_t parts = is_parted(b) ? b->size : 1;
	uint64_t n = row->size_bytes / elem / parts;

	b->args.count = n ? n : 1;
	row->n_elems = b->args.count * parts;
	row->size_bytes = row->n_elems * elem;
	b->args.send = b->memory[0];
	b->args.recv = b->memory[!b->is_in_place];
	if (b->is_in_place && b->args.kind == SW_ALL_GATHER)
		b->args.send = b->memory[0] + b->rank * b->args.count * elem;
	if (b->is_in_place && b->args.kind == SW_REDUCE_SCATTER)
		b->args.recv = b->memory[0] + b->rank * b->args.count * elem;
}

static void fill_ones(const struct bench_options *o, char *data, uint64_t n)
{
	uint32_t each = sw_dtype_bytes(o->dtype);

	for (uint64_t i = 0; i < n; i++)
		sw_bench_fill(o, data + i * each, 0, 1, 1);
}

/* Fill the send buffer.  Elements are numbered through all parts, of which this
 * process has its own.  For a minimum or maximum each member has its own
 * multiple; for a product only rank 0's elements differ from 1. */
void sw_bench_coll_fill(const struct bench_options *o, struct bench_coll *b)
{
	char *send = (char *)(uintptr_t)b->args.send;
	bool is_extreme = b->args.op == SW_MIN || b->args.op == SW_MAX;
	uint64_t n = b->args.count;

	if (b->args.kind == SW_ALL_GATHER) {
		sw_bench_fill(o, send, n * b->rank, n, 1);
		return;
	}
	n *= is_parted(b) ? b->size : 1;
	if (b->args.op == SW_PROD && b->rank)
		fill_ones(o, send, n);
	else
		sw_bench_fill(o, send, 0, n, is_extreme ? b->rank + 1 : 1);
}

/* Return the ratio of the result to rank 0's elements. */
static uint32_t result_factor(const struct bench_coll *b)
{
	switch (b->args.op) {
	case SW_SUM:
	case SW_MAX:
		return b->size;
	case SW_PREMUL_SUM:
		return 2 * b->size;
	case SW_BXOR:
		return b->size & 1;
	default:
		return 1;
	}
}

uint64_t sw_bench_coll_wrong(
	const struct bench_options *o, const struct bench_coll *b)
{
	uint64_t n = b->args.count;
	uint32_t factor = result_factor(b);

	switch (b->args.kind) {
	case SW_REDUCE_SCATTER:
		return sw_bench_wrong(o, b->args.recv, n * b->rank, n, factor);
	case SW_ALL_GATHER:
		return sw_bench_wrong(o, b->args.recv, 0, n * b->size, 1);
	case SW_BCAST:
		return sw_bench_wrong(o, b->args.recv, 0, n, 1);
	case SW_REDUCE:
		return b->rank ? 0
			       : sw_bench_wrong(o, b->args.recv, 0, n, factor);
	default:
		return sw_bench_wrong(o, b->args.recv, 0, n, factor);
	}
}

int sw_bench_coll_run(const struct bench_options *o, struct sw_client *c,
	const struct bench_coll *b)
{
	uint64_t handle;
	int err = sw_coll(b->group, &b->args, &handle);

	if (err)
		return err;
	return o->is_polling ? sw_wait_polling(c, handle) : sw_wait(c, handle);
}
