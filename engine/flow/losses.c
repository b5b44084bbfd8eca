/* losses.c - notice that a path loses many frames, and name the likely cause.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/flow/losses.h"

#include <stdio.h>

#include "engine/base/bytes.h"

enum {
	FRAMES = 200, /* do not judge a period with fewer frames */
	BEGIN_PPM = 10000,
	END_PPM = 5000,
};

/* Take the counts of one way.  Returns whether an episode begins. */
static bool take_count(struct sw_losses_count *c, uint64_t all, uint64_t lost)
{
	uint64_t ppm;

	/* a new flow begins with 0 */
	c->n_all = all >= c->all ? all - c->all : 0;
	c->n_lost = lost >= c->lost ? lost - c->lost : 0;
	c->all = all;
	c->lost = lost;
	if (c->n_all < FRAMES)
		return false;
	ppm = c->n_lost * 1000000 / c->n_all;
	if (ppm < END_PPM)
		c->is_told = false;
	if (ppm <= BEGIN_PPM || c->is_told)
		return false;
	c->is_told = true;
	return true;
}

uint32_t sw_losses_look(
	struct sw_losses *l, const struct sw_flow *f, uint64_t now_ns)
{
	struct sw_flow_losses now = sw_flow_losses(f);
	uint32_t ways = 0;

	l->from_ns = now_ns;
	l->n_queued = now.queued >= l->queued ? now.queued - l->queued : 0;
	l->queued = now.queued;
	ways |= (uint32_t)take_count(
			&l->ways[SW_LOSSES_SENT], now.sent, now.lost)
		<< SW_LOSSES_SENT;
	ways |= (uint32_t)take_count(
			&l->ways[SW_LOSSES_CAME], now.numbered, now.missed)
		<< SW_LOSSES_CAME;
	return ways;
}

uint32_t sw_losses_part(const struct sw_losses *l, enum sw_losses_way way)
{
	const struct sw_losses_count *c = &l->ways[way];

	if (c->n_all < FRAMES)
		return 0;
	return (uint32_t)(sw_min64(c->n_lost, c->n_all) * 10000 / c->n_all);
}

static const char *cause_text(
	const struct sw_losses *l, const struct sw_flow *f, char *out, size_t n)
{
	uint64_t least, most;

	if (2 * l->n_queued < l->ways[SW_LOSSES_SENT].n_lost)
		return "loss at random, since no queue on the way grew";
	sw_congestion_delays(&f->congestion, &least, &most);
	snprintf(out, n,
		"a full queue on the way, with round-trip times of %.1f to "
		"%.1f ms",
		(double)least / SW_MS, (double)most / SW_MS);
	return out;
}

const char *sw_losses_text(const struct sw_losses *l, const struct sw_flow *f,
	enum sw_losses_way way, const char *far, char out[SW_LOSSES_TEXT])
{
	const struct sw_losses_count *c = &l->ways[way];
	double percent = 100.0 * (double)c->n_lost / (double)c->n_all;
	unsigned long long n = c->n_all;
	char cause[96];

	if (way == SW_LOSSES_SENT)
		snprintf(out, SW_LOSSES_TEXT,
			"%.1f %% of %llu frames to %s were lost and sent "
			"again, likely cause: %s",
			percent, n, far,
			cause_text(l, f, cause, sizeof(cause)));
	else
		snprintf(out, SW_LOSSES_TEXT,
			"%.1f %% of %llu frames from %s did not arrive, its "
			"log has the likely cause",
			percent, n, far);
	return out;
}
