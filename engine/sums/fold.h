/* fold.h - the bytes of a contribution into a cell.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Between sync.c, which decides what is folded, and the kernels. */
#ifndef SW_FOLD_H
#define SW_FOLD_H

#include "engine/sums/shard.h"

/* Where the sum of @round of a chunk is made. */
static inline uint8_t *sw_stensor_acc(
	const struct sw_stensor *t, uint32_t round, uint32_t local)
{
	return t->acc[round & 1] + local * t->acc_stride;
}

static inline uint32_t sw_stensor_elems(
	const struct sw_stensor *t, uint32_t chunk)
{
	return chunk + 1 == t->place.n_chunks ? t->last_elems : t->chunk_elems;
}

/* sw_fold_sum - @payload, of @h, is part of the open sum of chunk @local.
 * @is_first  of its round
 * @is_lent   it stays as it is: the first is then not copied, and the second
 *            writes the cell with the sum of both */
void sw_fold_sum(struct sw_shard *sh, struct sw_stensor *t, uint32_t local,
	const struct sw_header *h, const uint8_t *payload, bool is_first,
	bool is_lent);

/* sw_fold_copy - @payload, if there is any, are the bytes of the broadcast
 * @cell of chunk @local, from @member. */
void sw_fold_copy(struct sw_shard *sh, struct sw_stensor *t, uint32_t local,
	struct sw_cell *cell, uint32_t member, const struct sw_header *h,
	const uint8_t *payload);

/* sw_fold_keep - what is lent to the open sum of a chunk is copied. */
void sw_fold_keep(struct sw_shard *sh, struct sw_stensor *t, uint32_t local);

#endif
