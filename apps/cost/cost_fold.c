/* cost_fold.c - only the kernels of a server's round: CRC and add.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/cost/cost_fold.h"

#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "pmd/host/memory.h"

enum { SOURCES_BYTES = SW_RX_BURST * SW_PAYLOAD_MAX };

int sw_cost_fold_open(struct cost_fold *f, const struct cost_shape *shape,
	enum sw_sum_level level)
{
	f->shape = shape;
	f->ops = &sw_sum_best(level)->ops[SW_F32];
	f->has_isal = sw_isal_open(&f->isal);
	f->sums_bytes = 2 * shape->bytes * shape->n_tensors;
	f->sources = sw_memory_get(SOURCES_BYTES, SW_NUMA_ANY);
	f->fed = sw_memory_get(SOURCES_BYTES, SW_NUMA_ANY);
	f->sums = sw_memory_get(f->sums_bytes, SW_NUMA_ANY);
	return f->sources && f->fed && f->sums ? 0 : SW_ENOMEM;
}

static uint32_t crc(const struct cost_fold *f, enum cost_kernels kernels,
	const void *p, uint32_t n)
{
	switch (kernels) {
	case COST_KERNELS_FED:
		return sw_crc32c_both_far(0, NULL, 0, p, n);
	case COST_KERNELS_ISAL:
		return ~f->isal.best((unsigned char *)p, (int)n, ~0u);
	default:
		return sw_crc32c(0, p, n);
	}
}

/* Fold contribution @at.  Every member contributes to a chunk before the next
 * chunk begins. */
static void fold_one(
	struct cost_fold *f, enum cost_kernels kernels, char *sums, uint64_t at)
{
	uint64_t n_members = f->shape->n_members, bytes = f->shape->bytes;
	uint64_t in_tensor = (bytes + SW_PAYLOAD_MAX - 1) / SW_PAYLOAD_MAX;
	uint64_t chunk = at / n_members, member = at % n_members;
	uint64_t first = chunk % in_tensor * SW_PAYLOAD_MAX;
	uint32_t n = (uint32_t)sw_min64(SW_PAYLOAD_MAX, bytes - first);
	const char *from = (kernels == COST_KERNELS_FED ? f->fed : f->sources) +
			   at % SW_RX_BURST * SW_PAYLOAD_MAX;
	char *sum = sums + chunk / in_tensor * bytes + first;

	crc(f, kernels, from, n);
	(member ? f->ops->add : f->ops->put)(sum, from, n / f->ops->elem_bytes);
	if (member + 1 == n_members)
		crc(f,
			kernels == COST_KERNELS_FED ? COST_KERNELS_OURS
						    : kernels,
			sum, n);
}

uint64_t sw_cost_fold_some(struct cost_fold *f, enum cost_kernels kernels,
	uint32_t round, uint64_t at)
{
	const struct cost_shape *s = f->shape;
	char *sums = f->sums + round % 2 * (f->sums_bytes / 2);
	uint64_t n = (s->bytes + SW_PAYLOAD_MAX - 1) / SW_PAYLOAD_MAX *
		     s->n_tensors * s->n_members;
	uint64_t end = sw_min64(n, at + SW_RX_BURST);

	for (; at < end; at++)
		fold_one(f, kernels, sums, at);
	return at < n ? at : 0;
}

void sw_cost_fold_feed(struct cost_fold *f)
{
	memcpy(f->fed, f->sources, SOURCES_BYTES);
}

void sw_cost_fold_close(struct cost_fold *f)
{
	sw_isal_close(&f->isal);
	sw_memory_put(f->sources, SOURCES_BYTES);
	sw_memory_put(f->fed, SOURCES_BYTES);
	sw_memory_put(f->sums, f->sums_bytes);
}
