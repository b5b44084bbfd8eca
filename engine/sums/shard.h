/* shard.h - the sums of one job on one server lcore.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * One lcore owns a shard. It allocates all memory of a tensor when it admits
 * the tensor; pushes, results and queries only move bytes and bits.
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
	SW_MAX_TENSORS = SW_KEY_INDICES, /* at a time in one job */
	/* Places for names in a table; at least half stay empty. */
	SW_SHARD_NAMES = 2 * SW_MAX_TENSORS,
};

struct sw_rules;

/* A group: the streams of one name, or a single tensor. It ends as a whole.
 * Only shard_group.c changes this struct; other files read it. */
struct sw_sgroup {
	uint64_t members; /* 0: no group lies here */
	uint64_t closed;  /* members that have closed it */
	uint32_t key;     /* its identifier: the key of its first stream */
	/* First round that fails, which never rises; 0: the group is live. In
	 * streams, every round fails. */
	uint32_t from;
	uint16_t streams, n_streams; /* newest, 1 + index; 0: a tensor */
	uint32_t ranks_crc;          /* coordinator: CRC of its ranks */
};

/* A tensor on this server. Only engine/sums writes the fields of this struct
 * and of struct sw_shard, except where a field says otherwise; the server reads
 * them. A PUSH touches cache lines 0 to 3, a RESULT 0 to 4. */
struct sw_stensor {
	/* The group whose identifier has this index. Members may declare a
	 * stream here before the first stream of its group, or without it. */
	_Alignas(64) struct sw_sgroup own;
	struct sw_sgroup *group;
	const struct sw_rules *rules; /* by mode; NULL: not admitted */
	uint8_t dtype, class, mode;
	/* Stream (stream.h): number of slots, a power of two, and the lowest
	 * chunk that is not done. A tensor has window 0. */
	uint32_t window, base;
	uint32_t key;
	uint32_t chunk_bytes, last_bytes; /* bytes of a full and of the last
					     chunk */
	uint32_t newest;                  /* newest round that was begun */
	uint32_t n_open;                  /* chunks that wait for members */
	struct sw_place_near near;        /* chunks of recent frames */
	struct sw_place place;
	union {                          /* by local index */
		struct sw_chunk *chunks; /* synchronous */
		uint8_t *records;        /* asynchronous: struct sw_kept;
					    stream: struct sw_slot */
	};
	uint8_t *acc[2]; /* by round & 1; the two are equal for rounded sums
			    and kept values */
	uint64_t acc_stride, res_stride; /* distance between chunks in bytes */
	const struct sw_sum_ops *ops;
	uint8_t *res[2]; /* results; equal to acc if sums are not rounded */
	/* Results to be sent (rules.h): the bitmap of member 0, and its
	 * distance in words to the bitmap of the next member. */
	struct sw_bitmap marks;
	uint32_t mark_stride;
	uint32_t n_ready;    /* members that have results to be sent */
	uint64_t members;    /* stream: members of its group */
	uint16_t next;       /* stream: the group's next, 1 + index; 0: none */
	uint32_t n_next_key; /* keys at this index below this are retired */
	/* Stream: chunks begun, and chunks pushed by each member. Done chunks
	 * count as pushed by all members. */
	uint32_t n_begun, *n_pushed;
	/* since_ns: when the wait began: a chunk began while no other was open,
	 * or a stream last completed a chunk.  first_ns: when the first
	 * contribution to the last sample arrived (sw_late_begin). */
	uint64_t since_ns, first_ns;
	uint32_t sample; /* local index of the last sample */
	/* Contributions of each member, slot by slot, if [job] order = rank;
	 * NULL: sums are in order of arrival. */
	uint8_t *apart;
	uint32_t n_apart; /* members of its group; 0: order of arrival */
	uint32_t first;   /* place on the line (place.h) */
	uint32_t priority;
	uint16_t declared_by; /* member that declared it first */
	uint64_t n_elems;
	void *mem;
	uint64_t mem_bytes;
	char name[SW_NAME_MAX];
};

_Static_assert(sizeof(struct sw_stensor) == 512, "found by a shift");

/* Position at which sw_shard_copy_lent continues. */
struct sw_lent {
	uint32_t index, local;
};

/* Packets touch the first two cache lines, then a member's weight and its
 * orders. */
struct sw_shard {
	struct sw_stensor *tensors; /* SW_MAX_TENSORS by index, aligned to
				       cache lines */
	struct sw_fault *whys; /* by index: why the group there has ended */
	struct sw_stats *stats;
	const struct sw_params *params;
	uint64_t expected; /* members that a sum needs */
	uint64_t no_crc;   /* members that send payloads without CRC */
	uint32_t seed;     /* seed of the other members' CRCs (sw_epoch_seed) */
	uint32_t n_members;
	struct sw_orders orders; /* tensor indices in the order of sending */
	uint64_t n_open;         /* chunks that wait for members */
	uint64_t n_slots;        /* the part of n_open in streams */
	uint64_t n_folded;       /* contributions folded */
	uint64_t n_done;         /* chunks completed */
	uint64_t n_lent; /* chunks that borrow their first contribution */
	struct sw_lent lent;
	const struct sw_env *env;
	const uint64_t *now_ns; /* the server's clock */
	/* Set by the server: accept no push that begins a chunk. */
	bool is_draining;
	uint16_t server_i;
	uint16_t weights[SW_MAX_MEMBERS]; /* weight of a push: the member's
					     local ranks */
	uint16_t first[SW_MAX_MEMBERS];   /* rank of local rank 0 */
	uint64_t ranked;                  /* members whose first is known */
	uint32_t n_ranks; /* ranks in the job; UINT32_MAX: not yet known */
	/* By member: orders that have results to send; the lowest is the most
	 * urgent (rules.h). */
	struct sw_bitmap ready[SW_MAX_MEMBERS];
	struct sw_bitmap streams, free; /* streams, free indices */
	struct sw_place_map *map;
	struct sw_place_job place;
	uint64_t line_bytes; /* bytes of all admitted tensors, on all servers */
	uint32_t n_tensors;
	uint64_t mem_bytes; /* memory of admitted tensors */
	uint32_t *by_name;  /* by hash of name: index + 1; 0: free */
	uint32_t *by_group; /* coordinator: by hash of a group's name */
	uint32_t n_keys;    /* 1 + highest index used so far */
	uint32_t last_key;  /* key admitted last; SW_KEY_NONE: none yet */
	/* By member: the delay of its contribution after the first one, in
	 * samples in which it was the last.  Samples are chunks that begin
	 * while no other is open, in every fourth round of a tensor, and one
	 * chunk per window of a stream. */
	struct sw_histogram late[SW_MAX_MEMBERS];
	/* By member: payload bytes folded, and payload bytes of results sent,
	 * which the server counts. */
	uint64_t push_bytes[SW_MAX_MEMBERS], result_bytes[SW_MAX_MEMBERS];
	/* a value rounded to a 16-bit type for sending */
	_Alignas(64) uint8_t rounded[SW_PAYLOAD_MAX];
};

/* sw_item_bytes - return the bytes that @item takes on the line; 0 for a
 * stream. */
static inline uint64_t sw_item_bytes(const struct sw_declare_item *item)
{
	return item->mode == SW_MODE_STREAM
		       ? 0
		       : item->n_elems * sw_dtype_bytes(item->dtype);
}

/* sw_shard_open - open an empty shard. The caller has checked @job and asked
 * env.mem_ready for sw_shard_bytes. @seed seeds payload CRCs (sw_epoch_seed).
 * @now_ns is borrowed: the time of the frame that is being handled.
 * Errors: SW_ENOMEM. */
int sw_shard_open(struct sw_shard *sh, const struct sw_params *params,
	const struct sw_env *env, struct sw_stats *stats,
	const struct sw_place_job *job, uint16_t server_i, uint32_t seed,
	const uint64_t *now_ns);

/* sw_shard_close - free the memory of some tensors; return true when all is
 * freed. The first call also ends every open chunk. */
bool sw_shard_close(struct sw_shard *sh);

/* sw_shard_bytes - return the memory of an empty shard with @n_members. */
uint64_t sw_shard_bytes(uint32_t n_members);

/* sw_shard_need - return the bytes that @item needs on this server.
 * Synchronous: two generations (16-bit types: an f32 accumulator and a result
 * each) and 64 per chunk. Asynchronous: one value (16-bit types: in f32) and 24
 * + 4 * members per chunk. Marks are added to both. */
uint64_t sw_shard_need(
	const struct sw_shard *sh, const struct sw_declare_item *item);

/* sw_shard_admit - allocate memory for one tensor and admit it. The caller has
 * checked @item; @item->key must be free. @name ends with a NUL; @member
 * declared the tensor first. The caller must kill a stream without memory for
 * its window (@has_memory false) at once.
 * Errors: SW_ENOMEM. */
int sw_shard_admit(struct sw_shard *sh, const struct sw_declare_item *item,
	const char *name, uint32_t member, bool has_memory);

/* sw_shard_named - return the admitted tensor called @name, or NULL. */
struct sw_stensor *sw_shard_named(const struct sw_shard *sh, const char *name);

/* sw_shard_tensor - return the admitted tensor with @key, or NULL. */
static inline struct sw_stensor *sw_shard_tensor(
	const struct sw_shard *sh, uint32_t key)
{
	struct sw_stensor *t = &sh->tensors[sw_key_index(key)];

	return t->rules && t->key == key ? t : NULL;
}

/* sw_shard_is_past - return whether @key is retired: all members have closed
 * its group, or a newer key has used its index. */
static inline bool sw_shard_is_past(const struct sw_shard *sh, uint32_t key)
{
	return key < sh->tensors[sw_key_index(key)].n_next_key;
}

/* sw_shard_is_free - return whether a new tensor may take @key. */
static inline bool sw_shard_is_free(const struct sw_shard *sh, uint32_t key)
{
	const struct sw_stensor *t = &sh->tensors[sw_key_index(key)];

	return !t->rules && (!t->own.members || t->own.key == key) &&
	       !sw_shard_is_past(sh, key);
}

/* sw_shard_is_busy - return whether the index of @key still holds an older
 * stream or group that some member has not closed. */
static inline bool sw_shard_is_busy(const struct sw_shard *sh, uint32_t key)
{
	const struct sw_stensor *t = &sh->tensors[sw_key_index(key)];

	return (t->rules && t->window && t->key < key) ||
	       (t->own.n_streams && t->own.key < key);
}

/* Keys given so far to a batch that is not yet admitted. */
struct sw_given {
	uint32_t n, last_key; /* number of keys, and the last key; SW_KEY_NONE:
				 none yet */
	uint64_t n_bytes;     /* bytes taken on the line */
};

/* sw_given_note - count the key of @item, given here or brought by a worker. */
static inline void sw_given_note(
	struct sw_given *g, const struct sw_declare_item *item)
{
	g->n++;
	g->last_key = item->key;
	g->n_bytes += sw_item_bytes(item);
}

/* sw_shard_give_key - give @item the next key and, unless it is a stream, a
 * place on the line; called by the coordinator. @before counts the items of
 * this batch that already have keys but are not admitted. item->key becomes
 * SW_KEY_NONE if there is no free key. */
void sw_shard_give_key(const struct sw_shard *sh, struct sw_declare_item *item,
	const struct sw_given *before);

/* A tensor or stream with chunks that wait for members. */
struct sw_shard_wait {
	uint32_t n_open; /* chunks that wait */
	bool is_stream;
	uint8_t kind;      /* stream: enum sw_coll_kind of the oldest chunk */
	uint32_t number;   /* stream: its collective; tensor: the round */
	uint64_t since_ns; /* time of the last progress */
	uint64_t lacks;    /* members that have not pushed some chunks */
	const char *name;  /* valid as long as the tensor */
};

/* Position at which sw_shard_next_wait continues; zeroed: at the beginning. */
struct sw_shard_look {
	uint32_t index, chunk; /* the tensor, and the chunk in it */
	uint32_t n_found;      /* open chunks of the tensor found so far */
	uint32_t round;        /* newest round of these chunks */
	uint64_t lacks;        /* members that these chunks lack */
};

/* sw_shard_next_wait - find the next tensor that waits for members.  Looks at
 * no more than *@budget tensors and chunks, and subtracts their number.
 * Returns false if the budget is used up, or no tensor is left: at->index is
 * then sh->n_keys. */
bool sw_shard_next_wait(const struct sw_shard *sh, struct sw_shard_look *at,
	uint32_t *budget, struct sw_shard_wait *out);

static inline bool sw_shard_has_crc(const struct sw_shard *sh, uint32_t member)
{
	return sh->params->has_crc && !(sh->no_crc >> member & 1);
}

/* sw_shard_join - record a member's local ranks, first rank, and whether its
 * payloads carry a CRC. sw_shard_rank - compute the first ranks of members 0,
 * 1, …, up to the first member that has not @joined. */
void sw_shard_join(
	struct sw_shard *sh, const struct sw_join *join, bool has_crc);
void sw_shard_rank(struct sw_shard *sh, uint64_t joined);

/* sw_shard_is_ranked - return whether the first rank of @member is known. */
static inline bool sw_shard_is_ranked(
	const struct sw_shard *sh, uint32_t member)
{
	return sh->ranked >> member & 1;
}

/* sw_shard_has_root - check a broadcast's root: the push of the root's member
 * carries bytes, all other pushes are empty. Returns true while @member's ranks
 * are unknown. After all members have joined, also checks that the root is a
 * rank of the job. */
static inline bool sw_shard_has_root(
	const struct sw_shard *sh, uint32_t member, const struct sw_header *h)
{
	uint32_t local = (uint32_t)h->aux - sh->first[member];

	return h->op != SW_ROUND_COPY || !sw_shard_is_ranked(sh, member) ||
	       (h->aux < sh->n_ranks &&
		       (h->payload_len > 0) == (local < sh->weights[member]));
}

/* sw_shard_rank_of - return the rank that messages show for @member: its first
 * rank. */
static inline uint16_t sw_shard_rank_of(
	const struct sw_shard *sh, uint32_t member)
{
	return sw_shard_is_ranked(sh, member) ? sh->first[member]
					      : (uint16_t)member;
}

static inline bool sw_stensor_is_dead(
	const struct sw_stensor *t, uint32_t round)
{
	uint32_t from = t->group->from;

	return from && (t->window || !sw_round_before(round, from));
}

/* sw_stensor_is_over - return whether @t is dead in @round, or @member has
 * closed its group. */
static inline bool sw_stensor_is_over(
	const struct sw_stensor *t, uint32_t round, uint32_t member)
{
	return sw_stensor_is_dead(t, round) || t->group->closed >> member & 1;
}

/* --- shard_group.c: groups --- */

/* sw_shard_place_of - return the place of the name @name in a hash table, or
 * the place to insert it. In by_group, only the part of the name before its
 * last '/' counts. */
uint32_t *sw_shard_place_of(
	const struct sw_shard *sh, uint32_t *table, const char *name);

/* sw_shard_group - return the group with identifier @key, or NULL.
 * sw_shard_group_named - at the coordinator, return the group of stream @name,
 * or NULL.
 * sw_shard_stream_group - find the first stream from index *@i on. Return its
 * group and set *@i to its index; return NULL if no stream follows. */
static inline struct sw_sgroup *sw_shard_group(
	const struct sw_shard *sh, uint32_t key)
{
	struct sw_sgroup *g = &sh->tensors[sw_key_index(key)].own;

	return g->members && g->key == key ? g : NULL;
}

struct sw_sgroup *sw_shard_group_named(
	const struct sw_shard *sh, const char *name);
struct sw_sgroup *sw_shard_stream_group(const struct sw_shard *sh, uint32_t *i);

/* sw_sgroup_why - return the fault that has ended @g, or the place to store it.
 * sw_sgroup_name - return the name of a stream of @g, or of the tensor. */
static inline struct sw_fault *sw_sgroup_why(
	const struct sw_shard *sh, const struct sw_sgroup *g)
{
	return &sh->whys[sw_key_index(g->key)];
}

const char *sw_sgroup_name(
	const struct sw_shard *sh, const struct sw_sgroup *g);

/* sw_shard_fault_text - describe fault @f of the job, or of the tensor or group
 * that it names.  Returns @out, which has SW_TEXT_MAX bytes. */
const char *sw_shard_fault_text(
	const struct sw_shard *sh, const struct sw_fault *f, char *out);

/* sw_sgroup_enter - put new tensor @t into its own group, or new stream @t into
 * the group with identifier t->first; create that group if it is new. */
void sw_sgroup_enter(struct sw_shard *sh, struct sw_stensor *t);

/* sw_sgroup_end - end @g from @round on for @why. Open chunks of these rounds
 * are abandoned; completed results are still sent. Returns false if these
 * rounds had already ended. */
bool sw_sgroup_end(struct sw_shard *sh, struct sw_sgroup *g, uint32_t round,
	const struct sw_fault *why);

/* sw_sgroup_waits_for - return a member that has pushed a chunk that @member
 * lacks; SW_MAX_MEMBERS if @member lacks none. */
uint32_t sw_sgroup_waits_for(
	const struct sw_shard *sh, const struct sw_sgroup *g, uint32_t member);

/* sw_sgroup_close - note that @members have closed @g; their later pushes are
 * stale. When all members have closed it or have @left, free its streams and
 * retire their keys. Returns true then, with the freed bytes in *bytes. */
bool sw_sgroup_close(struct sw_shard *sh, struct sw_sgroup *g, uint64_t members,
	uint64_t left, uint64_t *bytes);

/* State that the first contribution to a chunk and round has set. */
struct sw_begun {
	uint64_t got; /* members that have contributed; 0: the next push begins
			 the round */
	uint16_t root, step;
	uint8_t op;
	/* stream only */
	uint8_t dtype;
	uint32_t number;
};

/* Outcome of a run of PUSHes: the first n_held are in a sum, folded now or
 * before. verdict concerns the first push that is not, or else the last push.
 */
struct sw_pushed {
	uint32_t n_held;
	enum sw_push_verdict verdict;
	bool has_completed; /* results became ready for several members */
	bool has_again;     /* some were duplicates */
};

/* sw_shard_push - fold up to @n PUSHes of @member, in order; stop at the first
 * PUSH that is neither folded nor a duplicate. Payloads have h->payload_len
 * bytes at any alignment. A payload that is_lent must stay unchanged until
 * @member has received the result, or until sw_shard_copy_lent or
 * sw_shard_keep_stream has copied it. */
struct sw_pushed sw_shard_push(struct sw_shard *sh, uint32_t member,
	const struct sw_header *h, const struct sw_rx_frame *f, uint32_t n);

/* sw_shard_may_want - check that WANT @h is for a stream and that its chunks
 * lie within the window or are stale; count the reason if not. The caller then
 * pushes each of the chunks. */
bool sw_shard_may_want(const struct sw_shard *sh, const struct sw_header *h);

/* sw_shard_begun - return the collective that a push with verdict
 * SW_PUSH_DIFFERS differs from, or that holds the chunk of SW_PUSH_CLOSED. */
struct sw_begun sw_shard_begun(
	const struct sw_shard *sh, const struct sw_header *h);

/* sw_shard_other_call (shard_group.c) - look for collective @number of the
 * group on another stream of the group of @t, in the lowest and the newest
 * chunk of each. Returns the call that members make there; got is 0 if none was
 * found or @t is not a stream. */
struct sw_begun sw_shard_other_call(
	const struct sw_shard *sh, const struct sw_stensor *t, uint32_t number);

/* sw_shard_copy_lent - copy some borrowed contributions, while no push arrives;
 * return true when none is left. sw_shard_keep_stream - do the same for stream
 * @key, while other streams continue. */
bool sw_shard_copy_lent(struct sw_shard *sh);
bool sw_shard_keep_stream(struct sw_shard *sh, uint32_t key);

/* sw_shard_query - handle the query for one chunk. Returns true with @answer
 * filled; false if the result has been marked for sending, is in flight, or the
 * query is invalid. */
bool sw_shard_query(struct sw_shard *sh, uint32_t member,
	const struct sw_query *query, struct sw_answer *answer);

/* sw_shard_answer - build an answer of @kind about a chunk, or about a stream.
 */
struct sw_answer sw_shard_answer(const struct sw_shard *sh, uint32_t key,
	uint32_t round, uint32_t chunk, enum sw_answer_kind kind);

/* sw_shard_class - return the class of the tensor at @order; SW_N_CLASSES for
 * SW_BITMAP_NONE. */
static inline uint32_t sw_shard_class(const struct sw_shard *sh, uint32_t order)
{
	return order == SW_BITMAP_NONE
		       ? SW_N_CLASSES
		       : sh->tensors[sw_orders_at(&sh->orders, order)].class;
}

/* sw_result_is_stable - may the frame refer to the result's memory? An
 * asynchronous value may change before it leaves. A slot is reused only after
 * every receiver has acknowledged its result. */
static inline bool sw_result_is_stable(const struct sw_header *h)
{
	return h->op == SW_ROUND_SUM || sw_coll_kind_of(h->op);
}

/* sw_shard_take - take up to @n results for @member of the tensor at @order,
 * which must have one; an unstable one is the last. Fills payload, is_stable,
 * and key, round, chunk, step, weight, dtype, op, class, payload_len and
 * payload_crc of each header; zeroes the other fields of the header. Fills
 * @cells for sw_shard_fate. Returns how many. */
uint32_t sw_shard_take(struct sw_shard *sh, uint32_t member, uint32_t order,
	struct sw_tx_frame *out, uint32_t *cells, uint32_t n);

/* sw_shard_seal - return whether the result in @h, at local index @cell, is
 * encrypted where it lies; its payload_crc is then the era of the key. If it is
 * not, or if that era is too old (sw_era_is_old), note that the result is
 * encrypted under the key of @era from now on. Its bytes do not change
 * otherwise (sw_result_is_stable), and all receivers get the encrypted bytes.
 */
bool sw_shard_seal(struct sw_shard *sh, const struct sw_header *h,
	uint32_t cell, uint32_t era);

/* sw_shard_fate - settle the first of @n results sent to @member, and the
 * results behind it that can be settled with it, as arrived or lost; return how
 * many. *has_moved_far: a stream's window has moved so far that the server must
 * tell its members (sw_shard_answer). */
uint32_t sw_shard_fate(struct sw_shard *sh, uint32_t member,
	const struct sw_sent *const *sent, uint32_t n, bool is_lost,
	bool *has_moved_far);

#endif
