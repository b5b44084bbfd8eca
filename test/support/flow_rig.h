/* flow_rig.h - a flow under test and the fates that it reported.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_SUPPORT_FLOW_RIG_H
#define SW_TEST_SUPPORT_FLOW_RIG_H

#include <stdio.h>

#include "engine/flow/flow.h"
#include "test/support/unit.h"

enum { FRAME = 23 }; /* quanta of a full frame of 1344 B */

/* A flow and the fates that it reported. */
struct fixture {
	struct sw_params params;
	struct sw_flow f;
	uint64_t now_ns;
	uint32_t n_acked, n_lost;
	uint64_t ack_psn; /* number in the last ACK */
	struct sw_sent last;
	char fates[1024]; /* "+1 -2": acknowledged 1, lost 2 */
};

static inline struct fixture *open_with(uint32_t payload, uint32_t window_bytes)
{
	static struct fixture x;

	memset(&x, 0, sizeof(x));
	sw_params_init(&x.params);
	x.params.payload = payload;
	x.params.window_bytes = window_bytes;
	x.now_ns = SW_S;
	sw_flow_init(&x.f, &x.params, NULL, false, 0);
	x.f.granted = 1 << 19;
	return &x;
}

static inline struct fixture *open_flow(void)
{
	return open_with(1344, 512 * 1024);
}

static inline void note_fate(
	struct fixture *x, const struct sw_sent *sent, enum sw_fate fate)
{
	size_t n = strlen(x->fates);

	x->n_acked += fate == SW_ACKED;
	x->n_lost += fate == SW_LOST;
	x->last = *sent;
	if (n + 24 < sizeof(x->fates))
		snprintf(x->fates + n, sizeof(x->fates) - n, "%s%c%llu",
			n ? " " : "", fate == SW_ACKED ? '+' : '-',
			(unsigned long long)sent->psn);
}

static inline void on_fate(void *ctx, const struct sw_sent *const *sent,
	uint32_t n, enum sw_fate fate)
{
	for (uint32_t i = 0; i < n; i++)
		note_fate(ctx, sent[i], fate);
}

static inline uint64_t send(struct fixture *x, uint8_t class)
{
	struct sw_header h = {.type = SW_PUSH,
		.class = class,
		.key = 5,
		.round = 6,
		.payload_len = 1344};

	assert_true(sw_flow_can_send(&x->f, class));
	sw_flow_give(&x->f);
	sw_flow_send(&x->f, &h, 7, x->now_ns);
	return h.psn;
}

/* Give the flow an ACK of @class for packet @largest and for the packets before
 * it whose bits are set. */
static inline bool ack(struct fixture *x, uint8_t class, uint64_t largest,
	uint64_t bits, uint16_t delay_us)
{
	struct sw_sack k = {.largest = largest,
		.bits = {bits},
		.class = class,
		.delay_us = delay_us};

	x->fates[0] = 0;
	x->f.rx_psn[SW_CLASS_CTL] = ++x->ack_psn;
	return sw_flow_on_ack(&x->f, x->ack_psn, &k, 1, x->now_ns, on_fate, x);
}

static inline uint64_t tick(struct fixture *x, uint64_t ns)
{
	x->now_ns += ns;
	x->fates[0] = 0;
	sw_flow_tick(&x->f, x->now_ns, on_fate, x);
	return sw_flow_tick_at(&x->f);
}

static inline void accept(struct fixture *x, uint8_t class, uint64_t psn)
{
	sw_flow_accept(&x->f, class, psn, x->now_ns);
}

#endif
