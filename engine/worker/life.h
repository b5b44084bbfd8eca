/* life.h - a worker as a whole: its state, lanes, tuning, what drives it.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_LIFE_H
#define SW_LIFE_H

#include "engine/worker/tensor.h"

/* --- worker_life.c --- */

/* sw_worker_fail - the job cannot go on: every open push_pull ends with @err,
 * the servers are told. */
void sw_worker_fail(struct sw_worker *w, int err, uint32_t key, const char *fmt,
	...) __attribute__((format(printf, 4, 5)));

/* sw_worker_check_running - is everybody there now? */
void sw_worker_check_running(struct sw_worker *w);

/* sw_worker_tick_joining - say what is waited for; give up in the end. */
void sw_worker_tick_joining(struct sw_worker *w);

/* sw_worker_check_left - does every server and every lane know that we left, or
 * is it time to go without? */
void sw_worker_check_left(struct sw_worker *w);

/* --- tuning.c --- */

/* sw_tuning_use - this lane's scheduler goes over to these, and so do the other
 * lanes.  Errors: SW_EINVAL (sw_sched_check says why). */
int sw_tuning_use(struct sw_worker *w, const struct sw_policy *policy,
	uint64_t part_bytes, uint64_t credit_bytes);
/* sw_tuning_credit - what of the job's is this lane's; 0: the policy's. */
uint64_t sw_tuning_credit(const struct sw_worker *w,
	const struct sw_policy *policy, uint64_t credit_bytes);
/* sw_tuning_received - the coordinator says the job's. */
void sw_tuning_received(struct sw_worker *w, const struct sw_status *st);

/* --- lane.c: to the other lanes; of lane 0 also to the user --- */

/* sw_lanes_others - how many lanes take this one's commands. */
static inline uint32_t sw_lanes_others(const struct sw_worker *w)
{
	return w->lane_i ? 0 : w->n_lanes - 1;
}

/* sw_lane_say - tell the user of a state or a line; from another lane through
 * lane 0. */
void sw_lane_say(struct sw_worker *w, int err, const char *text);

/* sw_lane_admitted - all tensors are admitted: in all lanes, as lane 0 says to
 * the user; in this one, as another says to lane 0. */
void sw_lane_admitted(struct sw_worker *w);

/* Lane 0 to all others: the job runs; tensors have keys; a round begins
 * (returns how many lanes have chunks of it); other tuning; the job ends. */
void sw_lanes_start(struct sw_worker *w);
void sw_lanes_declare(struct sw_worker *w);
uint32_t sw_lanes_begin(struct sw_worker *w, const struct sw_wtensor *t);
void sw_lanes_set_tuning(
	struct sw_worker *w, uint64_t part_bytes, uint64_t credit_bytes);
void sw_lanes_leave(struct sw_worker *w);

/* sw_lane_dead - a tensor is dead: lane 0 to all others, another to lane 0. */
void sw_lane_dead(struct sw_worker *w, const struct sw_wtensor *t);

/* sw_lane_done - another lane than 0 holds all its chunks of a round. */
void sw_lane_done(struct sw_worker *w, const struct sw_wtensor *t);

/* --- worker.c, worker_tx.c: the node's calls --- */

/* What came; timers; is anything open?  Control frames, then pushes by class.
 */
void sw_worker_rx(struct sw_node *node, uint64_t now_ns, uint32_t port_i,
	const struct sw_rx_frame *frames, uint32_t n);
uint64_t sw_worker_tick(struct sw_node *node, uint64_t now_ns, uint64_t gap_ns);
bool sw_worker_is_busy(const struct sw_node *node);
bool sw_worker_tx(struct sw_node *node, uint64_t now_ns, uint32_t port_i,
	struct sw_tx_frame *out);

#endif
