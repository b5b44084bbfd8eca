/* worker_rig.c - a worker under test and servers that a test plays by frames.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/worker_rig.h"

#include "sum/sum.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- events --- */

static void note(struct worker_rig *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void note(struct worker_rig *r, const char *fmt, ...)
{
	size_t n = strlen(r->events);
	va_list ap;

	if (n && n + 2 < sizeof(r->events))
		n += (size_t)sprintf(r->events + n, "; ");
	va_start(ap, fmt);
	vsnprintf(r->events + n, sizeof(r->events) - n, fmt, ap);
	va_end(ap);
}

static void on_state(
	void *ctx, enum sw_worker_state state, int err, const char *text)
{
	static const char *const names[] = {
		"joining", "running", "failed", "left"};

	note(ctx, "%s%s%s%s%s", names[state], err ? " " : "",
		err ? sw_error_name(err) : "", *text ? " " : "", text);
}

static void on_declared(void *ctx)
{
	note(ctx, "declared");
}

static void on_summed(void *ctx)
{
	note(ctx, "summed");
}

static void on_failed(void *ctx)
{
	note(ctx, "failed");
}

static void on_done(void *ctx, uint32_t tensor, uint32_t local, uint64_t cookie,
	int err, uint32_t weight)
{
	struct worker_rig *r = ctx;

	note(r, "done t%u #%llu %s w%u", tensor, (unsigned long long)cookie,
		sw_error_name(err), weight);
	if (r->on_done)
		r->on_done(r, tensor);
}

const char *wrig_events(struct worker_rig *r)
{
	/* play the beginning of the lcore's next turn */
	if (r->w.is_unsettled || !sw_bitmap_is_empty(&r->w.dying))
		sw_worker_take(&r->w);
	memcpy(r->seen, r->events, sizeof(r->seen));
	r->events[0] = 0;
	return r->seen;
}

/* --- life --- */

static void road_send(struct test_peer *p, const struct test_frame *f)
{
	struct worker_rig *r = p->ctx;

	frame_rx(&r->w.engine, r->now_ns, f);
}

static const struct peer_road road = {.send = road_send};

static void open_job(struct worker_rig *r, struct sw_worker_job *job)
{
	struct sw_worker_events events = {.state = on_state,
		.declared = on_declared,
		.done = on_done,
		.summed = on_summed,
		.failed = on_failed,
		.ctx = r};
	struct sw_worker_server servers[WRIG_SERVERS];
	struct sw_port *port = &r->port;

	job->job = "job";
	job->node = "node";
	job->servers = servers;
	memset(r, 0, sizeof(*r));
	test_env_init(&r->env);
	sw_params_init(&r->params);
	r->params.payload = PEER_PAYLOAD;
	r->now_ns = SW_S;
	r->n_servers = job->n_servers;
	for (uint32_t i = 0; i < job->n_servers; i++) {
		r->s[i] = (struct test_peer){.road = &road,
			.ctx = r,
			.is_server = true,
			.path = {.ip = sw_ip_v4(frame_ip(i)), .udp = 5700},
			.id = 0x5000 + i,
			.grant = 256 * PEER_QUANTA};
		servers[i] = (struct sw_worker_server){
			.name = i ? "other" : "first", .path = r->s[i].path};
	}
	assert_int_equal(sw_worker_open(&r->w, &r->params, &r->env.env, &events,
				 job, &port, 1, r->now_ns),
		0);
}

void wrig_open(struct worker_rig *r, uint16_t rank, uint16_t n_members,
	uint32_t n_servers)
{
	wrig_open_local(r, rank, n_members, n_servers, 1);
}

void wrig_open_local(struct worker_rig *r, uint16_t rank, uint16_t n_members,
	uint32_t n_servers, uint16_t n_local)
{
	struct sw_worker_job job = {.member = rank,
		.n_members = n_members,
		.n_local = n_local,
		.n_servers = n_servers};

	open_job(r, &job);
}

void wrig_open_lane(struct worker_rig *r, struct sw_lane *lane, uint8_t lane_i,
	uint16_t n_local)
{
	struct sw_worker_job job = {.n_members = 2,
		.n_local = n_local,
		.n_servers = 2,
		.lane_i = lane_i,
		.n_lanes = 2,
		.lanes = lane};

	sw_lane_init(lane, lane_i ? &r->zero : &r->w);
	open_job(r, &job);
	r->zero.params.payload = PEER_PAYLOAD;
}

void wrig_build_lane(struct worker_rig *r, uint32_t n)
{
	for (uint32_t i = r->w.n_built; i < n; i++)
		assert_int_equal(
			sw_worker_build(&r->w, &r->zero.tensors[i].decl, 1), 0);
}

void wrig_close(struct worker_rig *r)
{
	sw_worker_close(&r->w);
	test_env_fini(&r->env);
}

/* --- frames --- */

void wrig_learn(struct worker_rig *r, const struct test_frame *f)
{
	r->last[f->h.type] = *f;
	peer_learn(&r->s[f->peer.ip.low & 0xff], f);
}

/* Take the worker's next frame and append its text. */
static bool take(struct worker_rig *r)
{
	struct test_frame f;

	if (!frame_tx(&r->w.engine, r->now_ns, 0, &f))
		return false;
	assert_true(frame_is_intact(&f, sw_epoch_seed(r->w.epoch)));
	assert_true(strlen(r->text) + 512 < sizeof(r->text));
	frame_text(&f, 's', r->text, sizeof(r->text));
	wrig_learn(r, &f);
	return true;
}

/* Fix the window, because these peers send no ACKs that would let it grow. */
static void lift_windows(struct worker_rig *r)
{
	for (uint32_t i = 0; i < r->w.n_links; i++) {
		struct sw_flow *f = &r->w.links[i].peer.flow;

		sw_congestion_init(&f->congestion, f->frame, f->window, false);
	}
}

const char *wrig_tx(struct worker_rig *r)
{
	lift_windows(r);
	r->text[0] = 0;
	while (take(r))
		;
	return r->text;
}

const char *wrig_tx_one(struct worker_rig *r)
{
	r->text[0] = 0;
	take(r);
	return r->text;
}

uint64_t wrig_tick(struct worker_rig *r, uint64_t ns)
{
	r->now_ns += ns;
	return r->w.engine.tick(&r->w.engine, r->now_ns, 0);
}

void wrig_run(struct worker_rig *r)
{
	wrig_tx(r);
	peer_cookie(&r->s[0]);
	wrig_tx(r);
	peer_accept(&r->s[0]);
	peer_status(&r->s[0], SW_JOB_RUNNING, 0,
		(uint16_t)(r->w.n_members *
			   (r->s[0].n_local ? r->s[0].n_local : 1)),
		"");
	for (uint32_t i = 1; i < r->n_servers; i++) {
		wrig_tx(r);
		peer_cookie(&r->s[i]);
		wrig_tx(r);
		peer_accept(&r->s[i]);
	}
	wrig_tick(r, 0);
	wrig_tx(r);
	assert_string_equal(wrig_events(r), "running");
}

void wrig_declare(struct worker_rig *r, const char *name, uint64_t n_elems,
	uint32_t priority)
{
	uint32_t i = r->w.n_tensors;
	struct sw_worker_tensor t = {.name = name,
		.n_elems = n_elems,
		.dtype = SW_I32,
		.priority = priority,
		.base = r->data[i]};

	assert_true(i < WRIG_TENSORS && n_elems <= WRIG_ELEMS);
	assert_int_equal(sw_worker_declare(&r->w, &t, 1), 0);
	for (uint32_t s = 0; s < r->n_servers; s++) {
		wrig_tx(r);
		peer_declared(&r->s[s]);
	}
	wrig_tx(r);
	assert_string_equal(wrig_events(r), "declared");
}
