/* shard_frames.c - handle pushes and queries to a shard, build its results.
 * SPDX-License-Identifier: BSD-3-Clause */

#include "engine/sums/push.h"

/* Return the tensor with @key, and in *local the local index of a chunk that
 * lies here; NULL: not found, and counted. */
static struct sw_stensor *find(const struct sw_shard *sh, uint32_t key,
	uint32_t round, uint32_t chunk, uint32_t *local)
{
	struct sw_stensor *t = sw_shard_tensor(sh, key);

	if (!t) {
		sw_count(&sh->stats->rx_key, !sw_shard_is_past(sh, key));
		return NULL;
	}
	*local = t->window ? round & (t->window - 1)
			   : sw_place_find_near(&t->near, &t->place, chunk);
	if (*local == SW_PLACE_NONE) {
		sw_count(&sh->stats->rx_chunk, 1);
		return NULL;
	}
	return t;
}

bool sw_push_fits_stream(struct sw_shard *sh, const struct sw_stensor *t,
	uint32_t member, const struct sw_header *h)
{
	enum sw_coll_kind kind = sw_coll_kind_of(h->op);
	uint32_t elem = sw_dtype_bytes(h->dtype);
	uint32_t op = sw_coll_op_of(h->op);
	bool gives;

	if (op == SW_PREMUL_SUM || /* never on the wire */
		!sw_coll_has(sh->env->sum, kind, op, h->dtype) ||
		h->stream.root >= sh->n_members ||
		!(t->members >> h->stream.root & 1) ||
		!(t->members >> member & 1)) {
		sw_count(&sh->stats->rx_dtype, 1);
		return false;
	}
	gives = sw_coll_from(kind, t->members, h->stream.root) >> member & 1;
	if (h->payload_len > sh->params->payload ||
		(h->payload_len & (elem - 1)) ||
		(h->payload_len > 0) != gives ||
		(h->type == SW_WANT) == gives) {
		sw_count(&sh->stats->rx_length, 1);
		return false;
	}
	return true;
}

/* Send the result of a duplicate push again, unless the result is in flight or
 * the member holds it. */
static void send_again(struct sw_shard *sh, struct sw_stensor *t,
	uint32_t member, uint32_t local, uint32_t round)
{
	struct sw_queried p =
		t->rules->judge_query(sh, t, member, local, round);

	if (p.verdict == SW_QUERY_RESULT && !(p.inflight >> member & 1))
		sw_marks_add(sh, t, member, local);
}

void sw_push_note_refused(struct sw_shard *sh, struct sw_stensor *t,
	const struct sw_push *p, enum sw_push_verdict verdict)
{
	if (verdict == SW_PUSH_VIOLATION)
		sw_count(&sh->stats->rx_round, 1);
	else if (verdict == SW_PUSH_CRC)
		sw_count(&sh->stats->rx_payload_crc, 1);
	else if (sw_push_is_held(verdict))
		sw_count(&sh->stats->push_again, 1);
	if (verdict == SW_PUSH_DONE)
		send_again(sh, t, p->member, p->local, p->h->round);
}

struct sw_pushed sw_shard_push(struct sw_shard *sh, uint32_t member,
	const struct sw_header *h, const struct sw_rx_frame *f, uint32_t n)
{
	struct sw_pushes r = {.h = h,
		.f = f,
		.n = n,
		.member = member,
		.has_crc = sw_shard_has_crc(sh, member) && h->type != SW_WANT};
	enum sw_push_verdict verdict = SW_PUSH_FOLD;

	while (r.at < n && sw_push_is_held(verdict)) {
		struct sw_stensor *t = sw_shard_tensor(sh, h[r.at].key);

		if (t) {
			verdict = t->rules->push(sh, t, &r);
		} else if (sw_shard_is_past(sh, h[r.at].key)) {
			verdict = SW_PUSH_OLD;
			r.at++;
			r.n_again++;
		} else {
			verdict = SW_PUSH_DROP;
			sw_count(&sh->stats->rx_key, 1);
		}
	}
	sh->n_folded += r.at - r.n_again;
	sw_count(&sh->stats->push_folded, r.at - r.n_again);
	sw_count(&sh->stats->push_bytes, r.bytes);
	sw_count(&sh->stats->class_rx_frames[h->class], r.at - r.n_again);
	sw_count(&sh->stats->class_rx_bytes[h->class], r.bytes);
	sh->push_bytes[member] += r.bytes;
	return (struct sw_pushed){.n_held = r.at,
		.verdict = verdict,
		.has_completed = r.has_completed,
		.has_again = r.n_again > 0};
}

bool sw_shard_may_want(const struct sw_shard *sh, const struct sw_header *h)
{
	const struct sw_stensor *t = sw_shard_tensor(sh, h->key);
	uint32_t last = h->stream.j + h->stream.n - 1;
	uint64_t *why = NULL;

	if (!t && sw_shard_is_past(sh, h->key))
		return true;
	if (!t || !t->window)
		why = &sh->stats->rx_key;
	else if (!h->stream.n || h->stream.n > SW_WANT_MAX)
		why = &sh->stats->rx_weight;
	else if (!sw_round_before(last, t->base) && last - t->base >= t->window)
		why = &sh->stats->rx_round;
	if (why)
		sw_count(why, 1);
	return !why;
}

struct sw_begun sw_shard_begun(
	const struct sw_shard *sh, const struct sw_header *h)
{
	uint32_t local;
	const struct sw_stensor *t =
		find(sh, h->key, h->round, h->chunk, &local);

	return t->rules->begun(sh, t, local, h);
}

/* Limits of one call for borrowed contributions. */
enum {
	KEEP_LOOKS = 1024, /* records of chunks to read, one cache line each */
	KEEP_COPIES = 16,
};

/* Copy borrowed contributions of @t from chunk *at on; add to *n_copied. Reads
 * at most @max chunks, and returns how many. */
static uint32_t keep_some(struct sw_shard *sh, struct sw_stensor *t,
	uint32_t *at, uint32_t max, uint32_t *n_copied)
{
	uint32_t n = 0;

	for (; n < max && *n_copied < KEEP_COPIES && sh->n_lent &&
		*at < t->place.n_local;
		n++)
		*n_copied += t->rules->keep(sh, t, (*at)++);
	return n;
}

static bool may_be_lent(const struct sw_stensor *t)
{
	return t->mem && t->rules->keep;
}

/* Continue at sh->lent, in the order of indices and chunks, and wrap around at
 * the end; nothing is borrowed meanwhile. */
bool sw_shard_copy_lent(struct sw_shard *sh)
{
	struct sw_lent *next = &sh->lent;
	uint32_t n = 0, n_copied = 0;

	while (sh->n_lent && n < KEEP_LOOKS && n_copied < KEEP_COPIES) {
		struct sw_stensor *t = &sh->tensors[next->index];

		if (next->index < sh->n_keys && may_be_lent(t))
			n += keep_some(
				sh, t, &next->local, KEEP_LOOKS - n, &n_copied);
		if (next->index >= sh->n_keys)
			*next = (struct sw_lent){0};
		else if (!may_be_lent(t) || next->local >= t->place.n_local)
			*next = (struct sw_lent){.index = next->index + 1};
		n++;
	}
	return !sh->n_lent;
}

bool sw_shard_keep_stream(struct sw_shard *sh, uint32_t key)
{
	struct sw_stensor *t =
		sh->n_lent ? sw_shard_tensor(sh, key) : NULL; /* or closed */
	uint32_t local = 0, n_copied = 0;

	if (!t || !t->window || !t->mem)
		return true;
	keep_some(sh, t, &local, t->window, &n_copied);
	return n_copied < KEEP_COPIES;
}

struct sw_answer sw_shard_answer(const struct sw_shard *sh, uint32_t key,
	uint32_t round, uint32_t chunk, enum sw_answer_kind kind)
{
	const struct sw_stensor *t = sw_shard_tensor(sh, key);

	return (struct sw_answer){.key = key,
		.round = round,
		.chunk = t->window ? t->base : chunk,
		.kind = (uint8_t)kind};
}

bool sw_shard_query(struct sw_shard *sh, uint32_t member,
	const struct sw_query *query, struct sw_answer *answer)
{
	uint32_t local;
	struct sw_stensor *t =
		find(sh, query->key, query->round, query->chunk, &local);
	struct sw_queried p;

	if (!t)
		return false;
	*answer = sw_shard_answer(
		sh, query->key, query->round, query->chunk, SW_ANSWER_BASE);
	if (t->window && query->round - t->base >= t->window)
		return true; /* the query asks for the base of the window */
	p = t->rules->judge_query(sh, t, member, local, query->round);
	switch (p.verdict) {
	case SW_QUERY_RESULT:
		if (!(p.inflight >> member & 1))
			sw_marks_add(sh, t, member, local);
		return false;
	case SW_QUERY_WAIT:
		answer->kind = SW_ANSWER_WAIT;
		answer->missing = p.missing;
		sw_count(&sh->stats->query_wait, 1);
		return true;
	case SW_QUERY_NEED:
		answer->kind = SW_ANSWER_NEED;
		sw_count(&sh->stats->query_need, 1);
		return true;
	case SW_QUERY_GONE:
		break;
	}
	answer->kind = SW_ANSWER_GONE;
	sw_count(&sh->stats->query_gone, 1);
	return true;
}

uint32_t sw_shard_take(struct sw_shard *sh, uint32_t member, uint32_t order,
	struct sw_tx_frame *out, uint32_t *cells, uint32_t n)
{
	struct sw_stensor *t = &sh->tensors[sw_orders_at(&sh->orders, order)];

	return t->rules->take(sh, t, member, out, cells, n);
}

bool sw_shard_seal(struct sw_shard *sh, const struct sw_header *h,
	uint32_t cell, uint32_t era)
{
	struct sw_stensor *t = &sh->tensors[sw_key_index(h->key)];

	return t->rules->seal(t, cell, h->round, era);
}

/* Settle the results of synchronous tensors with which @sent begins; return how
 * many of the @n results. */
static uint32_t settle_rounds(const struct sw_shard *sh, uint32_t member,
	const struct sw_sent *const *sent, uint32_t n)
{
	const struct sw_stensor *t = NULL;
	struct sw_chunk *chunks = NULL;
	uint64_t bit = 1ULL << member;
	uint32_t key = 0, i = 0;

	for (; i < n; i++) {
		const struct sw_sent *e = sent[i];

		if (!t || key != e->key) {
			key = e->key;
			t = &sh->tensors[sw_key_index(key)];
			if (t->mode != SW_MODE_SYNC || t->key != key)
				break;
			chunks = t->chunks;
		}
		sw_chunk_settle(&chunks[e->cell], bit, e->round);
	}
	return i;
}

uint32_t sw_shard_fate(struct sw_shard *sh, uint32_t member,
	const struct sw_sent *const *sent, uint32_t n, bool is_lost,
	bool *has_moved_far)
{
	struct sw_stensor *t = sw_shard_tensor(sh, sent[0]->key);
	uint32_t base = t ? t->base : 0;
	uint32_t run = is_lost ? 0 : settle_rounds(sh, member, sent, n);

	*has_moved_far = false;
	if (run)
		return run;
	sw_count(&sh->stats->lost, is_lost);
	while (++run < n && sent[run]->key == sent[0]->key && !is_lost)
		;
	if (!t) /* its group was closed */
		return run;
	t->rules->settle(sh, t, member, sent, run, is_lost);
	/* The base has entered another quarter of the window: a member that
	 * knows the last quarter has three quarters to use. */
	*has_moved_far = t->window && (base ^ t->base) & ~(t->window / 4 - 1);
	return run;
}
