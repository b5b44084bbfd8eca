/* trace_flow.c - traces about acknowledgement, credit and time.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/base/bytes.h"
#include "engine/worker/link.h"
#include "test/sim/hand.h"
#include "test/sim/trace_job.h"
#include "test/support/header.h"

enum { A, B };

/* --- A5 --- */

static enum sim_fate lose_first_of_chunk_3(void *ctx, struct sim_frame *f)
{
	uint32_t *n = ctx;

	return is_type(f, SW_PUSH, 1) && chunk_of(f) == 3 && !(*n)++ ? SIM_LOST
								     : SIM_PASS;
}

/* One push of rank 0 is lost but acknowledged: rank 0 must find that out by
 * QUERY, and push again. */
static void a5_false_ack_repaired_by_query(struct check *c)
{
	struct sim_job *job = new_job(10 * 336, 1);
	struct sw_stats *st = &job->workers[0].engine.stats;
	uint32_t n_lost = 0;

	job->net.faults.false_ack = 1000000;
	job->net.hook = lose_first_of_chunk_3;
	job->net.hook_ctx = &n_lost;
	sim_job_open(job);
	check(c, sim_job_run(job, SW_S), "the job ends within a second");
	check(c, job->net.n_false_acks > 0, "ACKs were false");
	check(c, st->query_need > 0, "the server said NEED");
	check_eq(c, st->timeouts, 0, "timeouts");
	end_job(c, job);
}

/* An ACK counts only if it is newer than all ACKs accepted before. */
static void a5_old_ack_is_ignored(struct check *c)
{
	struct hand_rig rig;
	struct test_frame old, got;

	hand_open(&rig, 2, 100);
	peer_ack_one(&rig.r.w[B], 0, 1); /* a packet that was never sent */
	old = rig.sent;
	peer_ack_one(&rig.r.w[B], 0, 0);
	hand_push(&rig, A, 1, 0, 1);
	hand_push(&rig, B, 1, 0, 4);
	check(c, hand_take(&rig, B, SW_RESULT, &got), "RESULT(1) was sent");
	check_eq(c, got.h.psn, 1, "its number, which the old ACK names");
	peer_again(&rig.r.w[B], &old);
	check_eq(c, hand_session(&rig, B)->peer.flow.open_mask, 1,
		"open spaces");
	hand_pass(&rig, SW_S / 10);
	check(c, hand_take(&rig, B, SW_RESULT, &got), "it was sent again");
	hand_close(&rig);
}

/* An ACK that a later frame of another kind has overtaken still counts. */
static void a5_overtaken_ack_counts(struct check *c)
{
	struct hand_rig rig;
	uint64_t *ctl;

	hand_open(&rig, 2, 100);
	ctl = &rig.r.w[B].psn[SW_CLASS_CTL];
	hand_push(&rig, A, 1, 0, 1);
	hand_push(&rig, B, 1, 0, 4);
	check_eq(c, hand_session(&rig, B)->peer.flow.open_mask, 1,
		"open spaces");
	*ctl += 1;
	peer_keepalive(&rig.r.w[B]);
	*ctl -= 2;
	peer_ack_one(&rig.r.w[B], 0, 1);
	check_eq(c, hand_session(&rig, B)->peer.flow.open_mask, 0,
		"open spaces");
	hand_close(&rig);
}

/* The same at the worker: no frame arrives, then the first ACK arrives again
 * and names everything open. */
struct old_ack {
	struct sim_frame *f;
	bool is_deaf; /* rank 0 gets no frames */
};

static enum sim_fate keep_first_ack(void *ctx, struct sim_frame *f)
{
	struct old_ack *k = ctx;

	if (f->to != 1)
		return SIM_PASS;
	if (!k->f && is_type(f, SW_ACK, 0)) {
		k->f = malloc(sizeof(*f) + f->len);
		if (!k->f)
			abort();
		memcpy(k->f, f, sizeof(*f) + f->len);
	}
	return k->is_deaf ? SIM_LOST : SIM_PASS;
}

static bool has_frames_open(void *ctx)
{
	const struct sim_job *job = ctx;
	const struct sw_worker *w = &job->workers[0].engine;

	return w->stats.push_folded > 300 &&
	       w->links[0].peer.flow.space[0].n_open;
}

static void a5_old_ack_is_ignored_by_a_worker(struct check *c)
{
	struct sim_job *job = new_job(600 * 336, 1);
	struct sw_space *space;
	struct old_ack k = {0};
	struct sw_header h;
	struct sw_sack sack;
	uint32_t n_open;

	job->params.window_bytes = 64 * job->params.payload;
	job->net.hook = keep_first_ack;
	job->net.hook_ctx = &k;
	sim_job_open(job);
	check(c, sim_net_run(&job->net, 2 * SW_S, has_frames_open, job),
		"frames are open");
	k.is_deaf = true;
	sim_job_pass(job, 200 * SW_US);
	space = &job->workers[0].engine.links[0].peer.flow.space[0];
	n_open = space->n_open;
	if (!check(c, k.f && n_open, "an ACK is kept, frames are open"))
		return;
	header_decode(k.f->bytes, k.f->len, &h);
	memcpy(&sack, k.f->bytes + SW_HEAD_BYTES, sizeof(sack));
	sack.largest = space->next_psn - 1;
	memset(sack.bits, 0xff, sizeof(sack.bits));
	memcpy(k.f->bytes + SW_HEAD_BYTES, &sack, sizeof(sack));
	h.payload_crc = sw_crc32c(0, k.f->bytes + SW_HEAD_BYTES, h.payload_len);
	header_encode(&h, k.f->bytes);
	sim_net_replay(&job->net, k.f);
	sim_job_pass(job, 50 * SW_US);
	check_eq(c, space->n_open, n_open, "open frames");
	job->net.hook = NULL;
	free(k.f);
	check(c, sim_job_run(job, SW_S), "the job ends");
	end_job(c, job);
}

/* --- A9 --- */

static enum sim_fate lose_every_other_push(void *ctx, struct sim_frame *f)
{
	uint32_t *n = ctx;

	return is_type(f, SW_PUSH, 1) && (*n)++ % 2 ? SIM_LOST : SIM_PASS;
}

/* Half of all pushes are lost over many windows: no credit may leak. */
static void a9_credit_leak_by_loss(struct check *c)
{
	struct sim_job *job = new_job(200 * 336, 5);
	const struct sw_flow *f;
	uint32_t n = 0;

	job->params.window_bytes = 8 * job->params.payload;
	job->net.hook = lose_every_other_push;
	job->net.hook_ctx = &n;
	sim_job_open(job);
	check(c, sim_job_run(job, 60 * SW_S), "the job ends");
	check(c, job->net.n_lost > 400, "hundreds of pushes were lost");
	sim_job_pass(job, 3 * SW_S); /* the last grant arrives */
	f = &job->workers[0].engine.links[0].peer.flow;
	check_eq(c, f->granted, f->consumed + f->window, "grant in the end");
	end_job(c, job);
}

/* A replayed grant has no effect, and neither has an implausibly large one. */
static void a9_stale_grant(struct check *c)
{
	struct hand_rig rig;
	struct test_frame old;
	const struct sw_flow *f;
	uint64_t granted;

	hand_open(&rig, 2, 100);
	f = &hand_session(&rig, A)->peer.flow;
	rig.r.w[A].grant = 600000;
	peer_keepalive(&rig.r.w[A]);
	old = rig.sent;
	check_eq(c, f->granted, 600000, "granted");
	rig.r.w[A].grant = 610000;
	peer_keepalive(&rig.r.w[A]);
	granted = f->granted;
	check_eq(c, granted, 610000, "granted");
	/* Raise the old frame's grant, as after a wrap. */
	old.h.psn = 1;
	old.h.grant = 620000;
	frame_seal(&old);
	peer_again(&rig.r.w[A], &old);
	check_eq(c, f->granted, granted, "granted after a replay");
	rig.r.w[A].grant = 610000 + (1u << 30);
	peer_keepalive(&rig.r.w[A]);
	check_eq(c, f->granted, granted, "granted after too much");
	hand_close(&rig);
}

/* The only frame of its class arrives minutes late, after 2 TiB of other
 * classes. It is the newest of its class, but its count of consumed bytes is
 * stale and must not change the grant. */
static void a9_stale_consumption(struct check *c)
{
	struct hand_rig rig;
	const struct sw_flow *f;

	hand_open(&rig, 2, 100);
	f = &hand_session(&rig, A)->peer.flow;
	rig.r.w[A].consumed = 100;
	peer_keepalive(&rig.r.w[A]);
	check_eq(c, f->peer_consumed, 100, "consumed by the peer");
	rig.r.w[A].consumed = 100 + (1u << 30);
	peer_keepalive(&rig.r.w[A]);
	check_eq(c, f->peer_consumed, 100, "consumed after a stale frame");
	hand_close(&rig);
}

static enum sim_fate lose_first_push(void *ctx, struct sim_frame *f)
{
	uint32_t *n = ctx;

	return is_type(f, SW_PUSH, 1) && !(*n)++ ? SIM_LOST : SIM_PASS;
}

/* The only frame that the grant allows is lost: after the timeout the sender
 * may exceed the grant by one frame, without waiting for a keepalive. */
static void a9_probe_after_a_timeout(struct check *c)
{
	struct sim_job *job = new_job(100, 1);
	uint32_t n = 0;

	job->params.window_bytes = job->params.payload;
	job->is_in_order = true;
	job->net.hook = lose_first_push;
	job->net.hook_ctx = &n;
	sim_job_open(job);
	check(c, sim_job_run(job, 100 * SW_MS), "the job ends in 100 ms");
	check_eq(c, job->net.n_lost, 1, "frames lost");
	end_job(c, job);
}

/* The answer to a push is late, so the push counts as lost; the retransmission
 * is lost too. It was needless, but has used credit. */
static enum sim_fate lose_needless(void *ctx, struct sim_frame *f)
{
	uint32_t *n_lost = ctx;

	if (is_type(f, SW_PUSH, 1) && f->bytes[4] & SW_FLAG_RETX) {
		++*n_lost;
		return SIM_LOST;
	}
	return f->to == 1 && !*n_lost && f->bytes[3] >= SW_RESULT &&
			       f->bytes[3] != SW_PROBE
		       ? SIM_HOLD
		       : SIM_PASS;
}

static void a9_needless_retransmission_is_lost(struct check *c)
{
	struct sim_job *job = new_job(100, 3);
	uint32_t n_lost = 0;

	job->params.window_bytes = 1024; /* one frame */
	job->is_in_order = true;
	job->net.hook = lose_needless;
	job->net.hook_ctx = &n_lost;
	sim_job_open(job);
	while (!n_lost) /* the RESULT's own timeout comes slightly later */
		sim_job_pass(job, 5 * SW_US);
	while (job->net.n_held)
		sim_net_release(&job->net, 0);
	job->net.hook = NULL;
	check(c, sim_job_run(job, 100 * SW_MS), "the job ends in 100 ms");
	end_job(c, job);
}

/* B overdraws its credit and says so. */
static void a9_overdraw_is_policed(struct check *c)
{
	struct hand_rig rig;

	hand_open(&rig, 2, 10 * PEER_CHUNK);
	hand_push(&rig, A, 1, 0, 1);
	rig.r.w[B].consumed +=
		rig.r.params.window_bytes / SW_QUANTUM + 2 * SW_CREDIT_SLACK;
	hand_push(&rig, B, 1, 0, 4);
	check_eq(c, rig.r.srv->stats.rx_credit, 1, "frames beyond the credit");
	check_eq(c, hand_chunk(&rig, 0)->cell[1].got, 1, "folded");
	check(c, hand_count(&rig, B, SW_KEEPALIVE), "B is told its grant");
	/* After the report, B and its next frames are within the budget
	 * again. */
	hand_push(&rig, B, 1, 0, 4);
	hand_push(&rig, B, 1, 1, 4);
	check_eq(c, rig.r.srv->stats.push_folded, 3, "contributions folded");
	hand_close(&rig);
}

/* B never reports consumption. */
static void a9_overdraw_without_a_word(struct check *c)
{
	struct hand_rig rig;
	uint32_t n = 512, window;

	hand_open(&rig, 2, n * PEER_CHUNK);
	window = rig.r.params.window_bytes / SW_QUANTUM;
	rig.is_stuck = true; /* prevents new grants */
	for (uint32_t k = 0; k < n; k++) {
		rig.r.w[B].consumed = 0;
		hand_push(&rig, B, 1, k, 4);
	}
	check(c,
		rig.r.srv->stats.push_folded * PEER_QUANTA <=
			window + SW_CREDIT_SLACK,
		"what was folded is within the window");
	check_eq(c, rig.r.srv->stats.push_folded + rig.r.srv->stats.rx_credit,
		n, "folded or counted");
	hand_close(&rig);
}

/* With a window of one frame, the server acknowledges at once, without delayed
 * ACKs. */
static void a9_small_window_is_acknowledged_at_once(struct check *c)
{
	struct sim_job *job = new_job(64 * 336, 1);
	uint64_t from_ns;

	job->params.window_bytes = job->params.payload;
	job->is_in_order = true;
	sim_job_open(job);
	from_ns = job->net.now_ns;
	check(c, sim_job_run(job, SW_S), "the job ends");
	/* A round trip is 11 us; 64 delayed ACKs would take 3.2 ms. */
	check(c, job->net.now_ns - from_ns < 2 * SW_MS, "within 2 ms");
	end_job(c, job);
}

/* --- A10 --- */

static enum sim_fate hold_bulk(void *ctx, struct sim_frame *f)
{
	(void)ctx;
	return is_type(f, SW_PUSH, 1) && f->bytes[5] > 0 ? SIM_HOLD : SIM_PASS;
}

static bool has_first(void *ctx)
{
	const struct sim_job *job = ctx;

	return job->workers[0].round[0] == 1;
}

/* Urgent frames overtake bulk frames in the switch: ACKs of later frames of
 * another class do not make bulk frames count as lost. */
static void a10_classes_reorder(struct check *c)
{
	struct sim_job *job = new_job(4 * 336, 1);
	const struct sw_stats *st = &job->workers[0].engine.stats;

	job->n_tensors = job->n_first = 8;
	for (uint32_t t = 0; t < job->n_tensors; t++)
		job->n_elems[t] = 4 * 336;
	job->is_in_order = true;
	job->net.hook = hold_bulk;
	sim_job_open(job);
	check(c, sim_net_run(&job->net, 2 * SW_S, has_first, job),
		"the urgent tensor completes while the bulk is held");
	check(c, job->net.n_held > 4, "bulk is held");
	while (job->net.n_held)
		sim_net_release(&job->net, 0);
	job->net.hook = NULL;
	check(c, sim_job_run(job, SW_S), "the job ends");
	check_eq(c, st->lost, 0, "frames taken for lost");
	check_eq(c, st->retransmissions, 0, "retransmissions");
	end_job(c, job);
}

/* --- A17 --- */

static bool has_pushed(void *ctx)
{
	const struct sim_job *job = ctx;

	return job->workers[0].engine.stats.push_folded >= 5;
}

/* A worker sleeps past its timeout while answers wait in its port: it must poll
 * the port before it assumes a loss. */
static void a17_timers_after_poll_gap(struct check *c)
{
	struct sim_job *job = new_job(10 * 336, 1);
	const struct sw_stats *st = &job->workers[0].engine.stats;

	sim_job_open(job);
	sim_net_run(&job->net, 2 * SW_S, has_pushed, job);
	sim_node_freeze(job->workers[0].node, 60 * SW_MS);
	check(c, sim_job_run(job, SW_S), "the job ends");
	check(c, job->workers[0].node->loop.stats.poll_gap_max_us >= 59000,
		"there was a gap");
	check_eq(c, st->lost, 0, "frames taken for lost");
	check_eq(c, st->retransmissions, 0, "retransmissions");
	end_job(c, job);
}

/* A server that was stopped for 15 s declares no worker dead. */
static void a17_stopped_server_accuses_nobody(struct check *c)
{
	struct sim_job *job = new_job(10 * 336, 3);

	sim_job_open(job);
	for (uint32_t r = 0; r < 2; r++) /* workers wait longer */
		job->workers[r].engine.params.dead_after = 40 * SW_S;
	sim_net_run(&job->net, 2 * SW_S, has_pushed, job);
	sim_node_freeze(&job->net.nodes[0], 15 * SW_S);
	check(c, sim_job_run(job, 20 * SW_S), "the job ends");
	check_eq(c, job->servers[0]->stats.sessions_dead, 0, "sessions buried");
	end_job(c, job);
}

/* The same with an empty port: the server received no frames, but the workers
 * did send. */
static void a17_deaf_server_accuses_nobody(struct check *c)
{
	struct sim_job *job = new_job(10 * 336, 3);
	struct sim_faults *x = &job->net.faults;

	sim_job_open(job);
	for (uint32_t r = 0; r < 2; r++)
		job->workers[r].engine.params.dead_after = 40 * SW_S;
	sim_net_run(&job->net, 2 * SW_S, has_pushed, job);
	sim_node_freeze(&job->net.nodes[0], 15 * SW_S);
	x->cut_from = 1u << 1 | 1u << 2;
	x->cut_to = 1u << 0;
	x->cut_until_ns = job->net.now_ns + 15 * SW_S + SW_MS;
	check(c, sim_job_run(job, 20 * SW_S), "the job ends");
	check_eq(c, job->servers[0]->stats.sessions_dead, 0, "sessions buried");
	end_job(c, job);
}

/* --- A18 --- */

/* Rank 1 comes two seconds late. Rank 0, with 2,000 chunks folded, queries a
 * few of them at growing intervals, and the server sends no result twice. */
static void a18_query_storm(struct check *c)
{
	struct sim_job *job = new_job(2000 * 336, 1);
	const struct sw_stats *st = &job->workers[0].engine.stats;

	job->workers[1].pause_until_ns = 3 * SW_S;
	sim_job_open(job);
	check(c, sim_job_run(job, 5 * SW_S), "the job ends");
	check(c, st->queries > 0, "there were QUERIES");
	/* 1, 2, 4 … 64 ms, then every 100 ms: 27 frames of 64 chunks. */
	check(c, st->queries <= 30 * SW_QUERY_MAX, "few QUERIES");
	check_eq(c, job->servers[0]->stats.results, 2 * 2000, "RESULTs sent");
	check_eq(c, job->servers[0]->stats.retransmissions, 0,
		"RESULTs sent again");
	end_job(c, job);
}

/* Without faults, neither the fast nor the slow worker sends a frame twice. */
static void c_no_fault_no_retransmission(struct check *c)
{
	struct sim_job *job = new_job(500 * 336, 4);

	job->n_tensors = job->n_first = 4;
	for (uint32_t t = 1; t < 4; t++)
		job->n_elems[t] = 50 * 336;
	job->n_workers = 3;
	job->pause_ns = 5 * SW_MS;
	sim_job_open(job);
	job->workers[1].node->turn_ns = 5 * SW_US;
	check(c, sim_job_run(job, SW_S), "the job ends");
	for (uint32_t r = 0; r < job->n_workers; r++) {
		const struct sw_stats *st = &job->workers[r].engine.stats;

		check_eq(c, st->retransmissions, 0, "retransmissions");
		check_eq(c, st->lost, 0, "frames taken for lost");
		check_eq(c, st->result_again, 0, "RESULTs that came twice");
	}
	check_eq(c, job->servers[0]->stats.retransmissions, 0,
		"RESULTs sent again");
	end_job(c, job);
}

const struct check_case trace_flow[] = {
	{"a5_false_ack_repaired_by_query", a5_false_ack_repaired_by_query},
	{"a5_old_ack_is_ignored", a5_old_ack_is_ignored},
	{"a5_overtaken_ack_counts", a5_overtaken_ack_counts},
	{"a5_old_ack_is_ignored_by_a_worker",
		a5_old_ack_is_ignored_by_a_worker},
	{"a9_credit_leak_by_loss", a9_credit_leak_by_loss},
	{"a9_probe_after_a_timeout", a9_probe_after_a_timeout},
	{"a9_needless_retransmission_is_lost",
		a9_needless_retransmission_is_lost},
	{"a9_overdraw_is_policed", a9_overdraw_is_policed},
	{"a9_overdraw_without_a_word", a9_overdraw_without_a_word},
	{"a9_stale_grant", a9_stale_grant},
	{"a9_stale_consumption", a9_stale_consumption},
	{"a9_small_window_is_acknowledged_at_once",
		a9_small_window_is_acknowledged_at_once},
	{"a10_classes_reorder", a10_classes_reorder},
	{"a17_timers_after_poll_gap", a17_timers_after_poll_gap},
	{"a17_stopped_server_accuses_nobody",
		a17_stopped_server_accuses_nobody},
	{"a17_deaf_server_accuses_nobody", a17_deaf_server_accuses_nobody},
	{"a18_query_storm", a18_query_storm},
	{"c_no_fault_no_retransmission", c_no_fault_no_retransmission},
};

const uint32_t n_trace_flow = SW_ARRAY_SIZE(trace_flow);
