/* cell.h - the rules of a cell: judge pushes and queries of a chunk.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A chunk has two cells, one for odd and one for even rounds. The cell of round
 * r accumulates until the bits of all expected members are set. It is then done
 * and does not change until a push of r + 2 recycles it, which requires that r
 * + 1 is done. Recycling is safe: a member pushes r + 1 only when it holds the
 * result of r, so when r + 1 is done, all members hold r.
 *
 * A broadcast is a round whose operation is copy: the root's push carries the
 * bytes, other members' pushes are empty and ask for the result. Like a sum, it
 * is done when all members have pushed. So if members disagree on the root, all
 * members learn of it in this round, before any member receives a result.
 *
 * The rules are independent of frames, time and memory. test/model/ checks the
 * same rules with every message lost, duplicated and late.
 */
#ifndef SW_ENGINE_SUMS_CELL_H
#define SW_ENGINE_SUMS_CELL_H

#include <stdbool.h>
#include <stdint.h>

struct sw_cell {
	uint64_t got; /* members whose contribution is folded */
	uint32_t round;
	uint32_t crc;      /* of the result when done; its era once encrypted */
	uint16_t weight;   /* sum of the weights of all contributions */
	uint16_t step;     /* step of the first contribution */
	uint16_t root;     /* copy: the root's rank */
	uint8_t op;        /* enum sw_round_kind */
	bool has_root : 1; /* copy: the root's bytes have arrived */
	bool is_done : 1;
	bool is_sealed : 1; /* done, and encrypted where it lies */
};

/* State of one chunk at the server; one cache line. */
struct sw_chunk {
	_Alignas(64) struct sw_cell cell[2]; /* by round & 1 */
	uint64_t inflight; /* members with the newest result in flight: sent,
			      neither acknowledged nor lost */
	/* The first contribution of the open sum, in its sender's buffer, until
	 * the second is added. NULL: it lies in the cell. One pointer is
	 * enough, because no other round begins while a sum is open. */
	const uint8_t *lent;
};

_Static_assert(sizeof(struct sw_chunk) == 64, "one cache line");

/* Verdict on a push, of the cell and of the shard. */
enum sw_push_verdict {
	SW_PUSH_FOLD,      /* new: fold it; from a shard: folded */
	SW_PUSH_COMPLETE,  /* from a shard: folded, and results are ready for
			      several members */
	SW_PUSH_HAVE,      /* duplicate; the sum is not complete */
	SW_PUSH_DONE,      /* duplicate; asks for the complete result */
	SW_PUSH_OLD,       /* stale: all members have finished the round */
	SW_PUSH_VIOLATION, /* ahead of what this member may push */
	/* Only a shard returns these. */
	SW_PUSH_CRC,     /* payload damaged: not acknowledged */
	SW_PUSH_DIFFERS, /* differs from the first push in step, operation or
			    root, or comes from the wrong root */
	SW_PUSH_CLOSED, /* a member that the chunk needs has closed the group */
	SW_PUSH_DEAD,   /* its round has failed: acknowledge it and send the
			   reason */
	SW_PUSH_DROP,   /* invalid; the shard has counted it */
};

/* sw_push_is_held - return whether the contribution is in a sum, by this push
 * or an earlier one. */
static inline bool sw_push_is_held(enum sw_push_verdict verdict)
{
	return verdict <= SW_PUSH_OLD;
}

/* sw_chunk_init - initialize @c for round 1. */
static inline void sw_chunk_init(struct sw_chunk *c)
{
	*c = (struct sw_chunk){.cell = {{.round = 0, .is_done = true},
				       {.round = UINT32_MAX, .is_done = true}}};
}

/* sw_chunk_is_blank - return whether @c is still zeroed memory: an initialized
 * cell[1] has an odd round. */
static inline bool sw_chunk_is_blank(const struct sw_chunk *c)
{
	return !c->cell[1].round;
}

static inline bool sw_round_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

/* Return whether @round may recycle the cell of @round - 2. */
static inline bool sw_cell_may_recycle(const struct sw_chunk *c, uint32_t round)
{
	const struct sw_cell *cell = &c->cell[round & 1];
	const struct sw_cell *other = &c->cell[~round & 1];

	return cell->round == round - 2 && cell->is_done &&
	       other->round == round - 1 && other->is_done;
}

/* sw_cell_judge_push - judge a push of @round by @member. Changes nothing,
 * because the caller checks the payload's CRC before it folds. */
static inline enum sw_push_verdict sw_cell_judge_push(
	const struct sw_chunk *c, uint32_t round, uint32_t member)
{
	const struct sw_cell *cell = &c->cell[round & 1];

	if (cell->round == round) {
		if (cell->is_done) /* empty: the initial round */
			return cell->got ? SW_PUSH_DONE : SW_PUSH_OLD;
		return cell->got >> member & 1 ? SW_PUSH_HAVE : SW_PUSH_FOLD;
	}
	if (sw_round_before(round, cell->round))
		return SW_PUSH_OLD;
	return sw_cell_may_recycle(c, round) ? SW_PUSH_FOLD : SW_PUSH_VIOLATION;
}

/* sw_cell_open - recycle the cell for the first push of @round, before that
 * push is folded. */
static inline void sw_cell_open(
	struct sw_cell *cell, uint32_t round, uint16_t step)
{
	*cell = (struct sw_cell){.round = round, .step = step};
}

/* sw_cell_fold - note that the contribution of the member with @bit is folded.
 * Returns whether all @expected members have contributed. */
static inline bool sw_cell_fold(
	struct sw_cell *cell, uint64_t bit, uint16_t weight, uint64_t expected)
{
	cell->got |= bit;
	cell->weight += weight;
	return (cell->got & expected) == expected;
}

/* sw_cell_is_for - return whether the result is done and @member has pushed for
 * it. */
static inline bool sw_cell_is_for(const struct sw_cell *cell, uint32_t member)
{
	return cell->is_done && cell->got >> member & 1;
}

/* sw_chunk_owed - return the newest result that @member has pushed for, or NULL
 * before the first. The server sends only this result, because the member holds
 * all older ones. */
static inline const struct sw_cell *sw_chunk_owed(
	const struct sw_chunk *c, uint32_t member)
{
	uint32_t newer = sw_round_before(c->cell[0].round, c->cell[1].round);

	if (sw_cell_is_for(&c->cell[newer], member))
		return &c->cell[newer];
	return sw_cell_is_for(&c->cell[!newer], member) ? &c->cell[!newer] : 0;
}

/* sw_chunk_settle - note that the result of @round is not in flight to the
 * member with @bit. Returns whether it was in flight and is the newest result
 * that the member needs. */
static inline bool sw_chunk_settle(
	struct sw_chunk *c, uint64_t bit, uint32_t round)
{
	const struct sw_cell *newer = &c->cell[~round & 1];

	if (!(c->inflight & bit) || c->cell[round & 1].round != round ||
		(newer->round == round + 1 && newer->is_done &&
			(newer->got & bit)))
		return false;
	c->inflight -= bit;
	return true;
}

enum sw_query_verdict {
	SW_QUERY_RESULT, /* complete: send the result */
	SW_QUERY_WAIT,   /* folded; other members are missing */
	SW_QUERY_NEED, /* not folded, even if it was acknowledged: push again */
	SW_QUERY_GONE, /* stale: the member has pushed a later round */
};

/* sw_cell_judge_query - judge the query of @member, which waits for @round. */
static inline enum sw_query_verdict sw_cell_judge_query(
	const struct sw_chunk *c, uint32_t round, uint32_t member)
{
	const struct sw_cell *cell = &c->cell[round & 1];
	const struct sw_cell *other = &c->cell[~round & 1];

	if (cell->round != round)
		return sw_round_before(round, cell->round) ? SW_QUERY_GONE
							   : SW_QUERY_NEED;
	/* The member pushed the next round, so it held this one. */
	if (other->round == round + 1 && other->got >> member & 1)
		return SW_QUERY_GONE;
	if (cell->is_done)
		return cell->got ? SW_QUERY_RESULT : SW_QUERY_GONE;
	return cell->got >> member & 1 ? SW_QUERY_WAIT : SW_QUERY_NEED;
}

/* sw_cell_missing - return the members that @round is missing, for
 * SW_QUERY_WAIT. */
static inline uint64_t sw_cell_missing(
	const struct sw_chunk *c, uint32_t round, uint64_t expected)
{
	return expected & ~c->cell[round & 1].got;
}

#endif
