/* shard.h - the sums of one job on one server lcore.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Owned by one lcore.  All memory is taken when a batch of tensors is
 * admitted; pushes, results and queries only move bytes and bits.
 */
#ifndef SW_ENGINE_SUMS_SHARD_H
#define SW_ENGINE_SUMS_SHARD_H

#include "engine/base/bitmap.h"
#include "engine/base/env.h"
#include "engine/base/params.h"
#include "engine/base/stats.h"
#include "engine/sched/order.h"
#include "engine/sched/place.h"
#include "engine/sums/cell.h"
#include "engine/wire/wire.h"
#include "engine/wire/coll.h"
#include "sum/sum.h"

enum {
	SW_MAX_TENSORS = SW_KEY_INDICES, /* of a job, at a time */
	SW_MAX_ORDERS = SW_ORDERS_EACH * SW_MAX_TENSORS,
};

struct sw_rules;

/* A tensor here; its fields, and those of the shard, are this room's own.  What
 * packets touch is in its first lines: a PUSH in 0 to 3, a RESULT in 0 to 4. */
struct sw_stensor {
	_Alignas(64) const struct sw_rules *rules; /* of its mode; NULL: not
						      admitted */
	uint32_t dead_from; /* rounds from this one on fail; 0: none does */
	uint8_t dtype, class, mode;
	bool is_fifo; /* pushed so: goes by readiness from the next mark on */
	/* Of a stream (stream.h): its slots, a power of two, and the lowest
	 * chunk that is not done; window 0: it is a tensor. */
	uint32_t window, base;
	uint32_t chunk_bytes, last_bytes; /* of a full and of the last chunk */
	uint64_t closed; /* of a stream: members that have closed its group */
	uint32_t key;    /* of the last that was here, after its end, too */
	uint32_t newest; /* round that was begun last */
	uint32_t n_open; /* chunks that wait for members */
	struct sw_place_near near; /* chunks that frames were about */
	struct sw_place place;
	union {                          /* by local index */
		struct sw_chunk *chunks; /* synchronous */
		uint8_t *records;        /* asynchronous: struct sw_kept; of a
					    stream: struct sw_slot */
	};
	uint8_t *acc[2]; /* by round & 1; both the same where a sum is rounded
			    and where a value is kept */
	uint64_t acc_stride, res_stride; /* bytes from chunk to chunk */
	const struct sw_sum_ops *ops;
	uint8_t *res[2]; /* the results; equal to acc where it is not */
	/* Results that are not sent yet: the bitmap of member 0, and words from
	 * there to that of the next one (rules.h). */
	struct sw_bitmap marks;
	uint32_t mark_stride;
	uint32_t n_ready; /* members with marks */
	/* Of a stream: its group; the stream before it of a group of the same
	 * hash. */
	uint64_t members;
	uint32_t kin; /* 1 + its index */
	/* Chunks that were begun, and of them those that each member has
	 * pushed: all have pushed what is done. */
	uint32_t n_begun, *n_pushed;
	/* Of one that is summed in order of members: what each of them gave,
	 * slot by slot; NULL: it is not. */
	uint8_t *apart;
	uint32_t n_apart; /* members of its group, 0: not summed so */
	uint32_t first;   /* its place on the line (place.h) */
	uint32_t priority;
	uint16_t declared_by; /* the member that declared it first */
	bool is_past;         /* it was closed by all, and is not here */
	int death;            /* why its rounds fail, as sw_fault_death says */
	uint64_t n_elems;
	void *mem;
	uint64_t mem_bytes;
	char name[SW_NAME_MAX];
	char why[SW_TEXT_MAX]; /* it is dead */
};

/* The chunk at which sw_shard_copy_lent goes on. */
struct sw_lent {
	uint32_t index, local;
};

/* What packets touch is in its first two lines, then a member's weight and its
 * orders. */
struct sw_shard {
	struct sw_stensor *tensors; /* by index; SW_MAX_TENSORS, in lines */
	struct sw_stats *stats;
	const struct sw_params *params;
	uint64_t expected; /* members whose contribution a sum waits for */
	uint64_t no_crc;   /* members whose payloads carry none */
	uint32_t seed;     /* of the others' CRCs (sw_epoch_seed) */
	uint32_t n_members;
	struct sw_orders orders; /* of indices */
	uint64_t n_open;         /* chunks that wait for members */
	uint64_t n_folded;       /* contributions */
	uint64_t n_lent; /* chunks whose first contribution is not copied */
	struct sw_lent lent;
	const struct sw_env *env;
	bool is_draining; /* no chunk begins to wait any more */
	uint16_t server_i;
	uint16_t weights[SW_MAX_MEMBERS]; /* of a push, by member: its local
					     ranks */
	uint16_t first[SW_MAX_MEMBERS];   /* the first one's rank, of */
	uint64_t ranked;                  /* these members */
	uint32_t n_ranks; /* of the job; UINT32_MAX: not all are known */
	struct sw_bitmap ready[SW_MAX_MEMBERS]; /* orders with marks */
	struct sw_bitmap streams, free; /* indices: of those; of nobody */
	struct sw_place_map map;
	struct sw_place_job place;
	uint64_t line_bytes; /* of all admitted tensors, here or not */
	uint32_t n_tensors;
	uint64_t mem_bytes; /* taken by admitted tensors */
	uint32_t *by_name;  /* index + 1, by hash; 0: no more of that hash */
	uint32_t *by_group; /* index + 1 of the last stream, by its group's */
	uint32_t n_keys;    /* no index in use was larger or equal */
	uint32_t last_key;  /* that was admitted; SW_KEY_NONE: none was */
	/* a value that is sent as a 16-bit type */
	_Alignas(64) uint8_t rounded[SW_PAYLOAD_MAX];
};

/* sw_item_bytes - that a tensor takes of the line; a stream none. */
static inline uint64_t sw_item_bytes(const struct sw_declare_item *item)
{
	return item->mode == SW_MODE_STREAM
		       ? 0
		       : item->n_elems * sw_dtype_bytes(item->dtype);
}

/* sw_shard_open - open an empty shard.  @job was checked, and env.mem_ready was
 * asked for sw_shard_bytes.  @seed is that of payload CRCs (sw_epoch_seed).
 * Errors: SW_ENOMEM. */
int sw_shard_open(struct sw_shard *sh, const struct sw_params *params,
	const struct sw_env *env, struct sw_stats *stats,
	const struct sw_place_job *job, uint16_t server_i, uint32_t seed);

/* sw_shard_close - give back memory, of some tensors in each call; true: all of
 * it.  Nothing is open any more from the first call on. */
bool sw_shard_close(struct sw_shard *sh);

/* sw_shard_bytes - what an empty one of @n_members takes. */
uint64_t sw_shard_bytes(uint32_t n_members);

/* sw_shard_need - bytes that a tensor takes here: two generations (for 16-bit
 * types an f32 accumulator and a result) and 64 per chunk, asynchronous one
 * value (for 16-bit types in f32) and 24 + 4 * members per chunk; and marks. */
uint64_t sw_shard_need(
	const struct sw_shard *sh, const struct sw_declare_item *item);

/* sw_shard_admit - take memory for one tensor; @item->key is free, its other
 * fields were checked.  @name has a NUL; @member declared it first.
 * Errors: SW_ENOMEM. */
int sw_shard_admit(struct sw_shard *sh, const struct sw_declare_item *item,
	const char *name, uint32_t member);

/* sw_shard_admit_without - the same, of a stream for which there is no room: it
 * has no window, and is to be killed at once. */
void sw_shard_admit_without(struct sw_shard *sh,
	const struct sw_declare_item *item, const char *name, uint32_t member);

/* sw_shard_named - the admitted tensor of that name, or NULL. */
struct sw_stensor *sw_shard_named(const struct sw_shard *sh, const char *name);

/* sw_shard_tensor - the admitted tensor that has @key, or NULL. */
static inline struct sw_stensor *sw_shard_tensor(
	const struct sw_shard *sh, uint32_t key)
{
	struct sw_stensor *t = &sh->tensors[sw_key_index(key)];

	return t->rules && t->key == key ? t : NULL;
}

/* sw_shard_is_past - was @key that of a stream that all have closed? */
static inline bool sw_shard_is_past(const struct sw_shard *sh, uint32_t key)
{
	const struct sw_stensor *t = &sh->tensors[sw_key_index(key)];

	return key < t->key || (key == t->key && t->is_past);
}

/* sw_shard_key_at - of the tensor that is at @index. */
static inline uint32_t sw_shard_key_at(
	const struct sw_shard *sh, uint32_t index)
{
	return sh->tensors[index].key;
}

/* sw_shard_is_free - may @key be a new one's? */
static inline bool sw_shard_is_free(const struct sw_shard *sh, uint32_t key)
{
	return !sh->tensors[sw_key_index(key)].rules &&
	       !sw_shard_is_past(sh, key);
}

/* sw_shard_is_busy - is a stream at the index of @key that not all have closed,
 * of an older key? */
static inline bool sw_shard_is_busy(const struct sw_shard *sh, uint32_t key)
{
	const struct sw_stensor *t = &sh->tensors[sw_key_index(key)];

	return t->rules && t->window && t->key < key;
}

/* What those outside see of a tensor. */
struct sw_stensor_view {
	uint32_t key, first, priority;
	uint8_t dtype, mode;
	uint64_t n_elems;
	uint32_t rank;          /* that declared it first (sw_shard_rank_of) */
	uint32_t dead_from;     /* the round; 0: it is not dead */
	int death;              /* then, as sw_fault_death says */
	uint64_t closed;        /* members that have closed its group */
	const char *name, *why; /* as long as the tensor; SW_TEXT_MAX bytes */
};

/* sw_stensor_view - of @t, which is of @sh. */
struct sw_stensor_view sw_stensor_view(
	const struct sw_shard *sh, const struct sw_stensor *t);

/* What a batch was given so far. */
struct sw_given {
	uint32_t n, last_key; /* the last one, SW_KEY_NONE: none was ever */
	uint64_t n_bytes;     /* of the line */
};

/* sw_given_note - @item was given a key, or a worker brought one. */
static inline void sw_given_note(
	struct sw_given *g, const struct sw_declare_item *item)
{
	g->n++;
	g->last_key = item->key;
	g->n_bytes += sw_item_bytes(item);
}

/* sw_shard_give_key - the coordinator: the next key, and with it a place on the
 * line but for a stream, for @item; @before it others were given some, and are
 * not admitted yet.  SW_KEY_NONE: there is none. */
void sw_shard_give_key(const struct sw_shard *sh, struct sw_declare_item *item,
	const struct sw_given *before);

/* sw_shard_line - places on the line begin below this one. */
static inline uint32_t sw_shard_line(const struct sw_shard *sh)
{
	return sw_place_line(&sh->map);
}

/* sw_shard_mem_bytes - what the admitted tensors take. */
static inline uint64_t sw_shard_mem_bytes(const struct sw_shard *sh)
{
	return sh->mem_bytes;
}

/* sw_shard_n_open - chunks that wait for members. */
static inline uint64_t sw_shard_n_open(const struct sw_shard *sh)
{
	return sh->n_open;
}

/* sw_shard_n_folded - contributions so far. */
static inline uint64_t sw_shard_n_folded(const struct sw_shard *sh)
{
	return sh->n_folded;
}

/* sw_shard_drain - from now on no chunk begins to wait for members. */
static inline void sw_shard_drain(struct sw_shard *sh)
{
	sh->is_draining = true;
}

static inline bool sw_shard_has_crc(const struct sw_shard *sh, uint32_t member)
{
	return sh->params->has_crc && !(sh->no_crc >> member & 1);
}

/* sw_shard_join - a member is what it says of itself; does its payload carry a
 * CRC?  sw_shard_rank - count local ranks through, as far as all members have
 * @joined. */
void sw_shard_join(
	struct sw_shard *sh, const struct sw_join *join, bool has_crc);
void sw_shard_rank(struct sw_shard *sh, uint64_t joined);

/* sw_shard_is_ranked - is the first rank of @member known? */
static inline bool sw_shard_is_ranked(
	const struct sw_shard *sh, uint32_t member)
{
	return sh->ranked >> member & 1;
}

/* sw_shard_has_root - are a broadcast's bytes from the node of its root, and
 * from no other?  That is not known before @member's ranks are.  When all have
 * joined, also: is there such a rank? */
static inline bool sw_shard_has_root(
	const struct sw_shard *sh, uint32_t member, const struct sw_header *h)
{
	uint32_t local = (uint32_t)h->aux - sh->first[member];

	return h->op != SW_ROUND_COPY || !sw_shard_is_ranked(sh, member) ||
	       (h->aux < sh->n_ranks &&
		       (h->payload_len > 0) == (local < sh->weights[member]));
}

/* sw_shard_rank_of - the rank by which a person knows @member: its first. */
static inline uint32_t sw_shard_rank_of(
	const struct sw_shard *sh, uint32_t member)
{
	return sw_shard_is_ranked(sh, member) ? sh->first[member] : member;
}

static inline bool sw_stensor_is_dead(
	const struct sw_stensor *t, uint32_t round)
{
	return t->dead_from &&
	       (t->window || !sw_round_before(round, t->dead_from));
}

/* sw_shard_kill - rounds of @t from @round on fail with @death
 * (sw_fault_death), as @why says: what is open of them is given up, what is
 * done before is still sent.  Returns whether that is new. */
bool sw_shard_kill(struct sw_shard *sh, struct sw_stensor *t, uint32_t round,
	int death, const char *why);

/* sw_shard_kin - the streams of the group that the stream called @name is of:
 * the key of the one behind @last, or of the first one for SW_KEY_NONE.
 * sw_shard_next_stream - from index @i on, the next one of any.  SW_KEY_NONE:
 * there is none. */
uint32_t sw_shard_kin(
	const struct sw_shard *sh, const char *name, uint32_t last);
static inline uint32_t sw_shard_next_stream(
	const struct sw_shard *sh, uint32_t i)
{
	_Static_assert(SW_BITMAP_NONE == SW_KEY_NONE, "one word for none");
	return sw_bitmap_next(&sh->streams, i);
}

/* sw_shard_waits_for (shard_group.c) - a member that has pushed to stream @t
 * while @member lacks a chunk; SW_MAX_MEMBERS: @member lacks none. */
uint32_t sw_shard_waits_for(const struct sw_stensor *t, uint32_t member);

/* sw_shard_close_stream (shard_group.c) - @members have closed the group of @t:
 * what still comes from them is of the past.  When all have, but those that
 * @left, it is over: its key is past, its index free for another one.  Returns
 * whether that is so; *bytes are then those of its window. */
bool sw_shard_close_stream(struct sw_shard *sh, struct sw_stensor *t,
	uint64_t members, uint64_t left, uint64_t *bytes);

/* sw_stensor_is_over - the same, or has @member closed its group? */
static inline bool sw_stensor_is_over(
	const struct sw_stensor *t, uint32_t round, uint32_t member)
{
	return sw_stensor_is_dead(t, round) || t->closed >> member & 1;
}

/* What the first contribution to a chunk and round began. */
struct sw_begun {
	uint64_t got; /* members that are in it; 0: it begins with this one */
	uint16_t root, step;
	uint8_t op;
	bool has_root; /* its bytes are there, and may not come again */
	/* of a stream */
	uint8_t dtype;
	uint16_t bytes; /* 0: none came yet */
	uint32_t number;
};

/* What became of PUSHes: so many, from the first on, are folded, now or before;
 * the verdict is that of the one behind them, or of the last. */
struct sw_pushed {
	uint32_t n_held;
	enum sw_push_verdict verdict;
	bool has_completed; /* results are ready for several */
	bool has_again;     /* some were folded before */
};

/* sw_shard_push - handle PUSHes of @member, one behind the other: @n, or up to
 * the first that is not folded, and was not before.  Payloads are
 * h->payload_len bytes at any alignment; one that is_lent stays where and as it
 * is until @member, if it gets one, has the result, or sw_shard_copy_lent says
 * so, so that it need not be copied. */
struct sw_pushed sw_shard_push(struct sw_shard *sh, uint32_t member,
	const struct sw_header *h, const struct sw_rx_frame *f, uint32_t n);

/* sw_shard_forget (shard.c) - @t, whose memory was given back, is over. */
void sw_shard_forget(struct sw_shard *sh, struct sw_stensor *t);

/* sw_shard_may_want - is @h, a WANT, of a stream, and of chunks none of which
 * lies beyond its window, or of the past?  Counts why not.  Then each of them
 * is pushed. */
bool sw_shard_may_want(const struct sw_shard *sh, const struct sw_header *h);

/* sw_shard_begun - what a push that SW_PUSH_DIFFERS differs from; in what it is
 * alone that SW_PUSH_CLOSED. */
struct sw_begun sw_shard_begun(
	const struct sw_shard *sh, const struct sw_header *h);

/* sw_shard_other_call (shard_group.c) - what members call on another stream of
 * the group of stream @t as collective @number of the group, as far as the
 * lowest and the newest chunk of each show; got is 0 where none does, and where
 * @t is no stream. */
struct sw_begun sw_shard_other_call(
	const struct sw_shard *sh, const struct sw_stensor *t, uint32_t number);

/* sw_shard_copy_lent - copy some of what is lent, while nothing more comes to
 * be; true: nothing is any more.  sw_shard_keep_stream - the same of the stream
 * @key, if there is one, while others go on. */
bool sw_shard_copy_lent(struct sw_shard *sh);
bool sw_shard_keep_stream(struct sw_shard *sh, uint32_t key);

/* sw_shard_query - decide about one queried chunk.  Returns true when @answer
 * was filled; else its result became ready, is on its way, or the request
 * makes no sense. */
bool sw_shard_query(struct sw_shard *sh, uint32_t member,
	const struct sw_query *query, struct sw_answer *answer);

/* sw_shard_answer - an answer of @kind about a chunk, or about a stream. */
struct sw_answer sw_shard_answer(const struct sw_shard *sh, uint32_t key,
	uint32_t round, uint32_t chunk, enum sw_answer_kind kind);

/* sw_shard_ready - the orders that have results for @member; the lowest is the
 * most urgent (rules.h). */
static inline const struct sw_bitmap *sw_shard_ready(
	const struct sw_shard *sh, uint32_t member)
{
	return &sh->ready[member];
}

/* sw_shard_class - class of that tensor; SW_N_CLASSES for SW_BITMAP_NONE. */
static inline uint32_t sw_shard_class(const struct sw_shard *sh, uint32_t order)
{
	return order == SW_BITMAP_NONE
		       ? SW_N_CLASSES
		       : sh->tensors[sw_orders_at(&sh->orders, order)].class;
}

/* sw_shard_take - a result of the tensor at @order for @member, which has one:
 * fills key, round, chunk, step, weight, dtype, op, class, payload_len,
 * payload_crc of @h, and *cell for sw_shard_fate.  Returns its bytes. */
const void *sw_shard_take(struct sw_shard *sh, uint32_t member, uint32_t order,
	struct sw_header *h, uint32_t *cell);

/* sw_shard_fate - of @n results that were sent to @member the first one, and
 * those of its tensor behind it, arrived or were lost; returns how many.
 * *has_moved_far: the window of a stream has, so that its members are to be
 * told (sw_shard_answer). */
uint32_t sw_shard_fate(struct sw_shard *sh, uint32_t member,
	const struct sw_sent *const *sent, uint32_t n, bool is_lost,
	bool *has_moved_far);

#endif
