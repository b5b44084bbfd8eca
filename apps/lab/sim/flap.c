/* flap.c - links that fail by schedule.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/sim/flap.h"

#include <stdio.h>

#include "apps/lab/sim/route.h"
#include "engine/base/error.h"

/* Fail the link, or restore it. */
static uint64_t turn(void *ctx, uint64_t now_ns)
{
	struct sw_sim_flap *f = ctx;
	bool is_down = !f->links[0]->is_down;

	f->links[0]->is_down = f->links[1]->is_down = is_down;
	if (is_down) {
		f->begun_ns = now_ns;
		return now_ns + f->desc->for_ns;
	}
	return f->desc->every_ns ? f->begun_ns + f->desc->every_ns : UINT64_MAX;
}

int sw_sim_flaps_open(struct sw_sim_net *net, const struct sw_sim_desc *d,
	struct sw_sim_flap flaps[SW_SIM_FLAPS], char *why)
{
	for (uint32_t i = 0; i < d->n_flaps; i++) {
		const struct sw_sim_desc_flap *f = &d->flaps[i];

		flaps[i].desc = f;
		flaps[i].links[0] = sw_sim_link_between(net, d, f->from, f->to);
		flaps[i].links[1] = sw_sim_link_between(net, d, f->to, f->from);
		if (!flaps[i].links[0] || !flaps[i].links[1]) {
			snprintf(why, SW_SIM_TEXT,
				"[flap %s] there is no link between \"%.40s\" "
				"and \"%.40s\"",
				f->label, f->from, f->to);
			return SW_ECONF;
		}
		if (f->every_ns && f->every_ns <= f->for_ns) {
			snprintf(why, SW_SIM_TEXT,
				"[flap %s] every: is not longer than for",
				f->label);
			return SW_ECONF;
		}
		sw_sim_timer_add(net, net->now_ns + f->at_ns, turn, &flaps[i]);
	}
	return 0;
}
