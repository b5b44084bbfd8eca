/* server_rig.c - a server under test and workers that a test plays by frames.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/server_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void road_send(struct test_peer *p, const struct test_frame *f)
{
	struct server_rig *r = p->ctx;

	frame_rx(&r->srv->engine, r->now_ns, f);
}

bool rig_is_intact(const struct server_rig *r, const struct test_frame *f)
{
	uint32_t i = (uint32_t)f->peer.ip.low & 0xff;

	return frame_is_intact(
		f, i < RIG_WORKERS ? sw_epoch_seed(r->w[i].epoch) : 0);
}

/* Take the server's next frame and append its text. */
static bool take(struct server_rig *r, struct test_frame *f)
{
	if (!frame_tx(&r->srv->engine, r->now_ns, 0, f))
		return false;
	assert_true(rig_is_intact(r, f));
	assert_true(strlen(r->text) + 512 < sizeof(r->text));
	/* omit: rig_learn answers it for the worker */
	if (!frame_is_probing(f))
		frame_text(f, 'w', r->text, sizeof(r->text));
	rig_learn(r, f);
	return true;
}

static bool road_receive(
	struct test_peer *p, uint8_t type, struct test_frame *out)
{
	struct server_rig *r = p->ctx;
	struct test_frame f;
	bool is_found = false;

	r->text[0] = 0;
	while (take(r, &f)) {
		if (f.h.type != type || !sw_ip_is_same(f.peer.ip, p->path.ip))
			continue;
		*out = f;
		is_found = true;
	}
	return is_found;
}

static const struct peer_road road = {road_send, road_receive, 1};

void server_rig_open(
	struct server_rig *r, uint16_t n_members, uint64_t quota_bytes)
{
	memset(r, 0, sizeof(*r));
	test_env_init(&r->env);
	sw_params_init(&r->params);
	r->params.payload = PEER_PAYLOAD;
	r->port.max_payload = SW_PAYLOAD_MAX;
	r->ports[0] = &r->port;
	r->now_ns = SW_S;
	r->n_members = n_members;
	for (uint32_t i = 0; i < RIG_WORKERS; i++)
		r->w[i] = (struct test_peer){.road = &road,
			.ctx = r,
			.path = {.ip = sw_ip_v4(frame_ip(i)), .udp = 5700},
			.nonce = 100 + i,
			.id = 0x100 + i,
			.grant = 1 << 19};
	assert_int_equal(sw_server_open(&r->srv, &r->params, &r->env.env,
				 r->ports, 1, quota_bytes),
		0);
}

void server_rig_close(struct server_rig *r)
{
	sw_server_close(r->srv);
	test_env_fini(&r->env);
}

void rig_learn(struct server_rig *r, const struct test_frame *f)
{
	uint32_t i = (uint32_t)f->peer.ip.low & 0xff;

	r->last[f->h.type] = *f;
	if (i < RIG_WORKERS)
		peer_learn(&r->w[i], f);
}

/* Fix the window, because these peers send no ACKs that would let it grow. */
static void lift_windows(struct server_rig *r)
{
	for (uint32_t i = 0; i < SW_MAX_SESSIONS; i++) {
		struct sw_session *s = r->srv->sessions[i];

		if (s)
			sw_congestion_init(&s->peer.flow.congestion,
				s->peer.flow.frame, s->peer.flow.window, false);
	}
}

const char *rig_tx(struct server_rig *r)
{
	struct test_frame f;

	lift_windows(r);
	r->text[0] = 0;
	while (take(r, &f))
		;
	return r->text;
}

uint64_t rig_tick(struct server_rig *r, uint64_t ns)
{
	r->now_ns += ns;
	return r->srv->engine.tick(&r->srv->engine, r->now_ns, 0);
}

struct sw_join rig_join_payload(struct server_rig *r, uint32_t i)
{
	struct sw_join j;
	char node[SW_NAME_MAX];

	snprintf(node, sizeof(node), "node%u", i);
	j = peer_join_payload(&r->w[i], "job", node, i, r->n_members);
	j.has_crc = r->params.has_crc;
	j.mode = r->params.mode;
	j.is_by_rank = r->params.is_by_rank;
	return j;
}

const char *rig_join_only(struct server_rig *r, uint32_t i)
{
	struct sw_join j;

	peer_hello(&r->w[i]);
	j = rig_join_payload(r, i);
	peer_join(&r->w[i], &j);
	return r->text;
}

const char *rig_join(struct server_rig *r, uint32_t i)
{
	struct test_frame f;

	if (!strstr(rig_join_only(r, i), "ACCEPT"))
		return r->text;
	peer_keepalive(&r->w[i]);
	while (take(r, &f))
		;
	return r->text;
}

const char *rig_declare(struct server_rig *r, uint32_t i, const char *name,
	uint32_t dtype, uint64_t n_elems, uint32_t priority)
{
	struct sw_declare_item item = {.n_elems = n_elems,
		.priority = priority,
		.dtype = (uint8_t)dtype};

	peer_declare(&r->w[i], item, name);
	return r->text;
}

void rig_run(struct server_rig *r, uint64_t n_elems)
{
	for (uint32_t i = 0; i < r->n_members; i++)
		rig_join(r, i);
	for (uint32_t i = 0; i < r->n_members; i++) {
		rig_declare(r, i, "a", SW_I32, n_elems, 0);
		peer_keepalive(&r->w[i]); /* acknowledges DECLARED */
	}
	rig_tick(r, 0);
	assert_string_equal(rig_tx(r), "");
}

bool rig_result_is(const struct server_rig *r, int32_t value)
{
	return frame_is_all(&r->last[SW_RESULT], value);
}
