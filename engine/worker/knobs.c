/* knobs.c - a worker's knobs: its own, and the job's as they are committed.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/sched/knobs.h"

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/worker/worker.h"

static const struct sw_knobs *kept(const struct sw_worker *w, uint32_t number)
{
	return &w->knobs.kept[number % SW_KNOBS_KEPT];
}

/* Where there is a number to divide.  One that cannot be is left to the
 * scheduler to refuse. */
uint64_t sw_knobs_credit(const struct sw_worker *w,
	const struct sw_policy *policy, uint64_t credit_bytes)
{
	uint64_t whole = credit_bytes ? credit_bytes : policy->credit_bytes;

	if (w->n_lanes == 1 || !policy->is_tunable ||
		sw_sched_check(policy, 0, credit_bytes))
		return credit_bytes;
	return sw_max64(whole / w->n_lanes, SW_CREDIT_MIN);
}

int sw_worker_set_knobs(
	struct sw_worker *w, uint64_t part_bytes, uint64_t credit_bytes)
{
	int err = sw_sched_set(&w->sched, w->sched.policy, part_bytes,
		sw_knobs_credit(w, w->sched.policy, credit_bytes));

	if (err)
		return err;
	sw_lanes_set_knobs(w, part_bytes, credit_bytes);
	sw_sched_run(&w->sched, w->now_ns); /* there may be more credit */
	return 0;
}

int sw_worker_tune(struct sw_worker *w, const struct sw_policy *policy,
	uint64_t part_bytes, uint64_t credit_bytes)
{
	struct sw_worker_knobs *k = &w->knobs;

	if (sw_worker_end_of(w))
		return sw_worker_end_of(w);
	if (w->state != SW_WORKER_RUNNING)
		return SW_EAGAIN;
	if (sw_sched_check(policy, part_bytes, credit_bytes))
		return SW_EINVAL;
	k->wanted = (struct sw_knobs){.policy = policy,
		.part_bytes = part_bytes,
		.credit_bytes = credit_bytes};
	k->request++;
	k->is_asking = true;
	sw_link_request(w, &w->links[0]);
	return 0;
}

uint32_t sw_knobs_build_tune(struct sw_worker *w, struct sw_header *h)
{
	const struct sw_knobs *k = &w->knobs.wanted;
	struct sw_tune_ask ask = {.request = w->knobs.request,
		.policy = (uint8_t)sw_policy_id(k->policy),
		.part_bytes = k->part_bytes,
		.credit_bytes = k->credit_bytes};

	h->type = SW_TUNE;
	memcpy(w->payload, &ask, sizeof(ask));
	return sizeof(ask);
}

/* --- rounds --- */

bool sw_knobs_may_begin(const struct sw_worker *w, uint32_t round)
{
	return !w->knobs.limit || round <= w->knobs.limit || w->params.is_async;
}

/* One set after the other: not before the last one is in use. */
static void promise(struct sw_worker *w)
{
	struct sw_worker_knobs *k = &w->knobs;

	if (!k->proposal || k->limit || k->used != k->newest)
		return;
	k->limit = k->highest + SW_KNOBS_AHEAD;
	sw_link_owe(w, &w->links[0], SW_LINK_OWE_KEEPALIVE);
}

/* The newest set that is for this round. */
static const struct sw_knobs *knobs_of(
	const struct sw_worker *w, uint32_t round)
{
	uint32_t number = w->knobs.newest, n = 1;

	if (w->params.is_async)
		return kept(w, number);
	for (; number && n < SW_KNOBS_KEPT && kept(w, number)->from > round;
		n++)
		number--;
	return kept(w, number);
}

static void adopt(struct sw_worker *w, const struct sw_knobs *set)
{
	w->knobs.used = set->number;
	(void)!sw_sched_set(&w->sched, set->policy, set->part_bytes,
		sw_knobs_credit(w, set->policy, set->credit_bytes));
}

bool sw_knobs_use(struct sw_worker *w, const struct sw_knobs *set)
{
	if (set->number <= w->knobs.used)
		return false;
	adopt(w, set);
	return true;
}

void sw_knobs_copy(struct sw_worker *w, const struct sw_knobs *set)
{
	if (set->number < w->knobs.used)
		return;
	adopt(w, set);
	sw_sched_run(&w->sched, w->now_ns); /* there may be more credit */
}

const struct sw_knobs *sw_knobs_begin(struct sw_worker *w, uint32_t round)
{
	const struct sw_knobs *set = knobs_of(w, round);

	w->knobs.highest = (uint32_t)sw_max64(w->knobs.highest, round);
	if (sw_knobs_use(w, set)) {
		sw_count(&w->stats.knob_changes, 1);
		promise(w);
	}
	return set;
}

/* --- what the coordinator says --- */

/* What was held may go: nothing is proposed any more. */
static void release(struct sw_worker *w)
{
	for (uint32_t i = 0; i < w->n_tensors; i++)
		if (w->tensors[i].is_held)
			sw_tensors_start(w, &w->tensors[i]);
}

static void commit(struct sw_worker *w, const struct sw_status *st)
{
	struct sw_worker_knobs *k = &w->knobs;
	const struct sw_policy *policy = sw_policy_at(st->policy);

	if (st->number != k->newest + 1 ||
		st->from <= kept(w, k->newest)->from ||
		sw_sched_check(policy, st->part_bytes, st->credit_bytes)) {
		sw_worker_fail(w, SW_EPROTO, SW_KEY_NONE,
			"the coordinator committed knobs %u from round %u, "
			"which cannot be behind knobs %u",
			st->number, st->from, k->newest);
		return;
	}
	k->newest = st->number;
	k->kept[k->newest % SW_KNOBS_KEPT] =
		(struct sw_knobs){.number = st->number,
			.from = st->from,
			.policy = policy,
			.part_bytes = st->part_bytes,
			.credit_bytes = st->credit_bytes};
	k->proposal = k->limit = 0;
	if (w->params.is_async && sw_knobs_use(w, kept(w, k->newest)))
		sw_count(&w->stats.knob_changes, 1);
	release(w);
}

void sw_knobs_heard(struct sw_worker *w, const struct sw_status *st)
{
	struct sw_worker_knobs *k = &w->knobs;

	if (k->is_asking && st->request == k->request) {
		k->is_asking = false;
		sw_link_request(w, &w->links[0]);
	}
	if (st->number <= k->newest)
		return;
	if (st->from) {
		commit(w, st);
	} else if (st->number != k->proposal) {
		k->proposal = st->number;
		promise(w);
	}
}
