/* control.c - number, acknowledge and retransmit the messages of a session.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/peer/control.h"

#include <assert.h>
#include <string.h>

#include "engine/base/bytes.h"

static void start_timer(
	struct sw_control *c, const struct sw_params *params, uint64_t now_ns)
{
	c->progress_ns = now_ns;
	c->again_wait_ns = params->retry_min;
	c->again_at_ns = now_ns + c->again_wait_ns;
}

void sw_control_put(struct sw_control *c, struct sw_header *h,
	const void *payload, const struct sw_params *params, uint64_t now_ns)
{
	struct sw_message *m;

	assert(!sw_control_is_full(c) && !sw_control_has_again(c));
	assert(h->payload_len <= sizeof(m->payload));
	if (sw_control_is_idle(c))
		start_timer(c, params, now_ns);
	c->n_sent = ++c->n_built;
	h->ctl.number = (uint16_t)c->n_built;
	m = &c->window[c->n_built % SW_CONTROL_WINDOW];
	m->head = *h;
	memcpy(m->payload, payload, h->payload_len);
}

bool sw_control_take(
	struct sw_control *c, const struct sw_header *h, struct sw_stats *st)
{
	int16_t ahead = (int16_t)(h->ctl.number - (uint16_t)c->n_taken);

	sw_count(&st->rx_state, ahead > SW_CONTROL_WINDOW);
	c->n_taken += ahead == 1;
	return ahead == 1;
}

bool sw_control_on_ack(struct sw_control *c, const struct sw_header *h,
	const struct sw_params *params, uint64_t now_ns, struct sw_stats *st)
{
	int16_t more = (int16_t)(h->ctl.taken - (uint16_t)c->n_acked);
	uint32_t n_open = c->n_built - c->n_acked;

	sw_count(&st->rx_state, more > (int32_t)n_open);
	if (more <= 0 || more > (int32_t)n_open)
		return false;
	c->n_acked += (uint32_t)more;
	/* Do not retransmit a message that is acknowledged now. */
	if (sw_control_has_acked(c, c->n_sent))
		c->n_sent = c->n_acked;
	start_timer(c, params, now_ns);
	return true;
}

uint64_t sw_control_tick(
	struct sw_control *c, const struct sw_params *params, uint64_t now_ns)
{
	if (sw_control_is_idle(c))
		return UINT64_MAX;
	if (now_ns >= c->again_at_ns) {
		c->n_sent = c->n_acked;
		c->again_wait_ns =
			sw_min64(2 * c->again_wait_ns, params->retry_max);
		c->again_at_ns = now_ns + c->again_wait_ns;
	}
	return c->again_at_ns;
}
