/* ceiling.h - what the flows of a job may have under way together.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A flow with a window of two frames must lose one in twenty to learn how wide
 * its part of a path is, and one that may have less than a frame loses more.
 * Together, the flows of a job learn it at the price of a few frames.
 *
 * If a 16th of the flows, three at least, lose frames within eight round trips,
 * what they may have under way together shrinks by a quarter. It grows by a
 * 64th per round trip, unless two flows have lost frames. However many frames a
 * flow loses, it counts once in that time, so one or two members harm no other.
 * Flows that may have SW_CEILING_FEW frames or more need no ceiling.
 */
#ifndef SW_ENGINE_FLOW_CEILING_H
#define SW_ENGINE_FLOW_CEILING_H

#include <stdbool.h>
#include <stdint.h>

enum {
	SW_CEILING_MANY = 3, /* flows that lose frames */
	SW_CEILING_FEW = 8,  /* frames of a flow */
};

struct sw_ceiling {
	uint64_t limit;             /* quanta; 0: none */
	uint64_t begun_ns, ends_ns; /* the period in which losses count */
	uint64_t cut_ns;            /* they count if sent since then */
	uint64_t grows_ns;
	uint64_t passed;  /* quanta that had passed when the period began */
	uint32_t period;  /* its number, from 1 */
	uint32_t n_lossy; /* flows that lost frames in it */
	bool is_new;      /* not cut since it began to hold */
};

/* sw_ceiling_is_low - return whether there is a limit. */
static inline bool sw_ceiling_is_low(const struct sw_ceiling *c)
{
	return c->limit != 0;
}

/* sw_ceiling_is_over - return whether the period has ended.
 * sw_ceiling_begin - begin one, after @passed quanta. */
static inline bool sw_ceiling_is_over(
	const struct sw_ceiling *c, uint64_t now_ns)
{
	return now_ns >= c->ends_ns;
}

void sw_ceiling_begin(struct sw_ceiling *c, uint64_t passed, uint64_t now_ns,
	uint64_t srtt_ns);

/* sw_ceiling_lose - note that one of @n flows lost a frame. Returns whether
 * enough did.
 * @period   the last one in which this flow did, 0: none; set
 * @sent_ns  when it left its sender, about */
bool sw_ceiling_lose(
	struct sw_ceiling *c, uint32_t *period, uint32_t n, uint64_t sent_ns);

/* sw_ceiling_cut - shrink the limit to 3/4 of @now, what the flows have under
 * way, but not below @frame quanta. */
void sw_ceiling_cut(struct sw_ceiling *c, uint64_t now, uint32_t frame,
	uint64_t now_ns, uint64_t srtt_ns);

/* sw_ceiling_grow - let the limit grow if it is time, because flows want more
 * than it. At @most quanta it ends. */
void sw_ceiling_grow(struct sw_ceiling *c, uint32_t frame, uint64_t most,
	uint64_t now_ns, uint64_t srtt_ns);

#endif
