/* unit_losses.c - detect a path that loses many frames, and report it once.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/flow/losses.h"
#include "test/support/flow_rig.h"

static struct sw_losses losses;

static struct fixture *open_losses(void)
{
	struct fixture *x = open_flow();

	losses = (struct sw_losses){0};
	sw_congestion_init(&x->f.congestion, FRAME, 8192, true);
	return x;
}

/* Send @n pairs of frames; every @nth pair loses its first frame. @queue_ns:
 * delay of frames that are sent while a queue is full. */
static void send_some(
	struct fixture *x, uint32_t n, uint32_t nth, uint64_t queue_ns)
{
	for (uint32_t i = 1; i <= n; i++) {
		bool is_lost = nth && i % nth == 0;
		uint64_t psn = send(x, 0), more = send(x, 0);

		x->now_ns += 100 * SW_US + (i % 100 > 50 ? queue_ns : 0);
		ack(x, 0, more, is_lost ? 0 : 1, 0);
		x->now_ns += 10 * SW_MS;
		sw_flow_tick(&x->f, x->now_ns, on_fate, x);
		assert_int_equal(psn + 1, more);
		x->f.granted = x->f.consumed + (1 << 19);
	}
}

static uint32_t look(struct fixture *x)
{
	x->now_ns += SW_LOSSES_NS;
	assert_true(sw_losses_are_due(&losses, x->now_ns));
	return sw_losses_look(&losses, &x->f, x->now_ns);
}

static const char *text(const struct fixture *x, enum sw_losses_way way)
{
	static char out[SW_LOSSES_TEXT];

	return sw_losses_text(&losses, &x->f, way, "server a", out);
}

static void look__is_not_due_at_once(void **state)
{
	struct fixture *x = open_losses();

	look(x);
	assert_false(sw_losses_are_due(&losses, x->now_ns + SW_LOSSES_NS - 1));
	assert_true(sw_losses_are_due(&losses, x->now_ns + SW_LOSSES_NS));
}

static void look__few_losses_are_none(void **state)
{
	struct fixture *x = open_losses();

	send_some(x, 1000, 0, 0);
	assert_int_equal(look(x), 0);
	send_some(x, 1000, 60, 0); /* 0.8 % of 2000 */
	assert_int_equal(look(x), 0);
	send_some(x, 90, 2, 0); /* too few frames to decide */
	assert_int_equal(look(x), 0);
}

static void look__once_per_episode(void **state)
{
	struct fixture *x = open_losses();

	for (uint32_t i = 0; i < 2; i++) {
		send_some(x, 400, 20, 0);
		assert_int_equal(look(x), 1 << SW_LOSSES_SENT);
		assert_in_range(
			sw_losses_part(&losses, SW_LOSSES_SENT), 240, 260);
		send_some(x, 400, 20, 0);
		assert_int_equal(look(x), 0);
		send_some(x, 400, 60, 0); /* fewer losses, but they continue */
		assert_int_equal(look(x), 0);
		send_some(x, 400, 20, 0);
		assert_int_equal(look(x), 0);
		send_some(x, 400, 0, 0); /* the losses have ended */
		assert_int_equal(look(x), 0);
	}
}

static void look__a_new_flow(void **state)
{
	struct fixture *x = open_losses();

	send_some(x, 400, 20, 0);
	look(x);
	sw_flow_restart(&x->f);
	x->f.granted = 1 << 19;
	x->ack_psn = 0;
	assert_int_equal(look(x), 0);
	send_some(x, 400, 0, 0);
	assert_int_equal(look(x), 0);
}

static void look__of_the_peer(void **state)
{
	struct fixture *x = open_losses();

	for (uint64_t psn = 1; psn <= 1000; psn++)
		if (psn % 20)
			accept(x, 1, psn);
	assert_int_equal(look(x), 1 << SW_LOSSES_CAME);
	assert_string_equal(text(x, SW_LOSSES_CAME),
		"4.9 % of 999 frames from server a did not arrive, its log has "
		"the likely cause");
}

/* A late frame is not missed, and neither is a duplicate one. */
static void look__late_frames_have_arrived(void **state)
{
	struct fixture *x = open_losses();

	for (uint64_t psn = 2; psn <= 1000; psn += 2) {
		accept(x, 1, psn);
		accept(x, 1, psn - 1);
		accept(x, 1, psn - 1);
	}
	assert_int_equal(look(x), 0);
	assert_int_equal(sw_flow_losses(&x->f).missed, 0);
	assert_int_equal(sw_flow_losses(&x->f).numbered, 1000);
}

static void text__random(void **state)
{
	struct fixture *x = open_losses();

	send_some(x, 400, 20, 0);
	look(x);
	assert_string_equal(text(x, SW_LOSSES_SENT),
		"2.5 % of 800 frames to server a were lost and sent again, "
		"likely cause: loss at random, since no queue on the way grew");
}

static void text__queue(void **state)
{
	struct fixture *x = open_losses();

	send_some(x, 100, 0, 0);
	for (uint32_t i = 0; i < 8; i++)
		send_some(x, 99, 60, 3 * SW_MS);
	look(x);
	assert_non_null(strstr(text(x, SW_LOSSES_SENT),
		"likely cause: a full queue on the way, with round-trip times "
		"of 0.1 to 3.1 ms"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(look__is_not_due_at_once),
		cmocka_unit_test(look__few_losses_are_none),
		cmocka_unit_test(look__once_per_episode),
		cmocka_unit_test(look__a_new_flow),
		cmocka_unit_test(look__of_the_peer),
		cmocka_unit_test(look__late_frames_have_arrived),
		cmocka_unit_test(text__random),
		cmocka_unit_test(text__queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
