/* cell.h - the rules of a cell: what a push or a query means to a chunk.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A chunk has two cells, one for odd and one for even rounds.  The cell of
 * round r accumulates until the bits of all expected members are set, is then
 * done and never changes again, until a push of r + 2 recycles it, for which
 * r + 1 must be done.  That is safe: a member pushes r + 1 only when it holds
 * the result r, so when r + 1 is done, everybody holds r.
 *
 * A broadcast is a round whose operation is copy: the root's push carries the
 * bytes, the pushes of the others are empty and only say that they want them.
 * It is done when all have pushed, as a sum is: so members that do not agree on
 * the root all learn it in this round, and none has got a result before.
 *
 * Nothing here knows frames, time or memory; test/model/ checks the same rules
 * with every message lost, doubled and late.
 */
#ifndef SW_ENGINE_SUMS_CELL_H
#define SW_ENGINE_SUMS_CELL_H

#include <stdbool.h>
#include <stdint.h>

struct sw_cell {
	uint64_t got; /* members folded in */
	uint32_t round;
	uint32_t crc;      /* of the result, when done */
	uint16_t weight;   /* sum of the contributions' weights */
	uint16_t step;     /* of the first contribution */
	uint16_t root;     /* copy: the rank whose bytes it is */
	uint8_t op;        /* enum sw_round_kind */
	bool has_root : 1; /* copy: its bytes are in */
	bool is_done : 1;
};

/* All about one chunk at the server; one cache line. */
struct sw_chunk {
	_Alignas(64) struct sw_cell cell[2]; /* by round & 1 */
	uint64_t inflight;   /* members to whom the newest result is on its way:
				sent, and neither acknowledged nor lost */
	const uint8_t *lent; /* the first contribution of the open sum, where
				its sender has it: the second is added to it.
				NULL: it lies in the cell.  While a sum is open
				no other round can begin, so one is enough. */
};

_Static_assert(sizeof(struct sw_chunk) == 64, "one cache line");

/* What a push is to a chunk, and what a shard did with it. */
enum sw_push_verdict {
	SW_PUSH_FOLD,      /* new: fold it; it is folded */
	SW_PUSH_COMPLETE,  /* a shard: and results are ready for several */
	SW_PUSH_HAVE,      /* folded before, the sum is not complete */
	SW_PUSH_DONE,      /* the result is there: it wants that */
	SW_PUSH_OLD,       /* from a round that is over for everybody */
	SW_PUSH_VIOLATION, /* ahead of what this member may push */
	/* Only a shard says so. */
	SW_PUSH_CRC,     /* payload damaged: not acknowledged */
	SW_PUSH_DIFFERS, /* in step, operation or root from the first one;
			    or it is not that root's */
	SW_PUSH_CLOSED,  /* a member that it waits for has closed the group */
	SW_PUSH_DEAD,    /* its round has failed: acknowledge it, say why */
	SW_PUSH_DROP,    /* invalid; counted */
};

/* sw_push_is_held - is its contribution in a sum, now or since before? */
static inline bool sw_push_is_held(enum sw_push_verdict verdict)
{
	return verdict <= SW_PUSH_OLD;
}

/* sw_chunk_init - rounds start at 1. */
static inline void sw_chunk_init(struct sw_chunk *c)
{
	*c = (struct sw_chunk){.cell = {{.round = 0, .is_done = true},
				       {.round = UINT32_MAX, .is_done = true}}};
}

/* sw_chunk_is_blank - is it zeros, as memory comes?  Rounds of cell[1] are odd.
 */
static inline bool sw_chunk_is_blank(const struct sw_chunk *c)
{
	return !c->cell[1].round;
}

static inline bool sw_round_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

/* May the cell of @round - 2 be recycled for @round? */
static inline bool sw_cell_may_recycle(const struct sw_chunk *c, uint32_t round)
{
	const struct sw_cell *cell = &c->cell[round & 1];
	const struct sw_cell *other = &c->cell[~round & 1];

	return cell->round == round - 2 && cell->is_done &&
	       other->round == round - 1 && other->is_done;
}

/* sw_cell_judge_push - what a push of @round by @member is.  Changes nothing,
 * since the payload's CRC is checked after it and before the fold. */
static inline enum sw_push_verdict sw_cell_judge_push(
	const struct sw_chunk *c, uint32_t round, uint32_t member)
{
	const struct sw_cell *cell = &c->cell[round & 1];

	if (cell->round == round) {
		if (cell->is_done) /* nothing in it: there was no such round */
			return cell->got ? SW_PUSH_DONE : SW_PUSH_OLD;
		return cell->got >> member & 1 ? SW_PUSH_HAVE : SW_PUSH_FOLD;
	}
	if (sw_round_before(round, cell->round))
		return SW_PUSH_OLD;
	return sw_cell_may_recycle(c, round) ? SW_PUSH_FOLD : SW_PUSH_VIOLATION;
}

/* sw_cell_open - the cell for a push that is to be folded; recycles it if it
 * still holds @round - 2.  *is_first: its bytes are not a sum yet. */
static inline struct sw_cell *sw_cell_open(
	struct sw_chunk *c, uint32_t round, uint16_t step, bool *is_first)
{
	struct sw_cell *cell = &c->cell[round & 1];

	if (cell->round != round)
		*cell = (struct sw_cell){.round = round, .step = step};
	*is_first = !cell->got;
	return cell;
}

/* sw_cell_fold - note that @member was folded in.  Returns whether the bits
 * now cover @expected. */
static inline bool sw_cell_fold(struct sw_cell *cell, uint32_t member,
	uint16_t weight, uint64_t expected)
{
	cell->got |= 1ULL << member;
	cell->weight += weight;
	return (cell->got & expected) == expected;
}

/* sw_cell_is_for - has @member pushed for this result, which is done? */
static inline bool sw_cell_is_for(const struct sw_cell *cell, uint32_t member)
{
	return cell->is_done && cell->got >> member & 1;
}

/* sw_chunk_owed - the newest result that @member has pushed for, NULL before
 * the first.  What is sent to it is always this: older ones it holds. */
static inline const struct sw_cell *sw_chunk_owed(
	const struct sw_chunk *c, uint32_t member)
{
	uint32_t newer = sw_round_before(c->cell[0].round, c->cell[1].round);

	if (sw_cell_is_for(&c->cell[newer], member))
		return &c->cell[newer];
	return sw_cell_is_for(&c->cell[!newer], member) ? &c->cell[!newer] : 0;
}

/* sw_chunk_settle - the result of @round is not on its way to @member any more.
 * Returns whether it was, and is the newest that it is owed. */
static inline bool sw_chunk_settle(
	struct sw_chunk *c, uint32_t member, uint32_t round)
{
	const struct sw_cell *newer = &c->cell[~round & 1];
	uint64_t bit = 1ULL << member;

	if (!(c->inflight & bit) || c->cell[round & 1].round != round ||
		(newer->round == round + 1 && sw_cell_is_for(newer, member)))
		return false;
	c->inflight &= ~bit;
	return true;
}

enum sw_query_verdict {
	SW_QUERY_RESULT, /* it is there: send it */
	SW_QUERY_WAIT,   /* folded, others are missing */
	SW_QUERY_NEED,   /* not folded, whatever was acknowledged */
	SW_QUERY_GONE,   /* the member has pushed past it */
};

/* sw_cell_judge_query - decide the answer to @member, which waits for @round.
 */
static inline enum sw_query_verdict sw_cell_judge_query(
	const struct sw_chunk *c, uint32_t round, uint32_t member)
{
	const struct sw_cell *cell = &c->cell[round & 1];
	const struct sw_cell *other = &c->cell[~round & 1];

	if (cell->round != round)
		return sw_round_before(round, cell->round) ? SW_QUERY_GONE
							   : SW_QUERY_NEED;
	/* It pushed the next round, so it held this one. */
	if (other->round == round + 1 && other->got >> member & 1)
		return SW_QUERY_GONE;
	if (cell->is_done)
		return cell->got ? SW_QUERY_RESULT : SW_QUERY_GONE;
	return cell->got >> member & 1 ? SW_QUERY_WAIT : SW_QUERY_NEED;
}

/* sw_cell_missing - whom a member that was told WAIT for @round waits for. */
static inline uint64_t sw_cell_missing(
	const struct sw_chunk *c, uint32_t round, uint64_t expected)
{
	return expected & ~c->cell[round & 1].got;
}

#endif
