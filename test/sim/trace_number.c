/* trace_number.c - traces N1 to N5: forged packet numbers.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * An attacker repeats a frame from the wire under another number.
 */
#include "engine/base/bytes.h"
#include "engine/worker/link.h"
#include "test/sim/hand.h"
#include "test/sim/trace_job.h"
#include "test/support/header.h"

enum { A, B };

#define MAX_PSN UINT64_C(0xffffffffffff)

/* Copies one frame of @type from node @from to node @to. It sends the copy as
 * @as under the number @psn, or under its own number plus @ahead. */
struct forger {
	const char *name;
	uint8_t type, as;
	uint32_t from, to;
	uint64_t psn, ahead;
	struct sim_net *net;
	uint32_t n; /* frames that have passed */
};

enum { SERVER, WORKER, FIRST = 3 };

static void forge(struct forger *x, const struct sim_frame *f)
{
	struct sim_frame *copy = malloc(sizeof(*f) + f->len);
	struct sw_header h;

	if (!copy || header_decode(f->bytes, f->len, &h) != HEADER_GOOD)
		abort();
	memcpy(copy, f, sizeof(*f) + f->len);
	h.psn = x->psn ? x->psn : h.psn + x->ahead;
	h.type = x->as;
	if (h.type == SW_KEEPALIVE) {
		h.payload_len = 0;
		h.payload_crc = sw_crc32c(0, NULL, 0);
		copy->len = SW_HEAD_BYTES;
	}
	header_encode(&h, copy->bytes);
	sim_net_replay(x->net, copy);
	free(copy);
}

static enum sim_fate on_frame(void *ctx, struct sim_frame *f)
{
	struct forger *x = ctx;

	if (is_type(f, x->type, x->from) && f->to == x->to && ++x->n == FIRST)
		forge(x, f);
	return SIM_PASS;
}

static void expect_nothing_open(struct check *c, struct sim_job *job)
{
	for (uint32_t s = 0; s < SW_MAX_SESSIONS; s++) {
		const struct sw_session *e = job->servers[0]->sessions[s];

		if (e)
			check_eq(c, e->peer.flow.open_mask, 0,
				"RESULTs that are not acknowledged");
	}
	for (uint32_t r = 0; r < job->n_workers; r++)
		check_eq(c, job->workers[r].engine.links[0].peer.flow.open_mask,
			0, "PUSHes that are not acknowledged");
}

/* Whatever the frame, rounds continue, every frame is acknowledged, and members
 * can leave. */
static void survive(struct check *c, struct forger x)
{
	struct sim_job *job = new_job(400 * 336, 24);

	x.net = &job->net;
	job->net.hook = on_frame;
	job->net.hook_ctx = &x;
	job->pause_ns = 5 * SW_MS; /* so that some query late results */
	sim_job_open(job);
	/* Without the attack 0.6 s; to a window, a number far ahead looks like
	 * a loss. */
	check(c, sim_job_run(job, 2 * SW_S), "the job ends within two seconds");
	check(c, x.n >= FIRST, x.name);
	sim_job_pass(job, SW_S);
	expect_nothing_open(c, job);
	for (uint32_t r = 0; r < job->n_workers; r++)
		sim_worker_leave(&job->workers[r], 0, NULL);
	sim_job_pass(job, SW_S);
	check_eq(c, job->servers[0]->n_sessions, 0, "sessions after LEAVE");
	check_eq(c, job->servers[0]->stats.sessions_dead, 0, "deaths");
	end_job(c, job);
}

static void survive_all(struct check *c, struct forger x)
{
	static const uint64_t aheads[] = {100, 300, 10000};

	for (uint32_t i = 0; i < SW_ARRAY_SIZE(aheads); i++) {
		x.ahead = aheads[i];
		survive(c, x);
	}
	x.psn = MAX_PSN;
	survive(c, x);
}

static void n1_data_to_a_worker(struct check *c)
{
	survive_all(c, (struct forger){.name = "RESULTs",
			       .type = SW_RESULT,
			       .as = SW_RESULT,
			       .from = SERVER,
			       .to = WORKER});
}

static void n1_data_to_a_server(struct check *c)
{
	survive_all(c, (struct forger){.name = "PUSHes",
			       .type = SW_PUSH,
			       .as = SW_PUSH,
			       .from = WORKER,
			       .to = SERVER});
}

static void n2_control_to_a_worker(struct check *c)
{
	static const uint8_t as[] = {SW_ACK, SW_KEEPALIVE};

	for (uint32_t i = 0; i < SW_ARRAY_SIZE(as); i++)
		survive_all(c, (struct forger){.name = "ACKs",
				       .type = SW_ACK,
				       .as = as[i],
				       .from = SERVER,
				       .to = WORKER});
	survive_all(c, (struct forger){.name = "ANSWERs",
			       .type = SW_ANSWER,
			       .as = SW_ANSWER,
			       .from = SERVER,
			       .to = WORKER});
}

static void n2_control_to_a_server(struct check *c)
{
	static const uint8_t as[] = {SW_ACK, SW_KEEPALIVE};

	for (uint32_t i = 0; i < SW_ARRAY_SIZE(as); i++)
		survive_all(c, (struct forger){.name = "ACKs",
				       .type = SW_ACK,
				       .as = as[i],
				       .from = WORKER,
				       .to = SERVER});
	survive_all(c, (struct forger){.name = "QUERIES",
			       .type = SW_QUERY,
			       .as = SW_QUERY,
			       .from = WORKER,
			       .to = SERVER});
}

/* By hand: the effects of a session's own frames after a forged one. */
static void n3_a_member_is_not_muted(struct check *c)
{
	struct hand_rig rig;
	struct test_frame f;

	hand_open(&rig, 2, 100);
	peer_keepalive(&rig.r.w[A]);
	f = rig.sent;
	f.h.psn = MAX_PSN;
	frame_seal(&f);
	peer_again(&rig.r.w[A], &f);
	peer_again(&rig.r.w[A], &f); /* and a duplicate does not either */
	hand_empty(&rig);
	peer_query(&rig.r.w[A], 0, 1, 0);
	check_eq(c, hand_count(&rig, A, SW_ANSWER), 1, "answers to its QUERY");
	peer_leave(&rig.r.w[A], 0, "");
	check_eq(c, hand_count(&rig, A, SW_LEFT), 1, "answers to its LEAVE");
	hand_close(&rig);
}

/* Replay @n frames of a dead member repeatedly. */
static void replay_dead(
	struct check *c, struct hand_rig *rig, struct test_frame *f, uint32_t n)
{
	uint64_t dead_after = rig->r.params.dead_after;

	for (uint32_t i = 0; i < 15; i++) {
		hand_pass(rig, dead_after / 10);
		peer_again(&rig->r.w[A], &f[i % n]);
		peer_keepalive(&rig->r.w[B]);
	}
	check_eq(c, rig->r.srv->stats.sessions_dead, 1, "sessions buried");
	check_eq(c, rig->r.srv->jobs[0].status.why.kind, SW_FAULT_SILENT,
		"what members are told");
}

static void n4_recorded_frames_prove_no_life(struct check *c)
{
	struct test_frame f[3];
	struct hand_rig rig;

	hand_open(&rig, 2, 100);
	peer_keepalive(&rig.r.w[A]);
	f[0] = rig.sent;
	hand_push(&rig, A, 1, 0, 1);
	f[1] = rig.sent;
	peer_query(&rig.r.w[A], 0, 1, 0);
	f[2] = rig.sent;
	replay_dead(c, &rig, f, 3);
	hand_close(&rig);
}

/* A frame with a raised number, repeated, does not prove life either. */
static void n4_a_raised_number_proves_no_life(struct check *c)
{
	static const uint64_t psns[] = {50, MAX_PSN};
	struct hand_rig rig;
	struct test_frame f;

	for (uint32_t i = 0; i < SW_ARRAY_SIZE(psns); i++) {
		hand_open(&rig, 2, 100);
		peer_keepalive(&rig.r.w[A]);
		f = rig.sent;
		f.h.psn = psns[i];
		frame_seal(&f);
		replay_dead(c, &rig, &f, 1);
		hand_close(&rig);
	}
}

/* All frames of a member are lost for a while when many are in flight: the next
 * frames have numbers far ahead, and are genuine. */
static enum sim_fate lose_acks_to_server(void *ctx, struct sim_frame *f)
{
	uint64_t *n = ctx;

	return is_type(f, SW_ACK, WORKER) && ++*n > 300 && *n < 500 ? SIM_LOST
								    : SIM_PASS;
}

static enum sim_fate lose_pushes(void *ctx, struct sim_frame *f)
{
	uint64_t *n = ctx;

	return is_type(f, SW_PUSH, WORKER) && ++*n > 2000 && *n < 2200
		       ? SIM_LOST
		       : SIM_PASS;
}

static void n5_what_is_far_ahead_may_be_true(struct check *c)
{
	enum sim_fate (*const hooks[])(void *, struct sim_frame *) = {
		lose_acks_to_server, lose_pushes};

	for (uint32_t i = 0; i < SW_ARRAY_SIZE(hooks); i++) {
		struct sim_job *job = new_job(2000 * 336, 4);
		uint64_t n = 0;

		job->net.hook = hooks[i];
		job->net.hook_ctx = &n;
		sim_job_open(job);
		check(c, sim_job_run(job, 30 * SW_S), "the job ends");
		sim_job_pass(job, SW_S);
		expect_nothing_open(c, job);
		end_job(c, job);
	}
}

const struct check_case trace_number[] = {
	{"n1_data_to_a_worker", n1_data_to_a_worker},
	{"n1_data_to_a_server", n1_data_to_a_server},
	{"n2_control_to_a_worker", n2_control_to_a_worker},
	{"n2_control_to_a_server", n2_control_to_a_server},
	{"n3_a_member_is_not_muted", n3_a_member_is_not_muted},
	{"n4_recorded_frames_prove_no_life", n4_recorded_frames_prove_no_life},
	{"n4_a_raised_number_proves_no_life",
		n4_a_raised_number_proves_no_life},
	{"n5_what_is_far_ahead_may_be_true", n5_what_is_far_ahead_may_be_true},
};

const uint32_t n_trace_number = SW_ARRAY_SIZE(trace_number);
