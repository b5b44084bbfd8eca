/* ceiling.h - a limit that all flows of a job share.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A flow with a window of two frames must lose one frame in twenty to learn the
 * width of its part of a path, and a flow with a window below a frame loses
 * more. Together, the flows of a job learn that width for a few lost frames.
 *
 * If a 16th of the flows, three at least, lose frames within eight round trips,
 * the limit shrinks by a quarter. It grows by a 64th per round trip (an 8th
 * before its second cut), unless two flows have lost frames. A flow counts once
 * in that time, however many frames it loses, so one or two lossy members do
 * not slow the other members. Flows that may have SW_CEILING_FEW frames or more
 * need no ceiling.
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
	uint64_t cut_ns;            /* frames sent before do not count */
	uint64_t grows_ns;          /* earliest time of the next growth */
	uint64_t passed;  /* quanta that had passed when the period began */
	uint32_t period;  /* number of the period, from 1 */
	uint32_t n_lossy; /* flows that lost frames in the period */
	bool is_new;      /* cut only once since it began to hold */
};

/* sw_ceiling_is_low - return whether there is a limit. */
static inline bool sw_ceiling_is_low(const struct sw_ceiling *c)
{
	return c->limit != 0;
}

/* sw_ceiling_is_over - return whether the period has ended.
 * sw_ceiling_begin - begin a period, after @passed quanta. */
static inline bool sw_ceiling_is_over(
	const struct sw_ceiling *c, uint64_t now_ns)
{
	return now_ns >= c->ends_ns;
}

void sw_ceiling_begin(struct sw_ceiling *c, uint64_t passed, uint64_t now_ns,
	uint64_t srtt_ns);

/* sw_ceiling_lose - note that one of @n flows lost a frame. Returns whether
 * enough flows lost frames to cut the limit.
 * @period   last period in which this flow lost frames, 0: none; updated
 * @sent_ns  approximate time when the frame left its sender */
bool sw_ceiling_lose(
	struct sw_ceiling *c, uint32_t *period, uint32_t n, uint64_t sent_ns);

/* sw_ceiling_cut - shrink the limit to 3/4 of @now, the present limit or, if
 * there is none, the flows' quanta in flight, but not below @frame quanta. */
void sw_ceiling_cut(struct sw_ceiling *c, uint64_t now, uint32_t frame,
	uint64_t now_ns, uint64_t srtt_ns);

/* sw_ceiling_grow - raise the limit, at most once per round trip. Call it when
 * flows want more than the limit. A limit that reaches @most quanta ends. */
void sw_ceiling_grow(struct sw_ceiling *c, uint32_t frame, uint64_t most,
	uint64_t now_ns, uint64_t srtt_ns);

#endif
