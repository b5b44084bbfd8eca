/* oracle_async.c - check every answer about an asynchronous tensor.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Base-4 digit w of every element says how far member w is: after its round r
 * the digit is 1 + (r + x) % 3, with x drawn from tensor and element. The first
 * value has all digits of round 1. The delta of round r moves the member's own
 * digit from r - 1 to r. So a lost, duplicate, foreign or reordered delta shows
 * in its digit at once.
 */
#include <stdio.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "test/sim/job.h"

/* Return the digit of a member after its round @r (from 1). */
static int64_t digit(
	const struct sim_job *job, uint32_t tensor, uint32_t r, uint64_t elem)
{
	uint64_t x = job->seed ^ (uint64_t)tensor << 48 ^ elem;

	return 1 + (int64_t)((r + test_random(&x) % 3) % 3);
}

/* Return @worker's push in its round @r: the root's first value, or a delta. */
static uint64_t contribution(const struct sim_job *job, uint32_t worker,
	uint32_t tensor, uint32_t r, uint64_t elem)
{
	int64_t d = digit(job, tensor, r, elem), v = 0;
	uint32_t i = sim_job_of(job, worker);

	if (r > 1)
		return sim_oracle_encode(
			job->dtype, (d - digit(job, tensor, r - 1, elem)) *
					    (INT64_C(1) << 2 * worker));
	for (uint32_t w = i; w < job->n_workers; w += job->n_jobs)
		v += d << 2 * w;
	return sim_oracle_encode(job->dtype, v);
}

void sim_async_fill(struct sim_worker *w, uint32_t tensor, uint32_t local)
{
	const struct sim_job *job = w->job;
	uint8_t *p = w->from[local][tensor];
	bool is_copy = sim_oracle_is_copy(w, tensor);

	for (uint32_t e = 0; e < job->n_elems[tensor];
		e++, p += job->elem_bytes) {
		uint64_t v = contribution(
			job, w->rank, tensor, w->round[tensor] + 1, e);

		if (!sim_oracle_has_share(w, tensor, local, is_copy, e))
			v = 0;
		memcpy(p, &v, job->elem_bytes);
	}
}

/* Count elements among the @n at @p that differ from @worker's push in its
 * round @r; the first is element @from of the tensor. */
static uint64_t wrong_in_push(const struct sim_job *job, const uint8_t *p,
	uint32_t worker, uint32_t tensor, uint32_t r, uint64_t from, uint64_t n)
{
	uint64_t wrong = 0;

	for (uint64_t e = 0; e < n; e++, p += job->elem_bytes) {
		uint64_t v = contribution(job, worker, tensor, r, from + e);

		wrong += !sim_elem_is(p, v, job->elem_bytes);
	}
	return wrong;
}

/* Set @r to the earliest and latest round of a member that servers may have
 * folded. */
static void span(const struct sim_worker *w, uint32_t tensor, uint32_t r[2])
{
	r[0] = (uint32_t)sw_max64(1, w->round[tensor]);
	r[1] = w->round[tensor] + 1;
}

/* Is @v a value after @worker's round @r? With @is_now, every other member's
 * digit must also be one that is possible now. */
static bool is_value(const struct sim_job *job, int64_t v, uint32_t worker,
	uint32_t tensor, uint32_t r, uint64_t elem, bool is_now)
{
	for (uint32_t w = 0; w < job->n_workers; w++, v >>= 2) {
		uint32_t at[2];

		if (sim_job_of(job, w) != sim_job_of(job, worker)) {
			if (v & 3)
				return false;
			continue;
		}
		span(&job->workers[w], tensor, at);
		if (w == worker) {
			if ((v & 3) != digit(job, tensor, r, elem))
				return false;
		} else if (!(v & 3) ||
			   (is_now &&
				   (v & 3) != digit(job, tensor, at[0], elem) &&
				   (v & 3) != digit(job, tensor, at[1], elem)))
			return false;
	}
	return v == 0;
}

static uint64_t wrong_in_value(const struct sim_job *job, const uint8_t *p,
	uint32_t worker, uint32_t tensor, uint32_t r, uint64_t from, uint64_t n,
	bool is_now)
{
	uint64_t wrong = 0;

	for (uint64_t e = 0; e < n; e++, p += job->elem_bytes)
		wrong += !is_value(job, sim_oracle_decode(job->dtype, p),
			worker, tensor, r, from + e, is_now);
	return wrong;
}

uint64_t sim_async_check(const struct sim_worker *w, uint32_t tensor)
{
	return wrong_in_value(w->job, w->data[tensor], w->rank, tensor,
		w->round[tensor] + 1, 0, w->job->n_elems[tensor], false);
}

/* Is the number of updates possible? It must lie between the rounds surely
 * folded and the rounds possibly folded. */
static bool is_count(const struct sim_job *job, uint32_t worker,
	uint32_t tensor, uint32_t count)
{
	uint32_t low = 1, high = 1;

	for (uint32_t w = sim_job_of(job, worker); w < job->n_workers;
		w += job->n_jobs) {
		uint32_t at[2];

		span(&job->workers[w], tensor, at);
		low += at[0] - 1;
		high += at[1] - 1;
	}
	return count >= low && count <= high;
}

uint64_t sim_async_on_tx(struct sim_job *job, const struct sw_tx_frame *t,
	uint32_t worker, uint32_t tensor, uint64_t first)
{
	uint32_t round = sw_load32(t->head + 20);
	uint64_t n = t->payload_len / job->elem_bytes;
	uint16_t low, high;

	if (t->head[3] == SW_PUSH)
		return wrong_in_push(
			job, t->payload, worker, tensor, round, first, n);
	memcpy(&low, t->head + 28, 2);
	memcpy(&high, t->head + 34, 2);
	return wrong_in_value(
		       job, t->payload, worker, tensor, round, first, n, true) +
	       !is_count(job, worker, tensor, low | (uint32_t)high << 16);
}
