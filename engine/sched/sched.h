/* sched.h - the scheduler: which part of which tensor goes next.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * ByteScheduler's core (Peng et al., SOSP 2019, algorithm 1).  A task, their
 * CommTask, is the communication of one tensor by whatever method: this core
 * calls its @partition and @start; the method calls sw_task_ready when the
 * tensor may be communicated and sw_task_finish as its bytes arrive.  The most
 * urgent ready task's next part starts while credit is left, more than 0 bytes
 * of it: a part may overdraw, so that none is too large to go.  Finished bytes
 * give their credit back.
 *
 * Theirs hands parts to a network that cannot be asked to return them; a method
 * of ours may still have what it was told to start.  So a more urgent task need
 * not wait until credit comes back: what was started last and has not left yet
 * is taken back, if the policy says so.
 *
 * Starvation is bounded: every SW_SCHED_TURN-th part is of the next task in a
 * round over all that are ready.  With n of them, each starts a part in any
 * n * SW_SCHED_TURN, whatever arrives.  (By readiness none starves.)
 *
 * One thread.  O(log n) per part, nothing is allocated after sw_sched_open.
 * Mistakes of a method change nothing; the error says which it was.
 */
#ifndef SW_ENGINE_SCHED_SCHED_H
#define SW_ENGINE_SCHED_SCHED_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/sched/policy.h"

enum {
	SW_SCHED_TURN = 32,
	/* What one sw_sched_run starts, about; a row counts as one part. */
	SW_SCHED_RUN_BYTES = 4 << 20,
	SW_SCHED_RUN_PARTS = 256,
};

struct sw_task;

struct sw_task_ops {
	/* Parts that follow each other are started as one: @unit below is that
	 * of all of them, so that what is looked up once serves more. */
	bool has_rows;
	/* Bytes of the part that begins @from bytes into the tensor, where
	 * parts of @unit are wanted: at least 1, at most what is left. */
	uint64_t (*partition)(
		const struct sw_task *task, uint64_t from, uint64_t unit);
	/* Begin to communicate these bytes.  May call sw_task_finish. */
	void (*start)(struct sw_task *task, uint64_t from, uint64_t bytes);
	/* Forget the last of what was started, about @bytes of it, as far as
	 * nothing of it has left; one piece at least stays, so that the task
	 * goes on in its turn.  Returns how many bytes will be started again.
	 * NULL: what is started has left. */
	uint64_t (*take_back)(struct sw_task *task, uint64_t bytes);
};

enum sw_task_state {
	SW_TASK_IDLE,    /* not ready, or done */
	SW_TASK_READY,   /* in the queue: parts are left to start */
	SW_TASK_STARTED, /* all parts are started, not all finished */
};

/* Embedded in what the method keeps for a tensor. */
struct sw_task {
	const struct sw_task_ops *ops;
	uint64_t bytes;    /* at least 1 */
	uint32_t priority; /* 0 most urgent */
	/* The rest is the scheduler's. */
	enum sw_task_state state;
	uint32_t at;                /* in the heap */
	uint64_t sequence;          /* of readiness */
	uint64_t started, finished; /* bytes */
	struct sw_task *prev,
		*next; /* of those ready, the next in turn first */
};

struct sw_sched {
	const struct sw_policy *policy;
	uint64_t part_bytes; /* may be set at any time */
	int64_t credit;      /* left; below 0: overdrawn */
	uint64_t limit;      /* of the credit */
	uint64_t n_sequence, n_starts;
	struct sw_task **heap; /* those ready, by priority; and by readiness: */
	uint32_t n_heap, size;
	struct sw_task *oldest, *newest;
	struct sw_task *last; /* what may be taken back is of it, or NULL */
};

/* sw_sched_open - @max_tasks  that may be ready at once
 * Errors: SW_EINVAL @max_tasks is 0, SW_ENOMEM. */
int sw_sched_open(
	struct sw_sched *s, const struct sw_policy *policy, uint32_t max_tasks);

/* sw_sched_policy - that in use; sw_sched_tuning - and its numbers. */
static inline const struct sw_policy *sw_sched_policy(const struct sw_sched *s)
{
	return s->policy;
}

static inline struct sw_job_tuning sw_sched_tuning(const struct sw_sched *s)
{
	return (struct sw_job_tuning){.policy = s->policy,
		.part_bytes = s->part_bytes,
		.credit_bytes = s->limit};
}

/* sw_sched_close - all tasks are forgotten. */
void sw_sched_close(struct sw_sched *s);

/* sw_sched_set - another policy and its numbers, from the next part on; 0 for
 * what the policy says.  Larger parts are of SW_SCHED_RUN_BYTES.  What is on
 * its way stays charged.  Tasks are not touched, however many are ready; those
 * of which a part was started in turn, or taken back, are behind the others of
 * their time if tasks go by readiness then.
 * Errors: SW_EINVAL (sw_sched_check says why); nothing changes then. */
int sw_sched_set(struct sw_sched *s, const struct sw_policy *policy,
	uint64_t part_bytes, uint64_t credit_bytes);

/* sw_sched_check - NULL, or why these numbers cannot be: too small or large,
 * with the range, or fixed by the policy.  0: the policy's own.  Static. */
const char *sw_sched_check(const struct sw_policy *policy, uint64_t part_bytes,
	uint64_t credit_bytes);

/* sw_task_ready - its tensor may be communicated.  ops, bytes and priority
 * are set.  Starts nothing: sw_sched_run does.
 * Errors: SW_EBUSY it is ready or started already, SW_EINVAL no bytes,
 * SW_ENOMEM more than max_tasks. */
int sw_task_ready(struct sw_sched *s, struct sw_task *t);

/* sw_task_extend - @bytes more of it may be communicated; ops and priority are
 * set.  Errors: as of sw_task_ready, but for SW_EBUSY. */
int sw_task_extend(struct sw_sched *s, struct sw_task *t, uint64_t bytes);

/* sw_sched_run - start what the credit allows, of it as much as one call may:
 * the next one, when something of that was finished, goes on.  Returns the
 * number of parts. */
uint32_t sw_sched_run(struct sw_sched *s);

/* sw_task_finish - @bytes of what was started are finished.  The task is idle
 * after its last.  Errors: SW_EPROTO more than were started (finished twice,
 * or after it was cancelled). */
int sw_task_finish(struct sw_sched *s, struct sw_task *t, uint64_t bytes);

/* sw_task_cancel - forget it; what was started gives its credit back. */
void sw_task_cancel(struct sw_sched *s, struct sw_task *t);

#endif
