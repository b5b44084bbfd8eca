/* crowd.c - the flows of one job at one engine, which meet in the same queues.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/flow/crowd.h"

#include "engine/flow/flow.h"

void sw_crowd_add(struct sw_crowd *c, struct sw_flow *f)
{
	f->crowd = c;
	f->next = c->flows;
	c->flows = f;
	c->n_flows++;
}

void sw_crowd_remove(struct sw_crowd *c, struct sw_flow *f)
{
	struct sw_flow **at = &c->flows;

	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	c->n_flows--;
	f->crowd = NULL;
}

void sw_crowd_list(struct sw_crowd *c)
{
	struct sw_crowd **at = &c->grants->crowds;
	bool is_low = sw_ceiling_is_low(&c->ceiling) ||
		      sw_ceiling_is_low(&c->fanout.ceiling) ||
		      c->fanout.turns.first;

	if (is_low == c->is_listed)
		return;
	c->is_listed = is_low;
	if (is_low) {
		c->next = *at;
		*at = c;
		return;
	}
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
}
