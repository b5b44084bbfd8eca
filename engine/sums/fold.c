/* fold.c - the bytes of a contribution into a cell.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/sums/fold.h"

#include <string.h>

void sw_fold_sum(struct sw_shard *sh, struct sw_stensor *t, uint32_t local,
	const struct sw_header *h, const uint8_t *payload, bool is_first,
	bool is_lent)
{
	struct sw_chunk *c = &t->chunks[local];
	uint8_t *acc = sw_stensor_acc(t, h->round, local);
	uint32_t n = h->payload_len / t->ops->elem_bytes;
	const void *both[] = {c->lent, payload};

	if (is_first && is_lent) {
		c->lent = payload;
		sh->n_lent++;
	} else if (is_first) {
		t->ops->put(acc, payload, n);
	} else if (c->lent) {
		t->ops->sum(acc, both, 2, n);
		c->lent = NULL;
		sh->n_lent--;
	} else {
		t->ops->add(acc, payload, n);
	}
}

void sw_fold_copy(struct sw_shard *sh, struct sw_stensor *t, uint32_t local,
	struct sw_cell *cell, uint32_t member, const struct sw_header *h,
	const uint8_t *payload)
{
	uint8_t *acc = sw_stensor_acc(t, h->round, local);

	if (!h->payload_len)
		return;
	memcpy(acc, payload, h->payload_len);
	cell->has_root = true;
	cell->crc = h->payload_crc;
	if (sh->params->has_crc && !sw_shard_has_crc(sh, member))
		cell->crc = sw_data_crc(h, acc, h->payload_len);
}

void sw_fold_keep(struct sw_shard *sh, struct sw_stensor *t, uint32_t local)
{
	struct sw_chunk *c = &t->chunks[local];
	uint32_t round = c->cell[c->cell[0].is_done].round; /* the open one */

	if (!sw_stensor_is_dead(t, round)) /* else it is its sender's again */
		t->ops->put(sw_stensor_acc(t, round, local), c->lent,
			sw_stensor_elems(t, sw_place_global(&t->place, local)));
	c->lent = NULL;
	sh->n_lent--;
}
