/* push.h - a run of pushes to one tensor, as all modes handle it.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Inline, so that each mode has one loop with its own rules in it.
 */
#ifndef SW_ENGINE_SUMS_PUSH_H
#define SW_ENGINE_SUMS_PUSH_H

#include <string.h>

#include "engine/sums/rules.h"

/* Judge a push; fold it if it is new and valid (sw_push_check), else change
 * nothing. */
typedef enum sw_push_verdict sw_push_fn(
	struct sw_shard *sh, struct sw_stensor *t, const struct sw_push *p);

/* sw_push_judge_header - return SW_PUSH_FOLD if @h is a valid push of @member
 * and its round may still be folded, else the reason, which is counted.
 * sw_push_note_refused - count a push that was not folded; answer a duplicate
 * whose result is complete. */
enum sw_push_verdict sw_push_judge_header(struct sw_shard *sh,
	const struct sw_stensor *t, uint32_t member, const struct sw_header *h);
void sw_push_note_refused(struct sw_shard *sh, struct sw_stensor *t,
	const struct sw_push *p, enum sw_push_verdict verdict);

/* Return whether @h, behind a push to the same tensor with header @last, would
 * be judged as that was. */
static inline bool sw_push_is_like(const struct sw_stensor *t,
	const struct sw_header *h, const struct sw_header *last)
{
	enum { SAME = 8 }; /* step, weight, dtype, op, aux */
	_Static_assert(offsetof(struct sw_header, consumed) -
				       offsetof(struct sw_header, step) ==
			       SAME,
		"what it says");
	return h->payload_len == last->payload_len &&
	       !memcmp(&h->step, &last->step, SAME) &&
	       (t->window || (h->round == last->round &&
				     h->chunk + 1 != t->place.n_chunks));
}

/* Return the local index of the chunk of a push; SW_PLACE_NONE: it does not lie
 * here, which is counted. */
static inline uint32_t sw_push_find(
	struct sw_shard *sh, struct sw_stensor *t, const struct sw_header *h)
{
	uint32_t local =
		t->window ? h->round & (t->window - 1)
			  : sw_place_find_near(&t->near, &t->place, h->chunk);

	if (local == SW_PLACE_NONE)
		sw_count(&sh->stats->rx_chunk, 1);
	return local;
}

/* sw_push_run - handle the pushes of @member to @t at the begin of a run, each
 * by @push, as sw_shard_push does. */
static inline __attribute__((always_inline)) struct sw_pushed sw_push_run(
	struct sw_shard *sh, struct sw_stensor *t, uint32_t member,
	const struct sw_header *h, const struct sw_rx_frame *f, uint32_t n,
	sw_push_fn *push)
{
	struct sw_push p = {.member = member,
		.has_crc = sw_shard_has_crc(sh, member) && h->type != SW_WANT};
	struct sw_pushed out = {0};
	uint64_t n_folded = 0, bytes = 0;

	for (uint32_t i = 0; i < n && h[i].key == t->key; i++) {
		p.h = &h[i];
		p.payload = f[i].payload;
		p.is_lent = f[i].is_lent;
		p.local = sw_push_find(sh, t, p.h);
		out.verdict =
			p.local == SW_PLACE_NONE ? SW_PUSH_DROP
			: i && sw_push_is_like(t, p.h, p.h - 1)
				? SW_PUSH_FOLD
				: sw_push_judge_header(sh, t, member, p.h);
		if (out.verdict != SW_PUSH_FOLD)
			break;
		out.verdict = push(sh, t, &p);
		if (out.verdict <= SW_PUSH_COMPLETE) {
			out.n_held++;
			n_folded++;
			bytes += p.h->payload_len;
			out.has_completed |= out.verdict == SW_PUSH_COMPLETE;
			continue;
		}
		sw_push_note_refused(sh, t, &p, out.verdict);
		if (!sw_push_is_held(out.verdict))
			break;
		out.n_held++;
		out.has_again = true;
	}
	sh->n_folded += n_folded;
	sw_count(&sh->stats->push_folded, n_folded);
	sw_count(&sh->stats->push_bytes, bytes);
	return out;
}

#endif
