/* bench_fold.c - the kernels of a server's round alone: CRC and add.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/bench/bench_fold.h"

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "pmd/host/memory.h"

enum { SOURCES_BYTES = SW_RX_BURST * SW_PAYLOAD_MAX };

int sw_bench_fold_open(struct bench_fold *f, const struct bench_shape *shape,
	enum sw_sum_level level)
{
	f->shape = shape;
	f->ops = &sw_sum_best(level)->ops[SW_F32];
	f->sums_bytes = 2 * shape->bytes * shape->n_tensors;
	f->sources = sw_memory_get(SOURCES_BYTES, SW_NUMA_ANY);
	f->sums = sw_memory_get(f->sums_bytes, SW_NUMA_ANY);
	return f->sources && f->sums ? 0 : SW_ENOMEM;
}

static void fold_chunk(
	struct bench_fold *f, char *sum, uint32_t bytes, uint32_t first_source)
{
	for (uint32_t m = 0; m < f->shape->n_members; m++) {
		const char *from =
			f->sources + (first_source + m) % SW_RX_BURST *
					     (uint64_t)SW_PAYLOAD_MAX;

		sw_crc32c(0, from, bytes);
		(m ? f->ops->add : f->ops->put)(
			sum, from, bytes / f->ops->elem_bytes);
	}
	sw_crc32c(0, sum, bytes);
}

void sw_bench_fold_round(struct bench_fold *f, uint32_t round)
{
	uint64_t tensor_bytes = f->shape->bytes;
	char *sums = f->sums + round % 2 * (f->sums_bytes / 2);
	uint32_t source = 0;

	for (uint32_t t = 0; t < f->shape->n_tensors; t++)
		for (uint64_t at = 0; at < tensor_bytes; at += SW_PAYLOAD_MAX) {
			fold_chunk(f, sums + t * tensor_bytes + at,
				(uint32_t)sw_min64(
					SW_PAYLOAD_MAX, tensor_bytes - at),
				source);
			source += f->shape->n_members;
		}
}

void sw_bench_fold_close(struct bench_fold *f)
{
	sw_memory_put(f->sources, SOURCES_BYTES);
	sw_memory_put(f->sums, f->sums_bytes);
}
