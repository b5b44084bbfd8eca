/* drr.h - deficit round robin over jobs (RFC 7806 §4, SRR).
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * In its turn, a job may send SW_DRR_QUANTUM bytes per unit of its weight, and
 * finish the frame that exceeds this quota; its next turn pays the debt.  An
 * idle job saves up no credit.  So jobs with data share bytes by weight, to
 * within a frame per turn.  Finding the next job is O(1). */
#ifndef SW_ENGINE_SCHED_DRR_H
#define SW_ENGINE_SCHED_DRR_H

#include <stdbool.h>
#include <stdint.h>

enum {
	SW_MAX_JOBS = 8,
	SW_DRR_QUANTUM = 16384, /* bytes; more than a frame, so that a turn
				   pays for any debt */
	SW_MAX_WEIGHT = 100,
};

struct sw_drr {
	uint32_t ready; /* jobs with data to send */
	uint32_t turn;
	int32_t deficit[SW_MAX_JOBS]; /* bytes that the job may still send */
	uint32_t weight[SW_MAX_JOBS];
};

/* sw_drr_open - add an idle job; @weight 1…SW_MAX_WEIGHT. */
static inline void sw_drr_open(struct sw_drr *d, uint32_t job, uint32_t weight)
{
	d->ready &= ~(1u << job);
	d->deficit[job] = 0;
	d->weight[job] = weight;
}

/* sw_drr_set_weight - change the weight of a job from its next turn on. */
static inline void sw_drr_set_weight(
	struct sw_drr *d, uint32_t job, uint32_t weight)
{
	d->weight[job] = weight;
}

/* sw_drr_put - note whether the job has data to send. */
static inline void sw_drr_put(struct sw_drr *d, uint32_t job, bool is_ready)
{
	if (is_ready) {
		d->ready |= 1u << job;
		return;
	}
	d->ready &= ~(1u << job);
	if (d->deficit[job] > 0)
		d->deficit[job] = 0;
}

/* sw_drr_take - return the job that sends the next frame, SW_MAX_JOBS if all
 * are idle. */
static inline uint32_t sw_drr_take(struct sw_drr *d)
{
	uint32_t after;

	if (!d->ready)
		return SW_MAX_JOBS;
	if (d->ready >> d->turn & 1 && d->deficit[d->turn] > 0)
		return d->turn;
	after = d->ready & ~0u << (d->turn + 1);
	d->turn = (uint32_t)__builtin_ctz(after ? after : d->ready);
	d->deficit[d->turn] += (int32_t)(SW_DRR_QUANTUM * d->weight[d->turn]);
	return d->turn;
}

/* sw_drr_is_alone - return whether every other job is idle. */
static inline bool sw_drr_is_alone(const struct sw_drr *d, uint32_t job)
{
	return d->ready == 1u << job;
}

/* sw_drr_charge - charge @bytes to the job.  If no other job has data, the job
 * runs up no debt. */
static inline void sw_drr_charge(struct sw_drr *d, uint32_t job, uint32_t bytes)
{
	int32_t left = d->deficit[job] - (int32_t)bytes;

	d->deficit[job] = left < 0 && sw_drr_is_alone(d, job) ? 0 : left;
}

#endif
