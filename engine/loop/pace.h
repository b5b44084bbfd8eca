/* pace.h - pace the payload bytes that a port sends.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A token bucket of 20 us, stored as the time at which all sent bytes will have
 * drained at the configured rate.  The port may send a frame while that time is
 * less than 20 us ahead.  So at most 20 us of bytes and one frame are queued
 * below the scheduler, where urgent frames cannot overtake them.  If a late
 * turn missed time while data waited, the port makes up for it at no more than
 * twice the rate. */
#ifndef SW_ENGINE_LOOP_PACE_H
#define SW_ENGINE_LOOP_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/params.h"

enum {
	SW_PACE_DEPTH_NS = 20000,
	SW_PACE_MISSED_NS = 10000000, /* most missed time to make up for */
};

struct sw_pace {
	uint64_t ns_q16;    /* ns per payload byte, times 2^16; 0: not paced */
	uint64_t frame_ns;  /* time of a full frame */
	uint64_t drain_ns;  /* time at which all sent bytes have drained */
	uint64_t missed_ns; /* time missed by late turns, not made up for yet */
	uint32_t rest_q16;  /* fraction of drain_ns, below a nanosecond */
	bool has_waiting;   /* data waited at the end of the last turn */
};

/* sw_pace_init - pace to @rate_bit_s of payload, 0: no limit. If @link_bit_s is
 * known (else 0), frames of @payload bytes and their 120 bytes of headers,
 * preamble and gap fill at most 95 % of it. */
static inline void sw_pace_init(struct sw_pace *p, uint64_t rate_bit_s,
	uint64_t link_bit_s, uint32_t payload)
{
	uint64_t most = link_bit_s / 100 * 95 / (payload + 120) * payload;

	if (most && (!rate_bit_s || rate_bit_s > most))
		rate_bit_s = most;
	*p = (struct sw_pace){0};
	if (!rate_bit_s)
		return;
	p->ns_q16 = (8 * SW_S << 16) / rate_bit_s;
	p->frame_ns = (payload * p->ns_q16 >> 16) + 1;
}

/* sw_pace_is_set - return whether the port is paced. */
static inline bool sw_pace_is_set(const struct sw_pace *p)
{
	return p->ns_q16;
}

/* sw_pace_may - return whether a data frame may be sent at @now_ns. */
static inline bool sw_pace_may(const struct sw_pace *p, uint64_t now_ns)
{
	return !p->ns_q16 || p->drain_ns < now_ns + SW_PACE_DEPTH_NS;
}

/* sw_pace_frames - return how many of @max full frames may be sent, at least 1.
 */
static inline uint32_t sw_pace_frames(
	const struct sw_pace *p, uint64_t now_ns, uint32_t max)
{
	uint64_t until = now_ns + SW_PACE_DEPTH_NS, n;
	uint64_t from = p->drain_ns > now_ns ? p->drain_ns : now_ns;

	if (!p->ns_q16)
		return max;
	n = until > from ? (until - from - 1) / p->frame_ns + 1 : 1;
	return n < max ? (uint32_t)n : max;
}

/* sw_pace_at - return when the next frame may be sent, if none may be sent now.
 */
static inline uint64_t sw_pace_at(const struct sw_pace *p)
{
	return p->drain_ns - SW_PACE_DEPTH_NS + 1;
}

/* sw_pace_note - note at the end of the port's turn whether data waits. */
static inline void sw_pace_note(struct sw_pace *p, bool has_waiting)
{
	p->has_waiting = has_waiting;
	if (!has_waiting)
		p->missed_ns = 0;
}

/* sw_pace_charge - charge @bytes of payload sent at @now_ns. */
static inline void sw_pace_charge(
	struct sw_pace *p, uint32_t bytes, uint64_t now_ns)
{
	uint64_t q16, half_ns;

	if (!p->ns_q16)
		return;
	if (p->drain_ns < now_ns) {
		if (p->has_waiting)
			p->missed_ns += now_ns - p->drain_ns;
		if (p->missed_ns > SW_PACE_MISSED_NS)
			p->missed_ns = SW_PACE_MISSED_NS;
		p->drain_ns = now_ns;
		p->rest_q16 = 0;
	}
	q16 = bytes * p->ns_q16 + p->rest_q16;
	p->rest_q16 = q16 & 0xffff;
	half_ns = q16 >> 17;
	if (half_ns > p->missed_ns)
		half_ns = p->missed_ns;
	p->missed_ns -= half_ns;
	p->drain_ns += (q16 >> 16) - half_ns;
}

#endif
