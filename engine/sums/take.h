/* take.h - a run of results of one tensor, as all modes build it.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Inline, so that each mode has one loop with its own rules in it.
 */
#ifndef SW_ENGINE_SUMS_TAKE_H
#define SW_ENGINE_SUMS_TAKE_H

#include "engine/sums/rules.h"

/* Fill the fields of @h that depend on the round or slot; return the payload.
 */
typedef const void *sw_take_fn(struct sw_shard *sh, struct sw_stensor *t,
	uint32_t member, uint32_t local, struct sw_header *h);

/* sw_take_run - take results of @t for @member, as sw_shard_take does; call
 * @take for each. For a stream, @take also fills the header fields that a
 * tensor's place and declaration give. A run ends where a word of marks ends.
 */
static inline __attribute__((always_inline)) uint32_t sw_take_run(
	struct sw_shard *sh, struct sw_stensor *t, uint32_t member,
	struct sw_tx_frame *out, uint32_t *cells, uint32_t n, sw_take_fn *take,
	bool is_stream)
{
	size_t at = sw_marks_at(t, member);
	uint32_t local = sw_bitmap_least_in(&t->marks, at), i = 0;
	uint32_t first = local / 64 * 64;
	uint64_t *word = sw_bitmap_word(&t->marks, local) + at;
	uint64_t left = *word;

	do {
		struct sw_header *h = &out[i].header;

		local = first + (uint32_t)__builtin_ctzll(left);
		left &= left - 1;
		cells[i] = local;
		*h = (struct sw_header){
			.type = SW_RESULT, .class = t->class, .key = t->key};
		if (!is_stream) {
			h->chunk = sw_place_global_near(
				&t->near, &t->place, local);
			h->dtype = t->dtype;
			h->payload_len =
				(uint16_t)sw_stensor_bytes(t, h->chunk);
		}
		out[i].payload = take(sh, t, member, local, h);
		out[i].is_stable = sw_result_is_stable(h);
	} while (out[i++].is_stable && i < n && left);
	*word = left;
	if (!left)
		sw_marks_end(sh, t, member, local);
	return i;
}

#endif
