/* sched.h - the scheduler: choose the next part of a tensor to send.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * This is ByteScheduler's core (Peng et al., SOSP 2019, algorithm 1).  A task
 * (CommTask in the paper) is the communication of one tensor by any method.
 * The scheduler calls the task's @partition and @start.  The method calls
 * sw_task_ready when the tensor may be communicated, and sw_task_finish as its
 * bytes arrive.  While more than 0 bytes of credit are left, the scheduler
 * starts the next part of the most urgent ready task.  A part may overdraw the
 * credit, so that no part is too large to start.  Finished bytes return their
 * credit.
 *
 * The paper's scheduler hands parts to a network that cannot return them.
 * Methods here may still hold started parts.  So a more urgent task need not
 * wait for credit: if the policy allows, the scheduler takes back the parts
 * that were started last and have not been sent yet.
 *
 * Starvation is bounded: every SW_SCHED_TURN-th part belongs to the next task
 * in a round over all ready tasks.  With n ready tasks, each task starts a part
 * in any n * SW_SCHED_TURN.  In order of readiness no task starves.
 *
 * Thread: one.  Cost: O(log n) per part; no allocation after sw_sched_open.  An
 * invalid call of a method changes nothing and returns an error. */
#ifndef SW_ENGINE_SCHED_SCHED_H
#define SW_ENGINE_SCHED_SCHED_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/stats.h"
#include "engine/sched/policy.h"

enum {
	SW_SCHED_TURN = 32,
	/* Approximate bytes and parts that one sw_sched_run starts; a row
	 * (partition) counts as one part. */
	SW_SCHED_RUN_BYTES = 4 << 20,
	SW_SCHED_RUN_PARTS = 256,
};

struct sw_task;

struct sw_task_ops {
	/* Return how many bytes to start together at @from: about @unit, at
	 * least 1, at most the remaining bytes.  @unit is the size of all parts
	 * that would follow each other (a row), so that one lookup serves
	 * several parts. */
	uint64_t (*partition)(
		const struct sw_task *task, uint64_t from, uint64_t unit);
	/* Begin to communicate @bytes at @from.  May call sw_task_finish. */
	void (*start)(struct sw_task *task, uint64_t from, uint64_t bytes);
	/* Take back about @bytes of those started last and not sent yet.  Leave
	 * at least one piece, so that the task continues in its turn.  Return
	 * how many bytes must be started again.  NULL: started bytes cannot be
	 * taken back. */
	uint64_t (*take_back)(struct sw_task *task, uint64_t bytes);
};

enum sw_task_state {
	SW_TASK_IDLE,    /* not ready, or finished */
	SW_TASK_READY,   /* queued: parts are left to start */
	SW_TASK_STARTED, /* all parts started, some unfinished */
};

/* Embedded in the method's struct for a tensor. */
struct sw_task {
	const struct sw_task_ops *ops;
	uint64_t bytes;    /* at least 1 */
	uint32_t priority; /* 0 most urgent */
	/* The scheduler owns the fields below. */
	enum sw_task_state state;
	uint32_t at;                /* index in the heap */
	uint64_t sequence;          /* order of readiness */
	uint64_t started, finished; /* bytes */
	struct sw_task *prev,
		*next; /* list of ready tasks, next in turn first */
};

struct sw_sched {
	const struct sw_policy *policy;
	uint64_t part_bytes; /* may change at any time */
	int64_t credit;      /* credit left; below 0: overdrawn */
	uint64_t limit;      /* limit of the credit */
	uint64_t n_sequence, n_starts;
	struct sw_task **heap; /* ready tasks, by priority, then readiness */
	uint32_t n_heap, size;
	bool is_short; /* tasks wait for credit, since short_ns */
	uint64_t short_ns;
	const uint64_t *now_ns; /* set by sw_sched_watch; NULL: no counting */
	struct sw_stats *stats;
	struct sw_task *oldest, *newest;
	struct sw_task *last; /* whose last parts may be taken back, or NULL */
};

/* sw_sched_open - open a scheduler without tasks.
 * @max_tasks  the most tasks ready at once
 * Errors: SW_EINVAL @max_tasks is 0, SW_ENOMEM. */
int sw_sched_open(
	struct sw_sched *s, const struct sw_policy *policy, uint32_t max_tasks);

/* sw_sched_policy - return the current policy.
 * sw_sched_tuning - return the policy and its numbers. */
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

/* sw_sched_close - forget all tasks and free the memory. */
void sw_sched_close(struct sw_sched *s);

/* sw_sched_set - switch to a policy and its numbers from the next part on; 0:
 * the policy's default.  Parts are at most SW_SCHED_RUN_BYTES.  Bytes in flight
 * stay charged.  O(1): the queues of ready tasks do not change.  So if the new
 * policy orders by readiness, a task that has started a part in turn, or lost
 * parts to take_back, goes after tasks that became ready later.
 * Errors: SW_EINVAL (sw_sched_check says why), and nothing changes. */
int sw_sched_set(struct sw_sched *s, const struct sw_policy *policy,
	uint64_t part_bytes, uint64_t credit_bytes);

/* sw_sched_check - return NULL, or a static text that says why the numbers are
 * invalid: out of range, with the range, or fixed by the policy.  0 means the
 * policy's default. */
const char *sw_sched_check(const struct sw_policy *policy, uint64_t part_bytes,
	uint64_t credit_bytes);

/* sw_task_ready - queue a task whose tensor may be communicated.  The caller
 * has set ops, bytes and priority.  sw_sched_run starts the parts.
 * Errors: SW_EBUSY already ready or started, SW_EINVAL no bytes, SW_ENOMEM more
 * than max_tasks are ready. */
int sw_task_ready(struct sw_sched *s, struct sw_task *t);

/* sw_task_extend - add @bytes that may be communicated to a task in any state.
 * The caller has set ops and priority.  Errors: as for sw_task_ready, without
 * SW_EBUSY. */
int sw_task_extend(struct sw_sched *s, struct sw_task *t, uint64_t bytes);

/* sw_sched_run - start parts as far as the credit and the limits of one call
 * allow.  Call again when some of the parts have finished.  Returns the number
 * of parts started. */
uint32_t sw_sched_run(struct sw_sched *s);

/* sw_sched_watch - count in @st how often and how long tasks are ready without
 * credit, by the clock *now_ns.  Both are borrowed. */
static inline void sw_sched_watch(
	struct sw_sched *s, const uint64_t *now_ns, struct sw_stats *st)
{
	s->now_ns = now_ns;
	s->stats = st;
}

/* sw_task_finish - note that @bytes of the started bytes have finished.  The
 * task is idle after its last byte.  Errors: SW_EPROTO more bytes than were
 * started (finished twice, or after a cancel). */
int sw_task_finish(struct sw_sched *s, struct sw_task *t, uint64_t bytes);

/* sw_task_cancel - forget a task and return the credit of its started bytes. */
void sw_task_cancel(struct sw_sched *s, struct sw_task *t);

#endif
