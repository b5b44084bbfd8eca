/* unit_loopback.c - the port that leads back to its own lcore.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <stdlib.h>

#include "pmd/lcores/handoff.h"

enum { OUR_IP = 0x0a000001 };

static struct sw_handoff_port *open_port(void)
{
	static struct sw_handoff_port *l;

	sw_loopback_close(l);
	l = sw_loopback_open();
	assert_non_null(l);
	return l;
}

static void send(struct sw_handoff_port *l, uint16_t from, uint16_t to,
	const void *payload, uint32_t bytes, bool is_stable)
{
	struct sw_tx_frame f = {.payload = payload,
		.payload_len = bytes,
		.is_stable = is_stable,
		.endpoint = from,
		.to = {.ip = sw_ip_v4(OUR_IP), .udp = to}};

	memset(f.head, (int)from, sizeof(f.head));
	l->port.ops->tx(&l->port, &f, 1);
	l->port.ops->tx_flush(&l->port);
}

static uint32_t receive(struct sw_handoff_port *l, struct sw_rx_frame *out)
{
	return l->port.ops->rx(&l->port, out, SW_RX_BURST);
}

static void rx__nothing_was_sent(void **state)
{
	struct sw_handoff_port *l = open_port();
	struct sw_rx_frame in[SW_RX_BURST];

	assert_int_equal(receive(l, in), 0);
	assert_int_equal(l->port.ops->tx_room(&l->port), SW_LOOPBACK_SLOTS);
	assert_int_equal(l->port.max_payload, SW_PAYLOAD_MAX);
}

/* Source and destination are endpoints, and an answer goes to the frame's
 * from. */
static void rx__addresses(void **state)
{
	struct sw_handoff_port *l = open_port();
	struct sw_rx_frame in[SW_RX_BURST];
	uint8_t head[SW_HEAD_BYTES];

	send(l, 3, 1, NULL, 0, false);
	send(l, 1, 3, NULL, 0, false);
	assert_int_equal(receive(l, in), 2);
	assert_int_equal(in[0].endpoint, 1);
	assert_int_equal(in[0].from.udp, 3);
	assert_int_equal((uint32_t)in[0].from.ip.low, OUR_IP);
	assert_int_equal(in[0].len, SW_HEAD_BYTES);
	assert_int_equal(in[1].endpoint, 3);
	assert_int_equal(in[1].from.udp, 1);
	memset(head, 3, sizeof(head));
	assert_memory_equal(in[0].data, head, sizeof(head));
}

/* The receiver reads the sender's memory; no byte is copied. */
static void tx__stable_payload_is_not_copied(void **state)
{
	struct sw_handoff_port *l = open_port();
	struct sw_rx_frame in[SW_RX_BURST];
	static uint8_t tensor[SW_PAYLOAD_MAX];

	send(l, 0, 1, tensor, sizeof(tensor), true);
	assert_int_equal(receive(l, in), 1);
	assert_ptr_equal(in[0].payload, tensor);
	assert_true(in[0].is_lent);
	assert_true(l->port.is_inner);
	assert_int_equal(in[0].len, SW_HEAD_BYTES + sizeof(tensor));
}

static void tx__other_payload_is_copied(void **state)
{
	struct sw_handoff_port *l = open_port();
	struct sw_rx_frame in[SW_RX_BURST];
	uint8_t *bytes = malloc(SW_PAYLOAD_MAX), want[SW_PAYLOAD_MAX];

	memset(bytes, 7, SW_PAYLOAD_MAX);
	send(l, 0, 1, bytes, SW_PAYLOAD_MAX, false);
	free(bytes); /* the memory may be freed when tx returns */
	memset(want, 7, sizeof(want));
	assert_int_equal(receive(l, in), 1);
	assert_false(in[0].is_lent);
	assert_memory_equal(in[0].payload, want, sizeof(want));
}

/* Before lent memory is freed or written, the port copies the waiting payloads,
 * and keeps their order. */
static void keep__copies_stable_payloads(void **state)
{
	struct sw_handoff_port *l = open_port();
	struct sw_rx_frame in[SW_RX_BURST];
	uint8_t tensor[SW_PAYLOAD_MAX], want[SW_PAYLOAD_MAX];

	memset(tensor, 3, sizeof(tensor));
	memset(want, 3, sizeof(want));
	send(l, 0, 1, tensor, 1, false);
	send(l, 0, 1, tensor, sizeof(tensor), true);
	sw_loopback_copy_lent(l);
	memset(tensor, 4, sizeof(tensor));
	assert_int_equal(receive(l, in), 2);
	assert_false(in[1].is_lent);
	assert_int_equal(in[1].len, SW_HEAD_BYTES + sizeof(want));
	assert_memory_equal(in[1].payload, want, sizeof(want));
}

/* Frames stay in order and none is lost, at any fill, over many wraps of the
 * ring. */
static void ring__full_and_round(void **state)
{
	struct sw_handoff_port *l = open_port();
	struct sw_rx_frame in[SW_RX_BURST];
	uint16_t sent = 0, got = 0;

	for (uint32_t turn = 0; turn < 1000; turn++) {
		uint32_t want = turn * 7 % (SW_LOOPBACK_SLOTS + 1), n;

		while (want-- && l->port.ops->tx_room(&l->port)) {
			send(l, 0, sent, &sent, sizeof(sent), false);
			sent++;
		}
		n = l->port.ops->rx(&l->port, in, 1 + turn % SW_RX_BURST);
		for (uint32_t i = 0; i < n; i++, got++) {
			assert_int_equal(in[i].endpoint, got);
			assert_memory_equal(in[i].payload, &got, sizeof(got));
		}
		l->port.ops->rx_release(&l->port);
	}
	assert_true(got > 10 * SW_LOOPBACK_SLOTS);
	/* let the counts wrap */
	l->out->n_put = l->out->n_taken = UINT32_MAX - 3;
	for (uint32_t i = 0; i < SW_LOOPBACK_SLOTS; i++)
		send(l, 0, (uint16_t)i, NULL, 0, false);
	assert_int_equal(l->port.ops->tx_room(&l->port), 0);
	assert_int_equal(receive(l, in), SW_LOOPBACK_SLOTS);
	for (uint32_t i = 0; i < SW_LOOPBACK_SLOTS; i++)
		assert_int_equal(in[i].endpoint, i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rx__nothing_was_sent),
		cmocka_unit_test(rx__addresses),
		cmocka_unit_test(tx__stable_payload_is_not_copied),
		cmocka_unit_test(tx__other_payload_is_copied),
		cmocka_unit_test(keep__copies_stable_payloads),
		cmocka_unit_test(ring__full_and_round),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
