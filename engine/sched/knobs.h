/* knobs.h - policy, partition and credit of a running job.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * All members use the same set of knobs for the same round of a tensor.  The
 * coordinator numbers the sets and says from which round on one holds:
 *
 *   member        TUNE: these knobs, please
 *   coordinator   STATUS: number n is proposed, from = 0
 *   every member  KEEPALIVE: I begin no round above L before n is committed
 *   coordinator   STATUS: n holds from round max L + 1 on
 *
 * L is SW_KNOBS_AHEAD rounds above the highest that the member has begun, so
 * that nobody waits unless its rounds are shorter than the way to the
 * coordinator and back.  Since every member has promised, none can have begun
 * a round for which the set is when it is committed.  A coordinator that
 * vanishes ends the job, and with it every wait.  A member promises for a set
 * when the one before it is in use.
 *
 * Rounds are counted by tensor; a set is for the rounds of all tensors from
 * one number on.  The scheduler goes over to it, whole, with the first such
 * round; a round before it, of a tensor that is pushed less often, still goes
 * in the order of its own set.
 *
 * In an asynchronous job a member's rounds are its own, and may be any number
 * apart from those of others: there each goes over when it hears the commit,
 * and nobody waits.
 */
#ifndef SW_KNOBS_H
#define SW_KNOBS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/sched/policy.h"

enum {
	SW_KNOBS_AHEAD = 2, /* rounds that go on while a set is proposed */
	SW_KNOBS_KEPT = 8,  /* sets that a member knows; the oldest holds for
			       all rounds before it */
	SW_KNOBS_ROUND_MAX = UINT32_MAX - 16, /* of a promise */
};

struct sw_knobs {
	uint32_t number; /* 0: those of the JOINs */
	uint32_t from;   /* the first round they are for */
	const struct sw_policy *policy;
	uint64_t part_bytes, credit_bytes; /* 0: the policy's */
};

/* What a worker knows. */
struct sw_worker_knobs {
	struct sw_knobs kept[SW_KNOBS_KEPT]; /* by number, modulo */
	uint32_t newest;   /* number of the last that was committed */
	uint32_t used;     /* number of the scheduler's */
	uint32_t highest;  /* round of any tensor that has begun */
	uint32_t proposal; /* number; 0: none is open */
	uint32_t limit;    /* promised for it; 0: not yet */
	/* asked of the coordinator, until it has numbered it */
	bool is_asking;
	uint32_t request;
	struct sw_knobs wanted;
};

#endif
