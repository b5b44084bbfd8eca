/* deaths.h - ranks that have died or left, and what ends with them.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_WORKER_DEATHS_H
#define SW_ENGINE_WORKER_DEATHS_H

#include "engine/worker/link.h"

/* sw_deaths_check_local - end the open round of @t if it needs a local rank
 * that has left or died.
 * sw_deaths_work - check some of the tensors in w->lacking; returns the work
 * done. */
void sw_deaths_check_local(struct sw_worker *w, struct sw_wtensor *t);
uint32_t sw_deaths_work(struct sw_worker *w);

/* sw_deaths_learn - take from STATUS which members are gone, and why the last
 * one is.
 * sw_deaths_check_members - end what is open of @t if it needs a gone member: a
 * stream any of its group, a tensor one of @awaited, which the servers named.
 */
void sw_deaths_learn(struct sw_worker *w, const struct sw_status *st);
void sw_deaths_check_members(
	struct sw_worker *w, struct sw_wtensor *t, uint64_t awaited);
/* For asynchronous jobs, where a death ends only what waits for the dead
 * member:
 * sw_deaths_on_wait - fail the worker if the server of @l waits in @t for
 * @awaited and one of them can send nothing.  Any lane calls it.
 * sw_deaths_tick - note which members can send nothing. */
void sw_deaths_on_wait(struct sw_worker *w, const struct sw_link *l,
	const struct sw_wtensor *t, uint64_t awaited);
void sw_deaths_tick(struct sw_worker *w);

#endif
