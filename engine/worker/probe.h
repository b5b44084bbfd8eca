/* probe.h - the payload that the path to a server carries: find it, check it.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The worker sends a PROBE as large as both ends allow, and the server answers
 * with one of the same size. If none returns, the worker halves the range
 * between the largest size that passed and the smallest that did not. JOIN and
 * ACCEPT have shown that the least payload passes.
 *
 * Every other PROBE has the size that is known to pass. A size fails only if
 * the server answers several of these meanwhile, so that a stalled server, or a
 * path that is down for a second, does not reduce the payload.
 *
 * While the job runs, a probe of its payload checks a path in the same way. */
#ifndef SW_ENGINE_WORKER_PROBE_H
#define SW_ENGINE_WORKER_PROBE_H

#include "engine/base/limits.h"
#include "engine/worker/worker.h"

struct sw_link;

enum {
	SW_PROBE_TRIES = 24,   /* frames, before a size may fail */
	SW_PROBE_ALIVE = 8,    /* answers to the known size, before it may */
	SW_PROBE_WAIT_MS = 20, /* longest pause between two frames */
};

struct sw_probe {
	uint32_t size;           /* being probed; 0: none */
	uint32_t good;           /* passed; 0: probing has not begun */
	uint32_t bad;            /* did not pass */
	uint32_t n_sent;         /* frames for this size, of both sizes */
	uint32_t n_alive;        /* answers to frames of the known size */
	uint64_t at_ns, wait_ns; /* when the next try is due, and the pause */
};

/* sw_probe_next - choose the next size, or 0 if the answer is known. */
static inline void sw_probe_next(struct sw_probe *p)
{
	p->size = (p->good + p->bad) / 2 / SW_PAYLOAD_UNIT * SW_PAYLOAD_UNIT;
	p->n_sent = p->n_alive = 0;
	if (p->size <= p->good)
		p->size = 0;
}

/* sw_probe_begin - probe from @least, which passes, up to @most, which is a
 * valid payload. */
static inline void sw_probe_begin(
	struct sw_probe *p, uint32_t least, uint32_t most)
{
	*p = (struct sw_probe){.size = most > least ? most : 0,
		.good = least,
		.bad = most + SW_PAYLOAD_UNIT};
}

/* sw_probe_answered - take an answer of @bytes. Returns false if no frame asked
 * for it. */
static inline bool sw_probe_answered(struct sw_probe *p, uint32_t bytes)
{
	if (!p->size || !p->n_sent || (bytes != p->size && bytes != p->good))
		return false;
	if (bytes == p->good) {
		p->n_alive++;
		return true;
	}
	p->good = bytes;
	sw_probe_next(p);
	return true;
}

/* sw_probe_failed - continue with a smaller size. */
static inline void sw_probe_failed(struct sw_probe *p)
{
	p->bad = p->size;
	sw_probe_next(p);
}

/* sw_probe_is_over - return whether good is the answer. */
static inline bool sw_probe_is_over(const struct sw_probe *p)
{
	return p->good && !p->size;
}

/* sw_link_probe - begin to probe the path of an open link. Does nothing once
 * the job's payload is settled.
 * sw_link_build_probe - build the next PROBE; returns 0 if nothing is probed.
 * sw_link_on_probe - take an answer.
 * sw_link_tick_probe - repeat the PROBE if it is due, or go to a smaller size.
 * Returns when to call it again.
 * sw_worker_carries - return the payload that all paths of the lane carry, or 0
 * while some are not probed.
 * sw_worker_use_payload - use @payload as the job's payload. */
void sw_link_probe(struct sw_worker *w, struct sw_link *l);
uint32_t sw_link_build_probe(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h);
void sw_link_on_probe(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload);
uint64_t sw_link_tick_probe(struct sw_worker *w, struct sw_link *l);
uint32_t sw_worker_carries(const struct sw_worker *w);
uint32_t sw_link_build_paths(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h);
void sw_worker_use_payload(struct sw_worker *w, uint32_t payload);

/* sw_paths_doubt_ns - return how long a tensor may lack results before the
 * paths are checked.
 * sw_paths_check - check the paths while @is_slow: a tensor has lacked results
 * for that long. Call it in each sweep (sw_stall_tick). Fails the worker if a
 * path stops carrying the job's payload, within dead_after. */
uint64_t sw_paths_doubt_ns(const struct sw_worker *w);
void sw_paths_check(struct sw_worker *w, bool is_slow);

#endif
