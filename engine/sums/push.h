/* push.h - runs of pushes to a tensor and of its results, in all modes.
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

/* sw_push_fits_stream - return whether @h is a valid collective of a member of
 * the group, with bytes if and only if this member gives some.
 * sw_push_note_refused - count a push that was not folded; answer a duplicate
 * whose result is complete. */
bool sw_push_fits_stream(struct sw_shard *sh, const struct sw_stensor *t,
	uint32_t member, const struct sw_header *h);
void sw_push_note_refused(struct sw_shard *sh, struct sw_stensor *t,
	const struct sw_push *p, enum sw_push_verdict verdict);

/* Return whether @h is a valid round of a tensor. */
static inline bool sw_push_fits_tensor(struct sw_shard *sh,
	const struct sw_stensor *t, const struct sw_header *h)
{
	if (h->dtype != t->dtype || h->op >= SW_N_ROUND_KINDS) {
		sw_count(&sh->stats->rx_dtype, 1);
		return false;
	}
	if (h->payload_len != sw_stensor_bytes(t, h->chunk) &&
		(h->payload_len || h->op != SW_ROUND_COPY)) {
		sw_count(&sh->stats->rx_length, 1);
		return false;
	}
	return true;
}

/* Check the weight. A sum has the member's local ranks. A broadcast has 1 with
 * bytes, else 0. A stream has 1 to the local ranks with bytes, else 0. */
static inline bool sw_push_has_weight(const struct sw_shard *sh,
	const struct sw_stensor *t, uint32_t member, const struct sw_header *h,
	bool is_stream)
{
	if (is_stream)
		return h->weight <= sh->weights[member] &&
		       (h->weight > 0) == (h->payload_len > 0);
	return h->weight == (h->op == SW_ROUND_COPY ? h->payload_len > 0
						    : sh->weights[member]);
}

/* Return SW_PUSH_FOLD if @h is a valid push of @member and its round may still
 * be folded, else the reason, which is counted. */
static inline enum sw_push_verdict sw_push_judge_header(struct sw_shard *sh,
	const struct sw_stensor *t, uint32_t member, const struct sw_header *h,
	bool is_stream)
{
	if (!(is_stream ? sw_push_fits_stream(sh, t, member, h)
			: sw_push_fits_tensor(sh, t, h)))
		return SW_PUSH_DROP;
	if (!sw_push_has_weight(sh, t, member, h, is_stream)) {
		sw_count(&sh->stats->rx_weight, 1);
		return SW_PUSH_DROP;
	}
	return sw_stensor_is_over(t, h->round, member) ? SW_PUSH_DEAD
						       : SW_PUSH_FOLD;
}

/* Return whether @h, which follows a push to @t with header @last, gets the
 * same verdict as @last. */
static inline bool sw_push_is_like(const struct sw_stensor *t,
	const struct sw_header *h, const struct sw_header *last, bool is_stream)
{
	enum { SAME = 8 }; /* step, weight, dtype, op, aux; key and round */
	_Static_assert(
		offsetof(struct sw_header, consumed) -
					offsetof(struct sw_header, step) ==
				SAME &&
			offsetof(struct sw_header, chunk) -
					offsetof(struct sw_header, key) ==
				SAME,
		"what it says");
	if (h->payload_len != last->payload_len ||
		memcmp(&h->step, &last->step, SAME))
		return false;
	return is_stream ? h->key == last->key
			 : !memcmp(&h->key, &last->key, SAME) &&
				   h->chunk + 1 != t->place.n_chunks;
}

/* Return the local index of the chunk of a push. If the chunk does not lie
 * here, count the push and return SW_PLACE_NONE. */
static inline uint32_t sw_push_find(struct sw_shard *sh, struct sw_stensor *t,
	const struct sw_header *h, bool is_stream)
{
	uint32_t local =
		is_stream ? h->round & (t->window - 1)
			  : sw_place_find_near(&t->near, &t->place, h->chunk);

	if (local == SW_PLACE_NONE)
		sw_count(&sh->stats->rx_chunk, 1);
	return local;
}

/* sw_push_run - call @push for each push of a run from r->at on, as long as the
 * pushes go to tensors of one mode. The first push must be to @t. */
static inline __attribute__((always_inline)) enum sw_push_verdict sw_push_run(
	struct sw_shard *sh, struct sw_stensor *t, struct sw_pushes *r,
	sw_push_fn *push, bool is_stream)
{
	const struct sw_rules *rules = t->rules;
	const struct sw_header *first = r->h + r->at, *end = r->h + r->n;
	const struct sw_rx_frame *f = r->f + r->at;
	struct sw_push p = {.h = first,
		.member = r->member,
		.bit = 1ULL << r->member,
		.marks = sw_marks_of(t, r->member),
		.has_crc = r->has_crc};
	enum sw_push_verdict verdict = SW_PUSH_FOLD;
	uint64_t bytes = 0;
	bool has_completed = false;

	for (; p.h != end; p.h++, f++) {
		bool is_like = p.h != first &&
			       sw_push_is_like(t, p.h, p.h - 1, is_stream);

		if (!is_like && p.h->key != t->key) {
			t = sw_shard_tensor(sh, p.h->key);
			if (!t || t->rules != rules)
				break;
			p.marks = sw_marks_of(t, p.member);
		}
		p.payload = f->payload;
		p.is_lent = f->is_lent;
		p.local = sw_push_find(sh, t, p.h, is_stream);
		if (p.local == SW_PLACE_NONE) {
			verdict = SW_PUSH_DROP;
			break;
		}
		if (!is_like) {
			p.n = sw_elems(t->ops, p.h->payload_len);
			verdict = sw_push_judge_header(
				sh, t, p.member, p.h, is_stream);
			if (verdict != SW_PUSH_FOLD)
				break;
		}
		verdict = push(sh, t, &p);
		if (verdict <= SW_PUSH_COMPLETE) {
			bytes += p.h->payload_len;
			has_completed |= verdict == SW_PUSH_COMPLETE;
			continue;
		}
		sw_push_note_refused(sh, t, &p, verdict);
		if (!sw_push_is_held(verdict))
			break;
		r->n_again++;
	}
	r->at = (uint32_t)(p.h - r->h);
	r->bytes += bytes;
	r->has_completed |= has_completed;
	return verdict;
}

/* --- results --- */

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
