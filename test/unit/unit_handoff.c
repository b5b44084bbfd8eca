/* unit_handoff.c - frames handed from one lcore to another.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "engine/handoff.h"
#include "test/support/port.h"

enum { N_PORTS = 2, N_FRAMES = 20000 };

static struct sw_handoff *open_handoff(void)
{
	static struct sw_handoff h;
	static struct test_port ports[N_PORTS];
	struct sw_port *list[N_PORTS];

	for (uint32_t i = 0; i < N_PORTS; i++) {
		port_init(&ports[i]);
		ports[i].port.max_payload = 3328;
		list[i] = &ports[i].port;
	}
	assert_int_equal(sw_handoff_open(&h, list, N_PORTS), 0);
	return &h;
}

/* A frame comes to the polling lcore. */
static void come(struct sw_handoff *h, uint32_t port_i, uint16_t endpoint,
	const void *payload, uint32_t bytes)
{
	uint8_t head[SW_HEAD_BYTES];
	struct sw_rx_frame f = {.data = head,
		.payload = payload,
		.len = SW_HEAD_BYTES + bytes,
		.endpoint = endpoint,
		.from = {.ip = 7, .udp = 8, .port_i = (uint16_t)port_i}};

	memset(head, endpoint, sizeof(head));
	h->node.rx(&h->node, 0, port_i, &f, 1);
}

static void send(struct sw_handoff *h, uint32_t port_i, uint16_t endpoint,
	const void *payload, uint32_t bytes, bool is_stable)
{
	struct sw_tx_frame f = {.payload = payload,
		.payload_len = bytes,
		.is_stable = is_stable,
		.class = 5,
		.endpoint = endpoint,
		.to = {.ip = 9, .udp = 10, .port_i = (uint16_t)port_i}};

	h->list[port_i]->ops->tx(h->list[port_i], &f);
}

static uint32_t receive(
	struct sw_handoff *h, uint32_t port_i, struct sw_rx_frame *out)
{
	return h->list[port_i]->ops->rx(h->list[port_i], out, SW_RX_BURST);
}

static void rx__copied_with_its_addresses(void **state)
{
	struct sw_handoff *h = open_handoff();
	struct sw_rx_frame in[SW_RX_BURST];
	uint8_t bytes[100], want[100];

	memset(bytes, 3, sizeof(bytes));
	memset(want, 3, sizeof(want));
	come(h, 1, 2, bytes, sizeof(bytes));
	memset(bytes, 4, sizeof(bytes)); /* the port has it back */
	assert_int_equal(receive(h, 0, in), 0);
	assert_int_equal(receive(h, 1, in), 1);
	assert_int_equal(in[0].endpoint, 2);
	assert_int_equal(in[0].len, SW_HEAD_BYTES + sizeof(bytes));
	assert_memory_equal(in[0].payload, want, sizeof(want));
	assert_int_equal(in[0].from.ip, 7);
	assert_int_equal(in[0].from.udp, 8);
	assert_int_equal(h->list[1]->max_payload, 3328);
	assert_int_equal(h->stats.handoff_rx, 1);
	sw_handoff_close(h);
}

static void rx__full_ring_drops_and_counts(void **state)
{
	struct sw_handoff *h = open_handoff();
	struct sw_rx_frame in[SW_RX_BURST];

	for (uint32_t i = 0; i < SW_HANDOFF_SLOTS + 3; i++)
		come(h, 0, (uint16_t)i, NULL, 0);
	assert_int_equal(h->stats.handoff_rx, SW_HANDOFF_SLOTS);
	assert_int_equal(h->stats.handoff_full, 3);
	assert_int_equal(receive(h, 0, in), SW_HANDOFF_SLOTS);
	come(h, 0, 99, NULL, 0); /* borrowed slots are not free yet */
	assert_int_equal(h->stats.handoff_full, 4);
	h->list[0]->ops->rx_release(h->list[0]);
	come(h, 0, 99, NULL, 0);
	assert_int_equal(receive(h, 0, in), 1);
	assert_int_equal(in[0].endpoint, 99);
	sw_handoff_close(h);
}

/* What a stranger says of its length may not lead out of the slot. */
static void rx__too_long(void **state)
{
	struct sw_handoff *h = open_handoff();
	static uint8_t bytes[SW_PAYLOAD_MAX + 1];
	struct sw_rx_frame in[SW_RX_BURST];

	come(h, 0, 0, bytes, sizeof(bytes));
	assert_int_equal(receive(h, 0, in), 0);
	assert_int_equal(h->stats.handoff_full, 1);
	come(h, 0, 0, bytes, SW_PAYLOAD_MAX);
	assert_int_equal(receive(h, 0, in), 1);
	sw_handoff_close(h);
}

/* A slot is kept until the port has taken its frame: the next call says so. */
static void tx__slot_outlives_the_call(void **state)
{
	struct sw_handoff *h = open_handoff();
	uint8_t tensor[64] = {1}, control[64] = {2};
	struct sw_tx_frame out = {0};

	send(h, 0, 3, tensor, sizeof(tensor), true);
	send(h, 0, 3, control, sizeof(control), false);
	memset(control, 0, sizeof(control));
	assert_false(h->node.tx(&h->node, 0, 1, &out)); /* another port */
	assert_true(h->node.tx(&h->node, 0, 0, &out));
	assert_ptr_equal(out.payload, tensor); /* no byte was copied */
	assert_true(out.is_stable);
	assert_int_equal(out.endpoint, 3);
	assert_int_equal(out.class, 5);
	assert_int_equal(out.to.ip, 9);
	assert_true(h->node.is_busy(&h->node));
	assert_true(h->node.tx(&h->node, 0, 0, &out));
	assert_false(out.is_stable);
	assert_int_equal(((const uint8_t *)out.payload)[0], 2);
	assert_true(h->node.is_busy(&h->node));
	assert_false(h->node.tx(&h->node, 0, 0, &out));
	assert_false(h->node.is_busy(&h->node));
	assert_int_equal(h->stats.handoff_tx, 2);
	sw_handoff_close(h);
}

/* The link is down, memory is to go: nothing refers to it any more. */
static void let_go__drops_what_waits(void **state)
{
	struct sw_handoff *h = open_handoff();
	uint8_t tensor[64] = {1};
	struct sw_tx_frame out;

	for (uint32_t i = 0; i < 3; i++)
		send(h, i % N_PORTS, 3, tensor, sizeof(tensor), true);
	assert_true(h->node.tx(&h->node, 0, 0, &out));
	sw_handoff_let_go(h);
	assert_false(h->node.is_busy(&h->node));
	assert_false(h->node.tx(&h->node, 0, 0, &out));
	assert_int_equal(
		h->list[0]->ops->tx_room(h->list[0]), SW_HANDOFF_SLOTS);
	send(h, 0, 4, tensor, sizeof(tensor), true);
	assert_true(h->node.tx(&h->node, 0, 0, &out));
	assert_int_equal(out.endpoint, 4);
	sw_handoff_close(h);
}

static void tx__paced_port_holds_all(void **state)
{
	struct sw_handoff *h = open_handoff();
	struct sw_tx_frame out;

	send(h, 0, 1, NULL, 0, false);
	h->node.holds_data = true;
	assert_false(h->node.tx(&h->node, 0, 0, &out));
	h->node.holds_data = false;
	assert_true(h->node.tx(&h->node, 0, 0, &out));
	assert_false(h->node.tx(&h->node, 0, 0, &out));
	sw_handoff_close(h);
}

/* The far lcore: sends back the first bytes of each frame, in order. */
static void *far_lcore(void *ctx)
{
	struct sw_handoff *h = ctx;
	struct sw_rx_frame in[SW_RX_BURST];
	struct sw_port *p = h->list[0];
	uint32_t n = 0;

	while (n < N_FRAMES) {
		uint32_t room = p->ops->tx_room(p), got;

		got = p->ops->rx(p, in, room < 16 ? room : 16);
		for (uint32_t i = 0; i < got; i++)
			send(h, 0, in[i].endpoint, in[i].payload, 600, false);
		p->ops->rx_release(p);
		n += got;
		if (!got)
			sched_yield();
	}
	return NULL;
}

/* Two threads: every frame, whole, once, in order. */
static void both__two_lcores(void **state)
{
	struct sw_handoff *h = open_handoff();
	uint32_t payload[150], n_in = 0, n_back = 0;
	struct sw_tx_frame out;
	pthread_t far;

	assert_int_equal(pthread_create(&far, NULL, far_lcore, h), 0);
	while (n_back < N_FRAMES) {
		uint64_t full = h->stats.handoff_full;

		for (uint32_t k = 0; k < 150; k++)
			payload[k] = n_in * 31 + k;
		if (n_in < N_FRAMES) {
			come(h, 0, (uint16_t)n_in, payload, sizeof(payload));
			n_in += h->stats.handoff_full == full;
		}
		if (!h->node.tx(&h->node, 0, 0, &out)) {
			sched_yield();
			continue;
		}
		assert_int_equal(out.endpoint, (uint16_t)n_back);
		for (uint32_t k = 0; k < 150; k++)
			payload[k] = n_back * 31 + k;
		assert_memory_equal(out.payload, payload, sizeof(payload));
		n_back++;
	}
	pthread_join(far, NULL);
	assert_false(h->node.tx(&h->node, 0, 0, &out));
	sw_handoff_close(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rx__copied_with_its_addresses),
		cmocka_unit_test(rx__full_ring_drops_and_counts),
		cmocka_unit_test(rx__too_long),
		cmocka_unit_test(tx__slot_outlives_the_call),
		cmocka_unit_test(let_go__drops_what_waits),
		cmocka_unit_test(tx__paced_port_holds_all),
		cmocka_unit_test(both__two_lcores),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
