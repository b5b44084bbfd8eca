/* unit_server.c - frames into and out of a server that sums one job.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "test/support/server_rig.h"

/* Open a server of @n_members with tensor "a" of @n_chunks full chunks. */
static struct server_rig *open_rig(uint16_t n_members, uint32_t n_chunks)
{
	static struct server_rig r;

	server_rig_open(&r, n_members, 64 << 20);
	rig_run(&r, (uint64_t)n_chunks * PEER_CHUNK);
	return &r;
}

/* --- life --- */

static void open__too_many_ports(void **state)
{
	struct sw_server *srv;
	struct test_env e;
	struct sw_params params;
	struct sw_port port = {.max_payload = 1344};
	struct sw_port *ports[] = {&port};

	test_env_init(&e);
	sw_params_init(&params);
	assert_int_equal(
		sw_server_open(&srv, &params, &e.env, ports, 0, 1), SW_EINVAL);
	assert_int_equal(sw_server_open(&srv, &params, &e.env, ports,
				 SW_MAX_PORTS + 1, 1),
		SW_EINVAL);
	assert_int_equal(sw_server_open(&srv, &params, &e.env, ports, 1, 1), 0);
	sw_server_close(srv);
	test_env_fini(&e);
}

/* --- PUSH and RESULT --- */

static void push__in_order(void **state)
{
	struct server_rig *r = open_rig(2, 1);

	for (uint32_t round = 1; round < 6; round++) {
		peer_push(&r->w[0], 0, round, 0, 10);
		assert_string_equal(rig_tx(r), "");
		peer_push(&r->w[1], 0, round, 0, (int32_t)round);
		rig_tx(r);
		assert_true(rig_result_is(r, 10 + (int32_t)round));
		assert_int_equal(r->last[SW_RESULT].h.weight, 2);
		peer_ack(&r->w[0], 0, round);
		peer_ack(&r->w[1], 0, round);
	}
	assert_int_equal(r->srv->stats.push_folded, 10);
	assert_int_equal(r->srv->stats.results, 10);
	server_rig_close(r);
}

static void push__texts(void **state)
{
	struct server_rig *r = open_rig(2, 1);

	peer_push(&r->w[0], 0, 1, 0, 1);
	peer_push(&r->w[1], 0, 1, 0, 1);
	assert_string_equal(rig_tx(r), "w0 RESULT k0 r1 c0 +1344 w2; "
				       "w1 RESULT k0 r1 c0 +1344 w2");
	server_rig_close(r);
}

/* RESULT acknowledges the push that completed the sum; the server sends an ACK
 * only after the last of a series. */
static void push__result_is_the_ack(void **state)
{
	struct server_rig *r = open_rig(1, 64);

	for (uint32_t c = 0; c < 64; c++) {
		peer_push(&r->w[0], 0, 1, c, 1);
		assert_null(strstr(rig_tx(r), "ACK"));
	}
	rig_tick(r, SW_MS);
	assert_string_equal(rig_tx(r), "w0 ACK 0:1-64");
	assert_int_equal(r->srv->stats.acks, 1);
	server_rig_close(r);
}

/* If the sum is incomplete, an ACK says that the push has arrived. */
static void push__ack_after_a_while(void **state)
{
	struct server_rig *r = open_rig(2, 4);

	peer_push(&r->w[0], 0, 1, 0, 1);
	peer_push(&r->w[0], 0, 1, 1, 1);
	assert_string_equal(rig_tx(r), "");
	assert_true(rig_tick(r, 0) == r->now_ns + r->params.ack_delay);
	rig_tick(r, r->params.ack_delay);
	assert_string_equal(rig_tx(r), "w0 ACK 0:1-2");
	server_rig_close(r);
}

/* Results of earlier pushes must not count as the ACK of later ones. Otherwise
 * a fast worker's pushes are never acknowledged while a slow worker catches
 * up. */
static void push__ack_in_spite_of_older_results(void **state)
{
	struct server_rig *r = open_rig(2, 40);
	bool has_ack = false;

	for (uint32_t c = 0; c < 20; c++)
		peer_push(&r->w[0], 0, 1, c, 1);
	rig_tick(r, SW_MS);
	assert_contains(rig_tx(r), "w0 ACK 0:1-20");
	for (uint32_t c = 20; c < 40; c++) {
		peer_push(&r->w[0], 0, 1, c, 1);
		peer_push(&r->w[1], 0, 1, c - 20, 2);
		rig_tick(r, 10 * SW_US);
		has_ack |= strstr(rig_tx(r), "w0 ACK") != NULL;
		peer_ack(&r->w[0], 0, c - 19);
	}
	rig_tick(r, SW_MS);
	has_ack |= strstr(rig_tx(r), "w0 ACK") != NULL;
	assert_true(has_ack);
	server_rig_close(r);
}

static void push__gap_is_told_at_once(void **state)
{
	struct server_rig *r = open_rig(2, 4);

	peer_push(&r->w[0], 0, 1, 0, 1);
	r->w[0].psn[0]++; /* one frame is lost */
	peer_push(&r->w[0], 0, 1, 2, 1);
	assert_string_equal(rig_tx(r), "w0 ACK 0:1,3");
	server_rig_close(r);
}

/* A retransmission has a new number, and the server acknowledges it again. */
static void push__duplicate(void **state)
{
	struct server_rig *r = open_rig(2, 1);

	peer_push(&r->w[0], 0, 1, 0, 1);
	peer_push(&r->w[0], 0, 1, 0, 1);
	rig_tick(r, r->params.ack_delay);
	assert_string_equal(rig_tx(r), "w0 ACK 0:1-2");
	peer_push(&r->w[1], 0, 1, 0, 5);
	rig_tx(r);
	assert_true(rig_result_is(r, 6));
	assert_int_equal(r->srv->stats.push_again, 1);
	server_rig_close(r);
}

/* The network duplicates a frame. */
static void push__same_frame_twice(void **state)
{
	struct server_rig *r = open_rig(2, 1);
	static struct test_frame f;
	int32_t elems[PEER_CHUNK] = {0};

	elems[5] = 3;
	peer_make(&r->w[0], peer_push_header(0, 1, 0), elems, &f);
	frame_rx(&r->srv->engine, r->now_ns, &f);
	frame_rx(&r->srv->engine, r->now_ns, &f);
	assert_int_equal(r->srv->stats.push_folded, 1);
	assert_string_equal(rig_tx(r), "w0 ACK 0:1");
	server_rig_close(r);
}

static void push__past(void **state)
{
	struct server_rig *r = open_rig(2, 1);

	for (uint32_t round = 1; round < 4; round++)
		for (uint32_t i = 0; i < 2; i++)
			peer_push(&r->w[i], 0, round, 0, 1);
	rig_tx(r);
	peer_push(&r->w[0], 0, 1, 0, 99);
	peer_push(&r->w[0], 0, 2, 0, 99);
	assert_int_equal(r->srv->stats.push_again, 2);
	peer_push(&r->w[0], 0, 4, 0, 1);
	peer_push(&r->w[1], 0, 4, 0, 1);
	rig_tx(r);
	assert_true(rig_result_is(r, 2));
	server_rig_close(r);
}

static void push__future(void **state)
{
	struct server_rig *r = open_rig(2, 1);

	peer_push(&r->w[0], 0, 2, 0, 1);
	peer_push(&r->w[0], 0, 3, 0, 1);
	peer_push(&r->w[0], 0, 0x70000001, 0, 1);
	assert_int_equal(r->srv->stats.rx_round, 3);
	rig_tick(r, SW_MS);
	assert_string_equal(rig_tx(r), ""); /* not acknowledged */
	server_rig_close(r);
}

/* The job ran before on the same ports, and only the epoch differs. */
static void push__of_an_earlier_run(void **state)
{
	struct server_rig *r = open_rig(1, 1);

	r->w[0].epoch++;
	peer_push(&r->w[0], 0, 1, 0, 7);
	assert_int_equal(r->srv->stats.rx_payload_crc, 1);
	assert_int_equal(r->srv->stats.push_folded, 0);
	r->w[0].epoch--;
	peer_push(&r->w[0], 0, 1, 0, 7);
	assert_int_equal(r->srv->stats.push_folded, 1);
	server_rig_close(r);
}

static void push__corrupted_payload(void **state)
{
	struct server_rig *r = open_rig(1, 2);
	struct sw_header h = peer_push_header(0, 1, 1);
	int32_t elems[PEER_CHUNK] = {0};

	h.payload_crc = 12345;
	peer_send(&r->w[0], h, elems);
	assert_string_equal(rig_tx(r), "w0 ANSWER CRC k0r1c1");
	rig_tick(r, SW_MS);
	assert_string_equal(rig_tx(r), "");
	assert_int_equal(r->srv->stats.rx_payload_crc, 1);
	server_rig_close(r);
}

static void push__another_step(void **state)
{
	struct server_rig *r = open_rig(2, 1);
	struct sw_header h = peer_push_header(0, 1, 0);
	int32_t elems[PEER_CHUNK] = {0};

	h.step = 41;
	peer_send(&r->w[0], h, elems);
	h.step = 42;
	peer_send(&r->w[1], h, elems);
	assert_string_equal(rig_tx(r),
		"w0 END k0 r1 tensor k0: rank 1 pushes step 42, rank 0 "
		"pushes step 41; "
		"w1 END k0 r1 tensor k0: rank 1 pushes step 42, rank 0 "
		"pushes step 41");
	server_rig_close(r);
}

/* Urgent results are sent first, also before those of other members. */
static void result__most_urgent_first(void **state)
{
	struct server_rig *r = open_rig(1, 3);

	rig_declare(r, 0, "late", SW_I32, PEER_CHUNK, 50);
	peer_push(&r->w[0], 1, 1, 0, 1);
	peer_push(&r->w[0], 0, 1, 2, 1);
	peer_push(&r->w[0], 0, 1, 0, 1);
	assert_string_equal(rig_tx(r), "w0 RESULT k0 r1 c0 +1344 w1; "
				       "w0 RESULT k0 r1 c2 +1344 w1; "
				       "w0 RESULT k1 r1 c0 +1344 w1");
	assert_int_equal(r->last[SW_RESULT].h.class, sw_class_of(50));
	server_rig_close(r);
}

static void result__waits_for_credit(void **state)
{
	struct server_rig *r = open_rig(1, 4);

	r->srv->sessions[0]->peer.flow.granted = PEER_QUANTA + 1;
	r->w[0].grant = PEER_QUANTA + 1;
	for (uint32_t c = 0; c < 4; c++)
		peer_push(&r->w[0], 0, 1, c, 1);
	assert_string_equal(rig_tx(r), "w0 RESULT k0 r1 c0 +1344 w1; "
				       "w0 RESULT k0 r1 c1 +1344 w1");
	r->w[0].grant = 2 * PEER_QUANTA + 1;
	peer_ack(&r->w[0], 0, 2);
	assert_string_equal(rig_tx(r), "w0 RESULT k0 r1 c2 +1344 w1");
	server_rig_close(r);
}

static void result__lost_is_sent_again(void **state)
{
	struct server_rig *r = open_rig(1, 1);

	peer_push(&r->w[0], 0, 1, 0, 4);
	rig_tx(r);
	rig_tick(r, r->params.rto_first);
	assert_contains(rig_tx(r), "w0 RESULT k0 r1 c0 +1344 w1");
	assert_int_equal(r->last[SW_RESULT].h.psn, 2); /* it has a new number */
	assert_int_equal(r->srv->stats.retransmissions, 1);
	assert_int_equal(r->srv->stats.lost, 1);
	assert_int_equal(r->srv->stats.timeouts, 1);
	peer_ack(&r->w[0], 0, 2);
	rig_tick(r, SW_S);
	assert_null(strstr(rig_tx(r), "RESULT"));
	server_rig_close(r);
}

/* A result that waits for room is dropped when its receiver already holds it
 * (A2). */
static void result__not_after_the_next_push(void **state)
{
	struct server_rig *r = open_rig(2, 1);

	peer_push(&r->w[0], 0, 1, 0, 1);
	peer_push(&r->w[1], 0, 1, 0, 1);
	peer_push(&r->w[0], 0, 2, 0, 1); /* worker 0 already holds round 1 */
	peer_push(&r->w[1], 0, 2, 0, 1);
	assert_string_equal(rig_tx(r), "w0 RESULT k0 r2 c0 +1344 w2; "
				       "w1 RESULT k0 r2 c0 +1344 w2");
	server_rig_close(r);
}

/* --- QUERY --- */

static void query__answers(void **state)
{
	struct server_rig *r = open_rig(2, 1);

	peer_query(&r->w[0], 0, 1, 0);
	assert_string_equal(rig_tx(r), "w0 ANSWER NEED k0r1c0");
	peer_push(&r->w[0], 0, 1, 0, 1);
	peer_query(&r->w[0], 0, 1, 0);
	assert_string_equal(rig_tx(r), "w0 ANSWER WAIT k0r1c0 for 2");
	peer_push(&r->w[1], 0, 1, 0, 1);
	rig_tx(r);
	peer_query(&r->w[0], 0, 1, 0);
	assert_string_equal(rig_tx(r), ""); /* in flight */
	peer_ack(&r->w[0], 0, 1);
	peer_query(&r->w[0], 0, 1, 0);
	assert_string_equal(rig_tx(r), "w0 RESULT k0 r1 c0 +1344 w2");
	peer_push(&r->w[0], 0, 2, 0, 1);
	peer_query(&r->w[0], 0, 1, 0);
	assert_string_equal(rig_tx(r), "w0 ANSWER GONE k0r1c0");
	server_rig_close(r);
}

/* --- ACK --- */

static void ack__past_and_duplicate(void **state)
{
	struct server_rig *r = open_rig(1, 3);
	struct sw_sack k = {.largest = 1};
	struct sw_header h = {.type = SW_ACK, .payload_len = sizeof(k)};

	for (uint32_t c = 0; c < 3; c++)
		peer_push(&r->w[0], 0, 1, c, 1);
	rig_tx(r);
	peer_ack(&r->w[0], 0, 3);
	assert_int_equal(r->srv->sessions[0]->peer.flow.open_mask, 0);
	h.psn = r->w[0].psn[SW_CLASS_CTL]; /* replayed */
	peer_send(&r->w[0], h, &k);
	h.psn = 1;
	peer_send(&r->w[0], h, &k);
	assert_int_equal(r->srv->stats.rx_state, 0);
	server_rig_close(r);
}

static void ack__of_what_was_never_sent(void **state)
{
	struct server_rig *r = open_rig(1, 1);

	peer_push(&r->w[0], 0, 1, 0, 1);
	rig_tx(r);
	peer_ack_one(&r->w[0], 0, 2);
	peer_ack(&r->w[0], 3, 1);
	peer_ack(&r->w[0], 8, 1);
	peer_ack(&r->w[0], 0, UINT64_MAX);
	assert_int_equal(r->srv->stats.rx_state, 4);
	assert_int_equal(r->srv->sessions[0]->peer.flow.open_mask, 1);
	server_rig_close(r);
}

/* --- time --- */

static void tick__keepalive(void **state)
{
	struct server_rig *r = open_rig(1, 1);
	uint64_t tenth = r->params.dead_after / 10;

	assert_true(rig_tick(r, 0) <= r->now_ns + tenth);
	rig_tick(r, tenth);
	assert_string_equal(rig_tx(r), "w0 KEEPALIVE");
	rig_tick(r, tenth - 1);
	assert_string_equal(rig_tx(r), "");
	server_rig_close(r);
}

static void tick__buries_the_silent(void **state)
{
	struct server_rig *r = open_rig(2, 1);

	rig_tick(r, r->params.dead_after / 2);
	peer_send(&r->w[0], (struct sw_header){.type = SW_KEEPALIVE, .aux = 1},
		NULL);
	rig_tx(r);
	rig_tick(r, r->params.dead_after / 2 - 1);
	assert_int_equal(r->srv->stats.sessions_dead, 0);
	rig_tx(r);
	rig_tick(r, 1);
	assert_int_equal(r->srv->stats.sessions_dead, 1);
	assert_string_equal(rig_tx(r), "w0 STATUS failed SW_EPEER rank 1 (node "
				       "node1) silent for 10 s");
	rig_tick(r, r->params.dead_after);
	assert_int_equal(r->srv->stats.sessions_dead, 2);
	assert_null(sw_job_find(r->srv, "job"));
	server_rig_close(r);
}

/* --- the rest --- */

/* Call describe until it is done; return the number of calls. */
static uint32_t describe(struct server_rig *r, struct sw_server_view *v)
{
	uint32_t n = 1;

	*v = (struct sw_server_view){0};
	while (!sw_server_describe(r->srv, r->now_ns, v))
		n++;
	return n;
}

static void describe__members_and_waits(void **state)
{
	struct server_rig *r = open_rig(2, 3);
	struct sw_server_view *v = malloc(sizeof(*v));

	describe(r, v);
	assert_int_equal(v->n_jobs, 1);
	assert_int_equal(v->n_waits, 0);
	assert_string_equal(v->jobs[0].name, "job");
	assert_int_equal(v->jobs[0].n_here, 2);
	assert_int_equal(v->jobs[0].missing, 0);
	assert_int_equal(v->jobs[0].members[1].first, 1);
	assert_string_equal(v->jobs[0].members[1].node, "node1");
	peer_push(&r->w[0], 0, 1, 0, 1);
	peer_push(&r->w[1], 0, 1, 1, 1);
	describe(r, v);
	assert_int_equal(v->n_waits, 1);
	assert_int_equal(v->waits[0].n_open, 2);
	assert_int_equal(v->waits[0].lacks, 3);
	peer_push(&r->w[0], 0, 1, 1, 1);
	describe(r, v);
	assert_int_equal(v->waits[0].n_open, 1);
	assert_int_equal(v->waits[0].lacks, 2);
	peer_push(&r->w[1], 0, 1, 0, 1);
	describe(r, v);
	assert_int_equal(v->n_waits, 0);
	free(v);
	server_rig_close(r);
}

/* Each call looks at a bounded number of chunks, for any place of the open
 * chunk. */
static void describe__a_large_tensor(void **state)
{
	struct server_rig *r = open_rig(2, 3000);
	struct sw_server_view *v = malloc(sizeof(*v));

	peer_push(&r->w[0], 0, 1, 2999, 1);
	assert_in_range(describe(r, v), 3, 4);
	assert_int_equal(v->n_waits, 1);
	assert_int_equal(v->waits[0].n_open, 1);
	assert_int_equal(v->waits[0].lacks, 2);
	free(v);
	server_rig_close(r);
}

static void is_busy__while_something_is_open(void **state)
{
	struct server_rig *r = open_rig(2, 1);
	struct sw_engine *node = &r->srv->engine;

	assert_false(node->is_busy(node));
	peer_push(&r->w[0], 0, 1, 0, 1);
	assert_true(node->is_busy(node));
	assert_int_equal(sw_server_open_chunks(r->srv), 1);
	peer_push(&r->w[1], 0, 1, 0, 1);
	assert_int_equal(sw_server_open_chunks(r->srv), 0);
	rig_tx(r);
	assert_true(node->is_busy(node)); /* results are in flight */
	peer_ack(&r->w[0], 0, 1);
	peer_ack(&r->w[1], 0, 1);
	assert_false(node->is_busy(node));
	server_rig_close(r);
}

static void fail_all__tells_every_member(void **state)
{
	struct server_rig *r = open_rig(2, 1);

	sw_server_fail_all(r->srv, "the power goes");
	assert_string_equal(rig_tx(r), "w0 ERROR SW_ESERVER the power goes; "
				       "w1 ERROR SW_ESERVER the power goes");
	server_rig_close(r);
}

/* Members take turns, so none waits until another one has all its results. */
static void result__members_take_turns(void **state)
{
	struct server_rig *r = open_rig(2, 2);

	for (uint32_t c = 0; c < 2; c++)
		for (uint32_t i = 0; i < 2; i++)
			peer_push(&r->w[i], 0, 1, c, 1);
	assert_string_equal(rig_tx(r), "w0 RESULT k0 r1 c0 +1344 w2; "
				       "w1 RESULT k0 r1 c0 +1344 w2; "
				       "w0 RESULT k0 r1 c1 +1344 w2; "
				       "w1 RESULT k0 r1 c1 +1344 w2");
	server_rig_close(r);
}

/* A stopping server completes the sums that have begun and begins no other. */
static void stop__drains(void **state)
{
	struct server_rig *r = open_rig(2, 2);

	peer_push(&r->w[0], 0, 1, 0, 5);
	sw_server_stop(r->srv);
	peer_push(&r->w[0], 0, 1, 1, 6);
	peer_push(&r->w[1], 0, 1, 1, 6);
	peer_push(&r->w[1], 0, 1, 0, 7);
	assert_int_equal(r->srv->stats.chunks_done, 1);
	assert_int_equal(sw_server_open_chunks(r->srv), 0);
	assert_contains(rig_tx(r), "RESULT");
	assert_true(rig_result_is(r, 12));
	peer_push(&r->w[0], 0, 2, 0, 5);
	assert_int_equal(sw_server_open_chunks(r->srv), 0);
	assert_int_equal(r->srv->stats.push_folded, 2);
	server_rig_close(r);
}

/* ACCEPT is as long as its JOIN, which shows that both directions carry that
 * size. */
static void tx__accept_is_as_long_as_its_join(void **state)
{
	static struct server_rig rig;
	struct server_rig *r = &rig;
	uint8_t payload[SW_PAYLOAD_MAX] = {0};
	struct sw_join j;
	uint32_t sizes[] = {sizeof(j), 1344, SW_PAYLOAD_MAX};

	(void)state;
	server_rig_open(r, 1, 64 << 20);
	peer_hello(&r->w[0]);
	j = rig_join_payload(r, 0);
	memcpy(payload, &j, sizeof(j));
	for (uint32_t i = 0; i < 3; i++) {
		peer_say(&r->w[0], SW_JOIN, payload, sizes[i]);
		rig_tx(r);
		assert_int_equal(r->last[SW_ACCEPT].h.payload_len, sizes[i]);
	}
	server_rig_close(r);
}

/* A tensor without a priority gets its key as priority: the order of the first
 * declaration, not of later members'. */
static void declare__priority_by_use(void **state)
{
	static struct server_rig rig;
	struct server_rig *r = &rig;
	const struct sw_stensor *t;

	server_rig_open(r, 3, UINT64_MAX);
	for (uint32_t i = 0; i < 3; i++)
		rig_join(r, i);
	t = r->srv->jobs[0].shard.tensors;
	rig_declare(r, 0, "a", SW_I32, 10, SW_PRIORITY_BY_USE);
	rig_declare(r, 0, "b", SW_I32, 10, SW_PRIORITY_BY_USE);
	assert_contains(rig_declare(r, 1, "b", SW_I32, 10, SW_PRIORITY_BY_USE),
		"w1 DECLARED");
	rig_declare(r, 1, "a", SW_I32, 10, SW_PRIORITY_BY_USE);
	assert_int_equal(t[0].priority, 0);
	assert_int_equal(t[1].priority, 1);
	assert_int_equal(t[1].class, sw_class_of(1));
	/* If another member gives a priority, it must be the same. */
	assert_contains(rig_declare(r, 2, "b", SW_I32, 10, 7),
		"tensor k1: rank 2 declares 10 x i32, priority 7; rank 0 "
		"declared 10 x i32, priority 1");
	server_rig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(declare__priority_by_use),
		cmocka_unit_test(tx__accept_is_as_long_as_its_join),
		cmocka_unit_test(open__too_many_ports),
		cmocka_unit_test(push__in_order),
		cmocka_unit_test(push__texts),
		cmocka_unit_test(push__result_is_the_ack),
		cmocka_unit_test(push__ack_after_a_while),
		cmocka_unit_test(push__ack_in_spite_of_older_results),
		cmocka_unit_test(push__gap_is_told_at_once),
		cmocka_unit_test(push__duplicate),
		cmocka_unit_test(push__same_frame_twice),
		cmocka_unit_test(push__past),
		cmocka_unit_test(push__future),
		cmocka_unit_test(push__corrupted_payload),
		cmocka_unit_test(push__of_an_earlier_run),
		cmocka_unit_test(push__another_step),
		cmocka_unit_test(result__most_urgent_first),
		cmocka_unit_test(result__waits_for_credit),
		cmocka_unit_test(result__lost_is_sent_again),
		cmocka_unit_test(result__not_after_the_next_push),
		cmocka_unit_test(query__answers),
		cmocka_unit_test(ack__past_and_duplicate),
		cmocka_unit_test(ack__of_what_was_never_sent),
		cmocka_unit_test(tick__keepalive),
		cmocka_unit_test(tick__buries_the_silent),
		cmocka_unit_test(describe__members_and_waits),
		cmocka_unit_test(describe__a_large_tensor),
		cmocka_unit_test(is_busy__while_something_is_open),
		cmocka_unit_test(fail_all__tells_every_member),
		cmocka_unit_test(result__members_take_turns),
		cmocka_unit_test(stop__drains),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
