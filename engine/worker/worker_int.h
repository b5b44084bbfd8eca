/* worker_int.h - the turns of a worker: frames in, frames out, joining.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_WORKER_WORKER_INT_H
#define SW_ENGINE_WORKER_WORKER_INT_H

#include "engine/worker/worker.h"

/* --- worker_rx.c --- */

/* sw_worker_frames - take a burst of received frames.
 * sw_worker_on_fate - note the fate of frames of the link whose peer is @ctx.
 */
void sw_worker_frames(
	struct sw_worker *w, const struct sw_rx_frame *frames, uint32_t n);
void sw_worker_on_fate(void *ctx, const struct sw_sent *const *sent, uint32_t n,
	enum sw_fate fate);

/* --- worker_tx.c: the engine's call (engine/loop/engine.h), and its hub's ---
 */

uint32_t sw_worker_tx(struct sw_engine *engine, uint64_t now_ns,
	uint32_t port_i, struct sw_tx_frame *out, uint32_t max);
uint32_t sw_worker_build_control(
	struct sw_peer *p, enum sw_owed what, struct sw_header *h);

#endif
