/* sched.c - the scheduler: choose the next part of a tensor to send.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/sched/sched.h"

#include <stdlib.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/zeros.h"

/* --- the queue: a binary heap by priority, and a list by readiness ---
 *
 * Both hold all ready tasks under every policy, so a change of policy is O(1).
 */

static bool is_before(const struct sw_task *a, const struct sw_task *b)
{
	return a->priority != b->priority ? a->priority < b->priority
					  : a->sequence < b->sequence;
}

static void put_at(struct sw_sched *s, uint32_t at, struct sw_task *t)
{
	s->heap[at] = t;
	t->at = at;
}

static void sift_up(struct sw_sched *s, uint32_t at, struct sw_task *t)
{
	for (; at > 0 && is_before(t, s->heap[(at - 1) / 2]); at = (at - 1) / 2)
		put_at(s, at, s->heap[(at - 1) / 2]);
	put_at(s, at, t);
}

static void sift_down(struct sw_sched *s, uint32_t at, struct sw_task *t)
{
	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child + 1 < s->n_heap &&
			is_before(s->heap[child + 1], s->heap[child]))
			child++;
		if (child >= s->n_heap || !is_before(s->heap[child], t))
			break;
		put_at(s, at, s->heap[child]);
		at = child;
	}
	put_at(s, at, t);
}

static void heap_remove(struct sw_sched *s, struct sw_task *t)
{
	struct sw_task *last = s->heap[--s->n_heap];

	if (last == t)
		return;
	sift_up(s, t->at, last);
	sift_down(s, last->at, last);
}

static void list_add(struct sw_sched *s, struct sw_task *t)
{
	t->prev = s->newest;
	t->next = NULL;
	*(s->newest ? &s->newest->next : &s->oldest) = t;
	s->newest = t;
}

static void list_remove(struct sw_sched *s, struct sw_task *t)
{
	*(t->prev ? &t->prev->next : &s->oldest) = t->next;
	*(t->next ? &t->next->prev : &s->newest) = t->prev;
}

/* Return the next task by the policy. */
static struct sw_task *first(const struct sw_sched *s)
{
	return s->policy->by_priority ? s->heap[0] : s->oldest;
}

static void enqueue(struct sw_sched *s, struct sw_task *t)
{
	t->state = SW_TASK_READY;
	list_add(s, t);
	s->n_heap++;
	sift_up(s, s->n_heap - 1, t);
}

/* Stop considering @t for taking back. */
static void forget_task(struct sw_sched *s, const struct sw_task *t)
{
	if (s->last == t)
		s->last = NULL;
}

/* --- life and tuning --- */

int sw_sched_open(
	struct sw_sched *s, const struct sw_policy *policy, uint32_t max_tasks)
{
	*s = (struct sw_sched){.policy = policy,
		.part_bytes = policy->part_bytes,
		.credit = (int64_t)policy->credit_bytes,
		.limit = policy->credit_bytes,
		.size = max_tasks};
	if (!max_tasks)
		return SW_EINVAL;
	s->heap = sw_zeros_new(max_tasks * sizeof(struct sw_task *), false);
	return s->heap ? 0 : SW_ENOMEM;
}

void sw_sched_close(struct sw_sched *s)
{
	free(s->heap);
	*s = (struct sw_sched){0};
}

const char *sw_sched_check(const struct sw_policy *policy, uint64_t part_bytes,
	uint64_t credit_bytes)
{
	if (!policy)
		return "unknown policy";
	if ((part_bytes || credit_bytes) && !policy->is_tunable)
		return "this policy's partition and credit are fixed";
	if (part_bytes &&
		(part_bytes < SW_PART_MIN || part_bytes > SW_PART_MAX))
		return "a partition has 1 KiB to 64 GiB, given in bytes (4 MiB "
		       "is 4194304)";
	if (credit_bytes &&
		(credit_bytes < SW_CREDIT_MIN || credit_bytes > SW_CREDIT_TOP))
		return "a credit has 1 KiB to 1 TiB, given in bytes (4 MiB is "
		       "4194304)";
	return NULL;
}

int sw_sched_set(struct sw_sched *s, const struct sw_policy *policy,
	uint64_t part_bytes, uint64_t credit_bytes)
{
	uint64_t limit = credit_bytes;

	if (sw_sched_check(policy, part_bytes, credit_bytes))
		return SW_EINVAL;
	if (!limit)
		limit = policy->credit_bytes;
	s->credit += (int64_t)limit - (int64_t)s->limit;
	s->limit = limit;
	s->part_bytes = part_bytes ? sw_min64(part_bytes, SW_SCHED_RUN_BYTES)
				   : policy->part_bytes;
	s->policy = policy;
	return 0;
}

/* --- algorithm 1 --- */

int sw_task_ready(struct sw_sched *s, struct sw_task *t)
{
	if (t->state != SW_TASK_IDLE)
		return SW_EBUSY;
	if (!t->bytes)
		return SW_EINVAL;
	if (s->n_heap == s->size)
		return SW_ENOMEM;
	t->sequence = s->n_sequence++;
	t->started = t->finished = 0;
	enqueue(s, t);
	return 0;
}

int sw_task_extend(struct sw_sched *s, struct sw_task *t, uint64_t bytes)
{
	if (t->state == SW_TASK_IDLE) {
		t->bytes = bytes;
		return sw_task_ready(s, t);
	}
	if (t->state == SW_TASK_STARTED) {
		if (s->n_heap == s->size)
			return SW_ENOMEM;
		t->sequence = s->n_sequence++;
		enqueue(s, t);
	}
	t->bytes += bytes;
	return 0;
}

/* Return the most urgent task; every SW_SCHED_TURN-th time, return the next
 * task in a round over all ready tasks. */
static struct sw_task *next_task(struct sw_sched *s)
{
	struct sw_task *t = s->oldest;

	if (++s->n_starts % SW_SCHED_TURN || !s->policy->by_priority)
		return first(s);
	list_remove(s, t);
	list_add(s, t);
	return t;
}

/* Return the bytes of the parts of @t that would follow each other: up to the
 * next turn, while credit beyond @least is left. */
static uint64_t row_of(const struct sw_sched *s, const struct sw_task *t,
	uint64_t left, int64_t least)
{
	uint64_t n;

	if (left <= s->part_bytes || t != first(s))
		return s->part_bytes;
	n = (uint64_t)(s->credit - least - 1) / s->part_bytes;
	if (s->policy->by_priority)
		n = sw_min64(
			n, SW_SCHED_TURN - 1 - s->n_starts % SW_SCHED_TURN);
	return (n + 1) * s->part_bytes;
}

static void start_part(struct sw_sched *s, struct sw_task *t, int64_t least)
{
	uint64_t from = t->started, left = t->bytes - from;
	uint64_t unit = row_of(s, t, left, least);
	uint64_t bytes = t->ops->partition(t, from, unit);

	if (bytes == 0 || bytes > left)
		bytes = left;
	t->started += bytes;
	s->credit -= (int64_t)bytes;
	if (unit > s->part_bytes)
		s->n_starts += (bytes - 1) / s->part_bytes;
	s->last = t == first(s)
			  ? t
			  : NULL; /* do not take back a part started in turn */
	if (t->started == t->bytes) {
		heap_remove(s, t);
		list_remove(s, t);
		t->state = SW_TASK_STARTED;
	}
	t->ops->start(t, from, bytes);
}

/* Take back the parts started last, for a more urgent task.  Returns whether
 * credit is then left. */
static bool take_back(struct sw_sched *s)
{
	const struct sw_task *next = first(s);
	struct sw_task *t = s->last;
	uint64_t bytes;

	if (!s->policy->takes_back || !t || !t->ops->take_back ||
		next->priority >= t->priority || s->n_heap == s->size)
		return false;
	/* Another task may start a part in its turn meanwhile. */
	bytes = next->bytes - next->started + s->part_bytes;
	bytes = (bytes < s->limit ? bytes : s->limit) + (uint64_t)-s->credit;
	bytes = t->ops->take_back(t, bytes);
	if (!bytes)
		return false;
	t->started -= bytes;
	s->credit += (int64_t)bytes;
	if (t->state == SW_TASK_STARTED)
		enqueue(s, t);
	return s->credit > 0;
}

/* Count each time that tasks begin to wait for credit, and the time that they
 * wait. */
static __attribute__((noinline)) void note_short(struct sw_sched *s)
{
	bool is_short = s->n_heap && s->credit <= 0;

	if (is_short == s->is_short || !s->stats)
		return;
	s->is_short = is_short;
	if (is_short)
		sw_count(&s->stats->stalls_credit, 1);
	else
		sw_count(
			&s->stats->stalled_credit_ns, *s->now_ns - s->short_ns);
	s->short_ns = *s->now_ns;
}

uint32_t sw_sched_run(struct sw_sched *s)
{
	int64_t least = 0;
	uint32_t n = 0;

	if (s->credit > SW_SCHED_RUN_BYTES)
		least = s->credit - SW_SCHED_RUN_BYTES;
	for (; n < SW_SCHED_RUN_PARTS && s->n_heap &&
		(s->credit > least || (!least && take_back(s)));
		n++)
		start_part(s, next_task(s), least);
	if (s->n_heap || s->is_short)
		note_short(s);
	return n;
}

int sw_task_finish(struct sw_sched *s, struct sw_task *t, uint64_t bytes)
{
	if (t->state == SW_TASK_IDLE || bytes > t->started - t->finished)
		return SW_EPROTO;
	t->finished += bytes;
	s->credit += (int64_t)bytes;
	if (t->finished == t->bytes) {
		forget_task(s, t);
		t->state = SW_TASK_IDLE;
	}
	return 0;
}

void sw_task_cancel(struct sw_sched *s, struct sw_task *t)
{
	if (t->state == SW_TASK_READY) {
		heap_remove(s, t);
		list_remove(s, t);
	}
	forget_task(s, t);
	s->credit += (int64_t)(t->started - t->finished);
	t->finished = t->started;
	t->state = SW_TASK_IDLE;
}
