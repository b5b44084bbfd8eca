/* fuzz_control.c - both ends of a control stream and the network between them.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Input: two bytes per step: the event, and the frame or time for it. The
 * sender builds a message or retransmits, or its timer runs. The network
 * delivers any of the last 32 frames or acknowledgements, any number of times.
 * A step may also forge one; then order is not promised, only that all counts
 * stay within the window.
 */
#include <assert.h>

#include "engine/peer/control.h"
#include "test/fuzz/fuzz.h"

enum { AIR = 32 };

struct road {
	struct sw_header frames[AIR];
	uint16_t acks[AIR];
	uint32_t n_frames, n_acks;
};

enum step { BUILD, AGAIN, TICK, FRAME, ACK, FORGED_FRAME, FORGED_ACK, N_STEPS };

struct ends {
	struct sw_params params;
	struct sw_control from, to;
	struct sw_stats st;
	struct road road;
	uint64_t now_ns;
	bool is_forged;
};

static void send(struct ends *e, const struct sw_header *h)
{
	e->road.frames[e->road.n_frames++ % AIR] = *h;
}

/* Give a frame to the receiver and acknowledge the last message taken. */
static void take(struct ends *e, const struct sw_header *h)
{
	uint32_t before = e->to.n_taken;
	bool is_next = sw_control_take(&e->to, h, &e->st);

	assert(e->to.n_taken == before + is_next);
	e->road.acks[e->road.n_acks++ % AIR] = (uint16_t)e->to.n_taken;
	if (!is_next || e->is_forged)
		return;
	/* the receiver takes each message once, in order */
	assert(h->key == e->to.n_taken);
}

static void build(struct ends *e)
{
	struct sw_header h = {.type = SW_STATUS, .payload_len = 4};
	uint32_t what = h.key = e->from.n_built + 1;

	if (sw_control_is_full(&e->from) || sw_control_has_again(&e->from))
		return;
	sw_control_put(&e->from, &h, &what, &e->params, e->now_ns);
	send(e, &h);
}

static void again(struct ends *e)
{
	const struct sw_message *m;
	uint32_t what;

	if (!sw_control_has_again(&e->from))
		return;
	m = sw_control_again(&e->from);
	memcpy(&what, m->payload, sizeof(what));
	assert(what == m->head.key && what == e->from.n_sent);
	send(e, &m->head);
}

static void on_ack(struct ends *e, uint16_t number)
{
	struct sw_header h = {.ctl.taken = number};

	sw_control_on_ack(&e->from, &h, &e->params, e->now_ns, &e->st);
}

/* Frames older than a whole window have an old packet number, so the fuzzer
 * does not deliver them. */
static void step(struct ends *e, enum step step, uint8_t a)
{
	struct road *r = &e->road;
	struct sw_header forged = {.ctl.number = (uint16_t)(a * 257 - 128)};

	if (step == BUILD)
		build(e);
	else if (step == AGAIN)
		again(e);
	else if (step == TICK)
		sw_control_tick(&e->from, &e->params, e->now_ns += a * SW_MS);
	else if (step == FRAME && r->n_frames)
		take(e, &r->frames[a % AIR % r->n_frames]);
	else if (step == ACK && r->n_acks)
		on_ack(e, r->acks[a % AIR % r->n_acks]);
	else if (step == FORGED_FRAME)
		e->is_forged = true, take(e, &forged);
	else if (step == FORGED_ACK)
		e->is_forged = true, on_ack(e, forged.ctl.number);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct fuzz_input in = {data, n};
	static struct ends e;
	/* around 0 or 2^15 */
	uint32_t start = fuzz_u16(&in) - UINT32_C(0x8000);

	memset(&e, 0, sizeof(e));
	sw_params_init(&e.params);
	e.now_ns = SW_S;
	e.from.n_built = e.from.n_acked = e.from.n_sent = e.to.n_taken = start;
	while (in.left) {
		uint8_t what = fuzz_u8(&in);

		step(&e, what % N_STEPS, fuzz_u8(&in));
		assert(e.from.n_built - e.from.n_acked <= SW_CONTROL_WINDOW);
		assert(e.from.n_built - e.from.n_sent <= SW_CONTROL_WINDOW);
		assert(e.from.n_sent - e.from.n_acked <= SW_CONTROL_WINDOW);
		if (e.is_forged)
			continue;
		assert(e.to.n_taken - start <= e.from.n_built - start);
		assert(e.from.n_acked - start <= e.to.n_taken - start);
		assert(!e.st.rx_state);
	}
	return 0;
}
