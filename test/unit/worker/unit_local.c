/* unit_local.c - several local ranks in one worker.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "sum/sum.h"
#include "test/support/worker_rig.h"

#include <stdlib.h>

enum { LOCAL = 3, FIRST = 4 };

static int32_t parts[LOCAL][2 * PEER_CHUNK];

/* Open rank 0 of 2 members with three local ranks and tensor "a" of 2 chunks;
 * local rank l has 10^l in every element. */
static struct worker_rig *open_rig(void)
{
	static struct worker_rig r;
	int32_t value = 1;

	wrig_open_local(&r, 0, 2, 1, LOCAL);
	r.s[0].n_local = LOCAL;
	wrig_run(&r);
	wrig_declare(&r, "a", 2 * PEER_CHUNK, 0);
	for (uint32_t l = 0; l < LOCAL; l++, value *= 10) {
		for (uint32_t i = 0; i < 2 * PEER_CHUNK; i++)
			parts[l][i] = value;
		sw_worker_source(&r.w, 0, l, parts[l]);
	}
	return &r;
}

static int ask(struct worker_rig *r, uint32_t local, uint32_t step)
{
	return sw_worker_begin(&r->w,
		&(struct sw_worker_round){
			.step = step, .local = local, .cookie = 70 + local});
}

static int copy(struct worker_rig *r, uint32_t local, uint16_t root)
{
	return sw_worker_begin(
		&r->w, &(struct sw_worker_round){.op = SW_ROUND_COPY,
			       .root = root,
			       .local = local,
			       .cookie = 70 + local});
}

static int32_t last_value(const struct worker_rig *r)
{
	int32_t v;

	memcpy(&v, r->last[SW_PUSH].bytes + SW_HEAD_BYTES, sizeof(v));
	return v;
}

static void begin__waits_for_all_and_sums(void **state)
{
	struct worker_rig *r = open_rig();

	assert_int_equal(ask(r, 2, 5), 0);
	assert_int_equal(ask(r, 2, 5), SW_EBUSY);
	assert_int_equal(ask(r, LOCAL, 5), SW_EINVAL);
	assert_int_equal(ask(r, 0, 5), 0);
	assert_string_equal(wrig_tx(r), "");
	assert_int_equal(r->w.n_open, 1);
	assert_int_equal(ask(r, 1, 5), 0);
	assert_string_equal(wrig_tx(r), "s0 PUSH k0 r1 c0 +1344; "
					"s0 PUSH k0 r1 c1 +1344");
	assert_int_equal(last_value(r), 111);
	assert_int_equal(r->last[SW_PUSH].h.weight, LOCAL);
	peer_result(&r->s[0], 0, 1, 0, 5000);
	assert_string_equal(wrig_events(r), "");
	peer_result(&r->s[0], 0, 1, 1, 6000);
	assert_string_equal(wrig_events(r), "done t0 #70 SW_OK w2; done t0 #71 "
					    "SW_OK w2; done t0 #72 SW_OK w2");
	assert_int_equal(r->data[0][0], 5000);
	assert_int_equal(r->data[0][2 * PEER_CHUNK - 1], 6000);
	assert_int_equal(parts[2][0], 100); /* contributions are unchanged */
	assert_int_equal(r->w.n_open, 0);
	wrig_close(r);
}

/* Some local ranks may ask for the next round before others have seen the last
 * one's end. A retransmission is built from the contributions again. */
static void begin__again_after_a_loss(void **state)
{
	struct worker_rig *r = open_rig();

	for (uint32_t l = 0; l < LOCAL; l++)
		ask(r, l, 1);
	wrig_tx(r);
	wrig_tick(r, 100 * SW_MS);
	assert_non_null(strstr(wrig_tx(r), "PUSH k0 r1 c0 +1344 again"));
	assert_int_equal(last_value(r), 111);
	peer_result(&r->s[0], 0, 1, 0, 1);
	peer_result(&r->s[0], 0, 1, 1, 1);
	ask(r, 0, 2);
	peer_result(&r->s[0], 0, 1, 1, 9); /* a duplicate, ignored */
	assert_int_equal(r->data[0][PEER_CHUNK], 1);
	wrig_tick(r, 100 * SW_MS);
	assert_null(strstr(wrig_tx(r), "PUSH"));
	wrig_close(r);
}

/* If local ranks differ in the step, the call fails for all of them, and the
 * servers learn it. The job and other tensors continue. */
static void begin__other_step(void **state)
{
	struct worker_rig *r = open_rig();

	ask(r, 1, 5);
	assert_int_equal(ask(r, 2, 6), SW_EMISMATCH);
	assert_string_equal(wrig_events(r), "done t0 #71 SW_EMISMATCH w0");
	assert_string_equal(sw_worker_why(&r->w, 0, (char[SW_TEXT_MAX]){0}),
		"tensor a: rank 2 pushes step 6, rank 1 pushes step 5");
	assert_int_equal(r->w.n_open, 0);
	assert_int_equal(ask(r, 0, 5), SW_EMISMATCH);
	/* the tensor stays dead */
	assert_int_equal(ask(r, 1, 6), SW_EMISMATCH);
	wrig_tick(r, 0);
	assert_string_equal(wrig_tx(r),
		"s0 END k0 r1 tensor k0: rank 2 pushes step 6, rank 1 "
		"pushes step 5");
	assert_int_equal(r->w.state, SW_WORKER_RUNNING);
	wrig_close(r);
}

static void begin__other_operation_or_root(void **state)
{
	struct worker_rig *r = open_rig();

	ask(r, 1, 0);
	assert_int_equal(copy(r, 0, 1), SW_EMISMATCH);
	assert_string_equal(sw_worker_why(&r->w, 0, (char[SW_TEXT_MAX]){0}),
		"tensor a: rank 0 takes part in a broadcast, rank 1 in a sum");
	wrig_close(r);
	r = open_rig();
	copy(r, 0, 1);
	assert_int_equal(copy(r, 1, 0), SW_EMISMATCH);
	assert_string_equal(sw_worker_why(&r->w, 0, (char[SW_TEXT_MAX]){0}),
		"tensor a: rank 1 broadcasts from rank 0, rank 0 from rank 1");
	wrig_close(r);
}

/* A local rank declares another size than an earlier local rank. */
static void declare__clash(void **state)
{
	struct worker_rig *r = open_rig();
	struct sw_worker_tensor d = {
		.name = "a", .n_elems = 7, .dtype = SW_F32};

	ask(r, 0, 1);
	sw_worker_clash(&r->w, 0, 2, &d);
	assert_string_equal(wrig_events(r), "done t0 #70 SW_EMISMATCH w0");
	assert_string_equal(sw_worker_why(&r->w, 0, (char[SW_TEXT_MAX]){0}),
		"tensor a: rank 2 declares 7 x f32, priority 0; rank 0 "
		"declared 672 x i32, priority 0");
	assert_int_equal(ask(r, 1, 1), SW_EMISMATCH);
	wrig_close(r);
}

/* The push has the bytes of the local rank that is the root, unsummed. */
static void copy__from_a_local_rank(void **state)
{
	struct worker_rig *r = open_rig();

	r->w.size = 8; /* as if the other member had five ranks */
	r->w.first = FIRST;
	for (uint32_t l = 0; l < LOCAL; l++)
		assert_int_equal(copy(r, l, FIRST + 2), 0);
	wrig_tx(r);
	assert_int_equal(last_value(r), 100);
	assert_int_equal(r->last[SW_PUSH].h.weight, 1);
	wrig_close(r);
	r = open_rig();
	r->w.size = 8;
	r->w.first = FIRST;
	for (uint32_t l = 0; l < LOCAL; l++)
		assert_int_equal(copy(r, l, FIRST - 1), 0);
	assert_string_equal(wrig_tx(r), "s0 PUSH k0 r1 c0 +0; "
					"s0 PUSH k0 r1 c1 +0");
	wrig_close(r);
}

/* A duplicate result of the previous sum arrives while the broadcast waits for
 * a local rank. It must be acknowledged, or the server would repeat it for
 * ever. */
static void copy__behind_a_late_result(void **state)
{
	struct worker_rig *r = open_rig();
	struct sw_header again = peer_result_header(0, 1, 0, PEER_CHUNK);

	for (uint32_t l = 0; l < LOCAL; l++)
		assert_int_equal(ask(r, l, 1), 0);
	wrig_tx(r);
	peer_result(&r->s[0], 0, 1, 0, 5);
	peer_result(&r->s[0], 0, 1, 1, 5);
	wrig_tick(r, SW_S);
	wrig_tx(r);
	assert_int_equal(copy(r, 0, 0), 0);
	peer_fill(&r->s[0], again, 5);
	assert_int_equal(r->w.stats.rx_dtype, 0);
	wrig_tick(r, SW_S);
	assert_contains(wrig_tx(r), "s0 ACK");
	wrig_close(r);
}

static void left__names_who_is_missed(void **state)
{
	struct worker_rig *r = open_rig();

	/* no call is open, so the others continue */
	sw_worker_local_left(&r->w, 1);
	assert_string_equal(wrig_events(r), "");
	assert_int_equal(ask(r, 0, 1), 0);
	assert_non_null(strstr(wrig_events(r),
		"rank 1 (node node) left; tensor a cannot complete"));
	wrig_close(r);
	r = open_rig();
	ask(r, 0, 1);
	sw_worker_local_left(&r->w, 0); /* its push has arrived */
	assert_string_equal(wrig_events(r), "");
	sw_worker_local_left(&r->w, 2);
	assert_non_null(strstr(wrig_events(r), "done t0 #70 SW_EPEER"));
	wrig_close(r);
}

static void stall__names_the_local_ranks(void **state)
{
	struct worker_rig *r = open_rig();
	const char *seen;

	ask(r, 1, 1);
	for (int i = 0; i < 310; i++) {
		struct sw_header h = {
			.type = SW_KEEPALIVE, .class = SW_CLASS_CTL};

		wrig_tick(r, 100 * SW_MS);
		peer_send(&r->s[0], h, NULL);
	}
	seen = wrig_events(r);
	assert_non_null(
		strstr(seen, "waiting 30 s for ranks 0, 2 of 6, tensor a"));
	wrig_close(r);
}

/* A 16-bit sum is rounded once: 2048 + 1 + 1 is 2050 in f16, but 2048 + 1
 * rounds to 2048. */
static void sum__rounds_once(void **state)
{
	static const uint16_t halves[LOCAL] = {0x6800, 0x3c00, 0x3c00};
	static uint16_t buffers[LOCAL][4], result[4];
	static struct worker_rig r;
	struct sw_worker_tensor d = {
		.name = "h", .n_elems = 4, .dtype = SW_F16, .base = result};
	uint16_t got;

	wrig_open_local(&r, 0, 2, 1, LOCAL);
	r.s[0].n_local = LOCAL;
	wrig_run(&r);
	assert_int_equal(sw_worker_declare(&r.w, &d, 1), 0);
	wrig_tx(&r);
	peer_declared(&r.s[0]);
	assert_int_equal(ask(&r, 0, 0), SW_EINVAL); /* no source is set */
	for (uint32_t l = 0; l < LOCAL; l++) {
		for (uint32_t i = 0; i < 4; i++)
			buffers[l][i] = halves[l];
		sw_worker_source(&r.w, 0, l, buffers[l]);
		assert_int_equal(ask(&r, l, 0), 0);
	}
	wrig_tx(&r);
	memcpy(&got, r.last[SW_PUSH].bytes + SW_HEAD_BYTES + 6, sizeof(got));
	assert_int_equal(got, 0x6801);
	wrig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(begin__waits_for_all_and_sums),
		cmocka_unit_test(begin__again_after_a_loss),
		cmocka_unit_test(begin__other_step),
		cmocka_unit_test(begin__other_operation_or_root),
		cmocka_unit_test(declare__clash),
		cmocka_unit_test(copy__from_a_local_rank),
		cmocka_unit_test(copy__behind_a_late_result),
		cmocka_unit_test(left__names_who_is_missed),
		cmocka_unit_test(stall__names_the_local_ranks),
		cmocka_unit_test(sum__rounds_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
