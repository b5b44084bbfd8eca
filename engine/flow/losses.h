/* losses.h - notice that a path loses many frames, and name the likely cause.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Every SW_LOSSES_NS, sw_losses_look compares the flow's counts with those of
 * the last look, separately for the frames that we sent and those that the peer
 * sent.  An episode begins with more than 1 % lost, and ends with less than
 * 0.5 %.  Each episode is reported once. */
#ifndef SW_ENGINE_FLOW_LOSSES_H
#define SW_ENGINE_FLOW_LOSSES_H

#include "engine/flow/flow.h"

#define SW_LOSSES_NS (10 * SW_S)

enum { SW_LOSSES_TEXT = 192 };

enum sw_losses_way { SW_LOSSES_SENT, SW_LOSSES_CAME, SW_LOSSES_WAYS };

/* The counts of one way: cumulative at the last look, and of the last period.
 */
struct sw_losses_count {
	uint64_t all, lost;
	uint64_t n_all, n_lost;
	bool is_told;
};

struct sw_losses {
	uint64_t from_ns;          /* the last look */
	uint64_t queued, n_queued; /* lost while a queue was long, likewise */
	struct sw_losses_count ways[SW_LOSSES_WAYS];
};

/* sw_losses_are_due - is it time for a look? */
static inline bool sw_losses_are_due(const struct sw_losses *l, uint64_t now_ns)
{
	return now_ns - l->from_ns >= SW_LOSSES_NS;
}

/* sw_losses_look - compare the counts of @f with the last ones.  Returns the
 * ways (bits of enum sw_losses_way) in which an episode begins. */
uint32_t sw_losses_look(
	struct sw_losses *l, const struct sw_flow *f, uint64_t now_ns);

/* sw_losses_part - return how many of 10,000 frames of @way were lost in the
 * last period; 0 of a period with few frames. */
uint32_t sw_losses_part(const struct sw_losses *l, enum sw_losses_way way);

/* sw_losses_text - describe the last period of @way, which sw_losses_look
 * returned, with @far as the name of the peer.  Returns @out. */
const char *sw_losses_text(const struct sw_losses *l, const struct sw_flow *f,
	enum sw_losses_way way, const char *far, char out[SW_LOSSES_TEXT]);

#endif
