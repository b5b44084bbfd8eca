/* probe.h - find the largest payload that the path to a server carries.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The worker sends a PROBE as large as both ends allow, and the server answers
 * with one of the same size. If none returns, the worker halves the range
 * between the largest size that passed and the smallest that did not. JOIN and
 * ACCEPT have shown that the least payload passes. */
#ifndef SW_ENGINE_WORKER_PROBE_H
#define SW_ENGINE_WORKER_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/limits.h"

enum {
	SW_PROBE_TRIES = 12,   /* frames of one size without an answer */
	SW_PROBE_WAIT_MS = 50, /* longest pause between two of them */
};

struct sw_probe {
	uint32_t size; /* in the PROBE under way; 0: none */
	uint32_t good; /* passed; 0: probing has not begun */
	uint32_t bad;  /* did not pass */
	uint32_t n_sent;
	uint64_t at_ns, wait_ns; /* when the next try is due, and the pause */
};

/* sw_probe_next - choose the next size, or 0 if the answer is known. */
static inline void sw_probe_next(struct sw_probe *p)
{
	p->size = (p->good + p->bad) / 2 / SW_PAYLOAD_UNIT * SW_PAYLOAD_UNIT;
	p->n_sent = 0;
	if (p->size <= p->good)
		p->size = 0;
}

/* sw_probe_begin - probe up to @most, which is a valid payload. */
static inline void sw_probe_begin(struct sw_probe *p, uint32_t most)
{
	*p = (struct sw_probe){.size = most > SW_PAYLOAD_MIN ? most : 0,
		.good = SW_PAYLOAD_MIN,
		.bad = most + SW_PAYLOAD_UNIT};
}

/* sw_probe_passed - take an answer of @bytes. Returns whether it was awaited.
 * sw_probe_failed - no answer has come to any try. */
static inline bool sw_probe_passed(struct sw_probe *p, uint32_t bytes)
{
	if (!p->size || bytes != p->size || !p->n_sent)
		return false;
	p->good = bytes;
	sw_probe_next(p);
	return true;
}

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

#endif
