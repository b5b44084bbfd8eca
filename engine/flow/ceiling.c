/* ceiling.c - a limit that all flows of a job share.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/flow/ceiling.h"

#include "engine/base/bytes.h"

enum {
	PERIOD = 8,     /* round trips */
	MANY_PART = 16, /* of all flows */
	CUT_PART = 4,
	GROW_PART = 64,
	GROW_NEW = 8,
	GROW_FRAME = 4, /* or this part of a frame */
};

void sw_ceiling_begin(struct sw_ceiling *c, uint64_t passed, uint64_t now_ns,
	uint64_t srtt_ns)
{
	c->period++;
	c->n_lossy = 0;
	c->passed = passed;
	c->begun_ns = now_ns;
	c->ends_ns = now_ns + PERIOD * srtt_ns;
}

bool sw_ceiling_lose(
	struct sw_ceiling *c, uint32_t *period, uint32_t n, uint64_t sent_ns)
{
	if (sent_ns < c->cut_ns)
		return false;
	c->n_lossy += *period != c->period;
	*period = c->period;
	return c->n_lossy >= sw_max64(SW_CEILING_MANY, n / MANY_PART);
}

void sw_ceiling_cut(struct sw_ceiling *c, uint64_t now, uint32_t frame,
	uint64_t now_ns, uint64_t srtt_ns)
{
	c->is_new = !c->limit;
	c->limit = sw_max64(now - now / CUT_PART, frame);
	c->cut_ns = now_ns;
	c->grows_ns = now_ns + srtt_ns;
	c->ends_ns = 0;
}

void sw_ceiling_grow(struct sw_ceiling *c, uint32_t frame, uint64_t most,
	uint64_t now_ns, uint64_t srtt_ns)
{
	if (now_ns < c->grows_ns)
		return;
	c->grows_ns = now_ns + srtt_ns;
	if (c->n_lossy < 2 || sw_ceiling_is_over(c, now_ns))
		c->limit += sw_max64(frame / GROW_FRAME,
			c->limit / (c->is_new ? GROW_NEW : GROW_PART));
	if (c->limit >= most)
		c->limit = 0;
}
