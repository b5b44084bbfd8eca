/* unit_handoff.c - hand frames from one lcore to another.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "pmd/lcores/handoff.h"
#include "test/support/port.h"

enum { N_LCORES = 3, N_PORTS = 2, N_FRAMES = 20000 };

static struct test_port queue_pairs[N_LCORES][N_PORTS];

/* Open ports where lcore 0 has a queue pair at each, and other lcores only at
 * the first @n_queued ports. */
static struct sw_handoff *open_some(uint32_t n_queued)
{
	static struct sw_handoff h;
	struct sw_port *queues[SW_MAX_LCORES][SW_MAX_PORTS] = {0};

	for (uint32_t l = 0; l < N_LCORES; l++)
		for (uint32_t i = 0; i < N_PORTS; i++) {
			struct test_port *p = &queue_pairs[l][i];

			port_init(p);
			p->port.max_payload = 3328;
			p->port.is_inner = i == 1;
			if (!l || i < n_queued)
				queues[l][i] = &p->port;
		}
	assert_int_equal(
		sw_handoff_open(&h, N_LCORES, N_PORTS,
			(struct sw_port *const(*)[SW_MAX_PORTS])queues),
		0);
	return &h;
}

static struct sw_handoff *open_handoff(void)
{
	return open_some(0);
}

/* Return the engine through which lcore 0 serves lcore 1. */
static struct sw_engine *node_of(struct sw_handoff *h)
{
	return sw_handoff_engine(h, 0, 1);
}

static struct sw_port *port_at(struct sw_handoff *h, uint32_t port_i)
{
	return sw_handoff_ports(h, 1)[port_i];
}

static struct sw_stats stats_of(const struct sw_handoff *h)
{
	struct sw_stats sum = {0};

	sw_handoff_add_stats(h, &sum);
	return sum;
}

/* Let a frame arrive at the polling lcore. */
static void come(struct sw_handoff *h, uint32_t port_i, uint16_t endpoint,
	const void *payload, uint32_t bytes)
{
	uint8_t head[SW_HEAD_BYTES];
	struct sw_rx_frame f = {.data = head,
		.payload = payload,
		.len = SW_HEAD_BYTES + bytes,
		.endpoint = endpoint,
		.from = {.ip = sw_ip_v4(7),
			.udp = 8,
			.port_i = (uint16_t)port_i}};

	memset(head, endpoint, sizeof(head));
	node_of(h)->rx(node_of(h), 0, port_i, &f, 1);
}

static void send(struct sw_handoff *h, uint32_t port_i, uint16_t endpoint,
	const void *payload, uint32_t bytes, bool is_stable)
{
	struct sw_tx_frame f = {.payload = payload,
		.payload_len = bytes,
		.is_stable = is_stable,
		.class = 5,
		.endpoint = endpoint,
		.to = {.ip = sw_ip_v4(9),
			.udp = 10,
			.port_i = (uint16_t)port_i}};

	port_at(h, port_i)->ops->tx(port_at(h, port_i), &f, 1);
}

static uint32_t receive(
	struct sw_handoff *h, uint32_t port_i, struct sw_rx_frame *out)
{
	return port_at(h, port_i)->ops->rx(
		port_at(h, port_i), out, SW_RX_BURST);
}

static void rx__copied_with_its_addresses(void **state)
{
	struct sw_handoff *h = open_handoff();
	struct sw_rx_frame in[SW_RX_BURST];
	uint8_t bytes[100], want[100];

	memset(bytes, 3, sizeof(bytes));
	memset(want, 3, sizeof(want));
	come(h, 1, 2, bytes, sizeof(bytes));
	/* the port has the frame back and reuses its memory */
	memset(bytes, 4, sizeof(bytes));
	assert_int_equal(receive(h, 0, in), 0);
	assert_int_equal(receive(h, 1, in), 1);
	assert_int_equal(in[0].endpoint, 2);
	assert_int_equal(in[0].len, SW_HEAD_BYTES + sizeof(bytes));
	assert_memory_equal(in[0].payload, want, sizeof(want));
	assert_int_equal((uint32_t)in[0].from.ip.low, 7);
	assert_int_equal(in[0].from.udp, 8);
	assert_int_equal(port_at(h, 1)->max_payload, 3328);
	assert_true(port_at(h, 1)->is_inner);
	assert_false(port_at(h, 0)->is_inner);
	assert_int_equal(stats_of(h).handoff_rx, 1);
	sw_handoff_close(h);
}

/* sw_handoff_has sees a waiting frame, so its lcore does not sleep. */
static void has__until_it_is_taken(void **state)
{
	struct sw_handoff *h = open_handoff();
	struct sw_rx_frame in[SW_RX_BURST];
	struct sw_tx_frame out[2];

	assert_false(sw_handoff_has(h, 0, 1));
	come(h, 1, 2, NULL, 0);
	assert_true(sw_handoff_has(h, 0, 1));
	assert_false(sw_handoff_has(h, 2, 1));
	assert_false(sw_handoff_has(h, 1, 0));
	assert_int_equal(receive(h, 1, in), 1);
	port_at(h, 1)->ops->rx_release(port_at(h, 1));
	assert_false(sw_handoff_has(h, 0, 1));
	send(h, 0, 1, NULL, 0, true);
	assert_true(sw_handoff_has(h, 1, 0));
	assert_false(sw_handoff_has(h, 1, 2));
	assert_int_equal(node_of(h)->tx(node_of(h), 0, 0, out, 2), 1);
	node_of(h)->tx(node_of(h), 0, 0, out, 2);
	assert_false(sw_handoff_has(h, 1, 0));
	sw_handoff_close(h);
}

static void rx__full_ring_drops_and_counts(void **state)
{
	struct sw_handoff *h = open_handoff();
	struct sw_rx_frame in[SW_RX_BURST];

	for (uint32_t i = 0; i < SW_HANDOFF_SLOTS + 3; i++)
		come(h, 0, (uint16_t)i, NULL, 0);
	assert_int_equal(stats_of(h).handoff_rx, SW_HANDOFF_SLOTS);
	assert_int_equal(stats_of(h).handoff_full, 3);
	assert_int_equal(receive(h, 0, in), SW_HANDOFF_SLOTS);
	come(h, 0, 99, NULL, 0); /* borrowed slots are not free yet */
	assert_int_equal(stats_of(h).handoff_full, 4);
	port_at(h, 0)->ops->rx_release(port_at(h, 0));
	come(h, 0, 99, NULL, 0);
	assert_int_equal(receive(h, 0, in), 1);
	assert_int_equal(in[0].endpoint, 99);
	sw_handoff_close(h);
}

/* A forged length must not lead out of the slot. */
static void rx__wrong_length(void **state)
{
	struct sw_handoff *h = open_handoff();
	static uint8_t bytes[SW_PAYLOAD_MAX + 1];
	struct sw_rx_frame in[SW_RX_BURST];

	come(h, 0, 0, bytes, sizeof(bytes));
	assert_int_equal(receive(h, 0, in), 0);
	assert_int_equal(stats_of(h).rx_length, 1);
	come(h, 0, 0, bytes, (uint32_t)-1); /* shorter than a header */
	assert_int_equal(receive(h, 0, in), 0);
	assert_int_equal(stats_of(h).rx_short, 1);
	assert_int_equal(stats_of(h).handoff_full, 0);
	come(h, 0, 0, bytes, SW_PAYLOAD_MAX);
	assert_int_equal(receive(h, 0, in), 1);
	sw_handoff_close(h);
}

/* A slot stays in use until the port has taken its frame, which the next call
 * shows. */
static void tx__slot_outlives_the_call(void **state)
{
	struct sw_handoff *h = open_handoff();
	uint8_t tensor[64] = {1}, control[64] = {2};
	struct sw_tx_frame out = {0};

	send(h, 0, 3, tensor, sizeof(tensor), true);
	send(h, 0, 3, control, sizeof(control), false);
	memset(control, 0, sizeof(control));
	assert_false(
		node_of(h)->tx(node_of(h), 0, 1, &out, 1)); /* another port */
	assert_true(node_of(h)->tx(node_of(h), 0, 0, &out, 1));
	assert_ptr_equal(out.payload, tensor); /* the payload was not copied */
	assert_true(out.is_stable);
	assert_int_equal(out.endpoint, 3);
	assert_int_equal(out.class, 5);
	assert_int_equal((uint32_t)out.to.ip.low, 9);
	assert_true(node_of(h)->is_busy(node_of(h)));
	assert_true(node_of(h)->tx(node_of(h), 0, 0, &out, 1));
	assert_false(out.is_stable);
	assert_int_equal(((const uint8_t *)out.payload)[0], 2);
	assert_true(node_of(h)->is_busy(node_of(h)));
	assert_false(node_of(h)->tx(node_of(h), 0, 0, &out, 1));
	assert_false(node_of(h)->is_busy(node_of(h)));
	assert_int_equal(stats_of(h).handoff_tx, 2);
	sw_handoff_close(h);
}

/* If the link is down and memory is to be released, no waiting frame may refer
 * to the memory. */
static void release__drops_what_waits(void **state)
{
	struct sw_handoff *h = open_handoff();
	uint8_t tensor[64] = {1};
	struct sw_tx_frame out;

	for (uint32_t i = 0; i < 3; i++)
		send(h, i % N_PORTS, 3, tensor, sizeof(tensor), true);
	assert_true(node_of(h)->tx(node_of(h), 0, 0, &out, 1));
	sw_handoff_release(h, 1);
	sw_handoff_release(h, 1);
	assert_int_equal(stats_of(h).handoff_tx, 1);
	assert_int_equal(stats_of(h).handoff_released, 2);
	assert_false(node_of(h)->is_busy(node_of(h)));
	assert_false(node_of(h)->tx(node_of(h), 0, 0, &out, 1));
	assert_int_equal(
		port_at(h, 0)->ops->tx_room(port_at(h, 0)), SW_HANDOFF_SLOTS);
	send(h, 0, 4, tensor, sizeof(tensor), true);
	assert_true(node_of(h)->tx(node_of(h), 0, 0, &out, 1));
	assert_int_equal(out.endpoint, 4);
	sw_handoff_close(h);
}

static void tx__paced_port_holds_all(void **state)
{
	struct sw_handoff *h = open_handoff();
	struct sw_tx_frame out;

	send(h, 0, 1, NULL, 0, false);
	node_of(h)->holds_data = true;
	assert_false(node_of(h)->tx(node_of(h), 0, 0, &out, 1));
	node_of(h)->holds_data = false;
	assert_true(node_of(h)->tx(node_of(h), 0, 0, &out, 1));
	assert_false(node_of(h)->tx(node_of(h), 0, 0, &out, 1));
	sw_handoff_close(h);
}

/* The far lcore sends back the first bytes of each frame, in order. */
static void *far_lcore(void *ctx)
{
	struct sw_handoff *h = ctx;
	struct sw_rx_frame in[SW_RX_BURST];
	struct sw_port *p = port_at(h, 0);
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

/* With two threads every frame arrives whole, once and in order. */
static void both__two_lcores(void **state)
{
	struct sw_handoff *h = open_handoff();
	uint32_t payload[150], n_in = 0, n_back = 0;
	struct sw_tx_frame out;
	pthread_t far;

	assert_int_equal(pthread_create(&far, NULL, far_lcore, h), 0);
	while (n_back < N_FRAMES) {
		uint64_t full = stats_of(h).handoff_full;

		for (uint32_t k = 0; k < 150; k++)
			payload[k] = n_in * 31 + k;
		if (n_in < N_FRAMES) {
			come(h, 0, (uint16_t)n_in, payload, sizeof(payload));
			n_in += stats_of(h).handoff_full == full;
		}
		if (!node_of(h)->tx(node_of(h), 0, 0, &out, 1)) {
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
	assert_false(node_of(h)->tx(node_of(h), 0, 0, &out, 1));
	sw_handoff_close(h);
}

/* Lcore 1 has a queue of its own. It receives from the queue and from the rings
 * of lcores where its frames landed, and it sends by itself. */
static void rx__own_queue_and_strays(void **state)
{
	struct sw_handoff *h = open_some(1);
	struct sw_engine *at_2 = sw_handoff_engine(h, 2, 1);
	struct sw_rx_frame in[SW_RX_BURST];
	uint8_t head[SW_HEAD_BYTES] = {7};
	struct sw_rx_frame f = {
		.data = head, .len = SW_HEAD_BYTES, .endpoint = 1};
	struct sw_tx_frame out;

	queue_pairs[1][0].n_inbox = 1;
	come(h, 0, 1, NULL, 0);
	at_2->rx(at_2, 0, 0, &f, 1);
	assert_int_equal(receive(h, 0, in), 3);
	/* they landed on lcores 0 and 2 */
	assert_int_equal(in[0].landed + in[1].landed, 2);
	assert_int_equal(stats_of(h).handoff_rx, 2);
	assert_int_equal(stats_of(h).handoff_misrouted, 2);
	port_at(h, 0)->ops->rx_release(port_at(h, 0));
	assert_int_equal(receive(h, 0, in), 0);
	send(h, 0, 1, NULL, 0, false);
	assert_int_equal(queue_pairs[1][0].n_tx, 1);
	assert_false(node_of(h)->tx(node_of(h), 0, 0, &out, 1));
	assert_false(node_of(h)->is_busy(node_of(h)));
	sw_handoff_close(h);
}

/* At a port where lcore 1 has no queue, its frames do not count as
 * misrouted. */
static void rx__of_a_port_without_a_queue(void **state)
{
	struct sw_handoff *h = open_some(1);
	struct sw_rx_frame in[SW_RX_BURST];
	struct sw_tx_frame out;

	come(h, 1, 1, NULL, 0);
	assert_int_equal(receive(h, 1, in), 1);
	assert_int_equal(stats_of(h).handoff_misrouted, 0);
	send(h, 1, 1, NULL, 0, false);
	assert_true(node_of(h)->tx(node_of(h), 0, 1, &out, 1));
	sw_handoff_close(h);
}

/* Frames that landed elsewhere take at most half of a burst, so the queue is
 * not starved. */
static void rx__queue_keeps_half(void **state)
{
	struct sw_handoff *h = open_some(1);
	struct sw_rx_frame in[SW_RX_BURST];

	for (uint32_t i = 0; i < SW_HANDOFF_SLOTS; i++)
		come(h, 0, 1, NULL, 0);
	queue_pairs[1][0].n_inbox = 1;
	assert_int_equal(receive(h, 0, in), SW_RX_BURST / 2 + 1);
	assert_int_equal(in[SW_RX_BURST / 2].len, SW_HEAD_BYTES);
	port_at(h, 0)->ops->rx_release(port_at(h, 0));
	assert_int_equal(receive(h, 0, in), SW_RX_BURST / 2);
	sw_handoff_close(h);
}

/* If there is one lcore, or only one with queues, its ports are the queues
 * themselves. */
static void open__alone_is_untouched(void **state)
{
	struct sw_handoff *h = open_some(0);
	struct sw_engine *back = sw_handoff_engine(h, 1, 0);
	struct sw_tx_frame out;

	assert_ptr_equal(sw_handoff_ports(h, 0)[0], &queue_pairs[0][0].port);
	assert_ptr_not_equal(port_at(h, 0), &queue_pairs[1][0].port);
	assert_false(
		back->tx(back, 0, 0, &out, 1)); /* lcore 0 forwards nothing */
	assert_false(back->is_busy(back));
	sw_handoff_close(h);
	h = open_some(1);
	assert_ptr_not_equal(
		sw_handoff_ports(h, 0)[0], &queue_pairs[0][0].port);
	assert_ptr_equal(sw_handoff_ports(h, 0)[1], &queue_pairs[0][1].port);
	sw_handoff_close(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rx__copied_with_its_addresses),
		cmocka_unit_test(has__until_it_is_taken),
		cmocka_unit_test(rx__full_ring_drops_and_counts),
		cmocka_unit_test(rx__wrong_length),
		cmocka_unit_test(tx__slot_outlives_the_call),
		cmocka_unit_test(release__drops_what_waits),
		cmocka_unit_test(tx__paced_port_holds_all),
		cmocka_unit_test(both__two_lcores),
		cmocka_unit_test(rx__own_queue_and_strays),
		cmocka_unit_test(rx__of_a_port_without_a_queue),
		cmocka_unit_test(rx__queue_keeps_half),
		cmocka_unit_test(open__alone_is_untouched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
