/* link.c - send requests to servers: HELLO, JOIN, LEAVE, DECLARE, TUNE.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/worker/link.h"

#include <string.h>

#include "engine/base/bytes.h"
#include "engine/worker/stream.h"

enum { JOIN_TRIES = 8 }; /* JOINs with one cookie: 0.6 s */

static bool wants_declare(const struct sw_worker *w, const struct sw_link *l)
{
	return l->n_declared < w->n_tensors &&
	       (l->server_i == 0 ||
		       sw_wtensor_numbered(w, l->n_declared)->key !=
			       SW_KEY_NONE);
}

static bool has_request(const struct sw_worker *w, const struct sw_link *l)
{
	switch (l->state) {
	case SW_LINK_HELLO:
	case SW_LINK_JOIN:
		return true;
	case SW_LINK_LEAVING:
		/* LEAVE waits until the server knows our dead tensors and
		 * closed streams.  Else it would tell members that wait for one
		 * of these that we left. */
		return w->fault.err ||
		       (sw_link_is_acked(l) &&
			       (l->server_i ||
				       sw_bitmap_is_empty(&w->closing)));
	case SW_LINK_OPEN:
	case SW_LINK_IDLE:
	case SW_LINK_CLOSED:
		break;
	}
	return false;
}

void sw_link_request(struct sw_worker *w, struct sw_link *l)
{
	l->n_requests = 0;
	l->request_at_ns = w->now_ns;
	l->request_wait_ns = w->params.retry_min;
	sw_peer_wake(&l->peer, 0);
	if (has_request(w, l))
		sw_link_owe(w, l, SW_OWE_REQUEST);
	else /* cancel a repetition */
		l->peer.owed &= ~(1u << SW_OWE_REQUEST);
}

/* --- requests --- */

struct sw_hand_path sw_link_path(const struct sw_link *l)
{
	return (struct sw_hand_path){
		.worker = l->here, .server = l->peer.path.ip};
}

/* Set the MAC of the HELLO in w->payload. */
static void prove(struct sw_worker *w, struct sw_link *l)
{
	struct sw_hand_path path = sw_link_path(l);

	memcpy(w->payload + offsetof(struct sw_hello, key_id), w->secret->id,
		sizeof(w->secret->id));
	sw_hand_mac(w->secret, SW_LABEL_HELLO, &path, w->payload,
		sizeof(struct sw_hello), offsetof(struct sw_hello, mac));
}

/* Seal the JOIN in w->payload. */
static void seal(struct sw_worker *w, struct sw_link *l)
{
	struct sw_hand_path path = sw_link_path(l);
	uint8_t plain[SW_JOIN_SEALED];

	memcpy(w->payload + offsetof(struct sw_join, key_id), w->secret->id,
		sizeof(w->secret->id));
	memcpy(plain, w->payload + SW_JOIN_CLEAR, sizeof(plain));
	/* If libcrypto fails, the server drops the JOIN. */
	if (sw_hand_begin(&l->noise, w->secret, &path, w->payload,
		    SW_PAYLOAD_MIN, l->e))
		sw_noise_ask(&l->noise, plain, sizeof(plain),
			w->payload + SW_JOIN_CLEAR);
}

static uint32_t build_hello(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h)
{
	struct sw_hello hello = {.nonce = l->nonce};

	h->type = SW_HELLO;
	memcpy(w->payload, &hello, sizeof(hello));
	if (l->is_keyed)
		prove(w, l);
	return sizeof(hello);
}

static uint32_t build_join(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h)
{
	struct sw_join j = {.nonce = l->nonce,
		.cookie = l->cookie,
		.epoch = l->server_i ? w->epoch : 0,
		.session = l->peer.id,
		.version_min = SW_VERSION_MIN,
		.version_max = SW_VERSION_MAX,
		.member = w->member,
		.n_members = w->n_members,
		.n_local = w->n_local,
		.server_i = (uint16_t)l->server_i,
		.n_servers = w->place.n_servers,
		.payload = (uint16_t)w->params.payload,
		.has_crc = w->params.has_crc,
		.is_encrypted = w->params.is_encrypted,
		.n_colocated = w->place.n_colocated,
		.n_lcores = w->place.n_lcores,
		.policy = (uint8_t)sw_policy_id(w->params.policy),
		.credit_bytes = w->params.credit_bytes,
		.mode = w->params.mode,
		.is_by_rank = w->params.is_by_rank,
		.first = l->server_i ? (uint16_t)(1 + w->first) : 0};

	memcpy(j.job, w->job, sizeof(j.job));
	memcpy(j.node, w->node_name, sizeof(j.node));
	h->type = SW_JOIN;
	memcpy(w->payload, &j, sizeof(j));
	/* Make JOIN, and so ACCEPT, as long as the shortest full frames: a path
	 * that cannot carry these fails here. */
	memset(w->payload + sizeof(j), 0, SW_PAYLOAD_MIN - sizeof(j));
	if (l->is_keyed)
		seal(w, l);
	return SW_PAYLOAD_MIN;
}

static uint32_t build_leave(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h)
{
	h->type = SW_LEAVE;
	memcpy(w->payload, &w->fault, sizeof(w->fault));
	return sizeof(w->fault);
}

void sw_link_declare(struct sw_worker *w, struct sw_link *l)
{
	if (w->state == SW_WORKER_RUNNING && l->state == SW_LINK_OPEN &&
		!l->n_asked && wants_declare(w, l))
		sw_link_owe(w, l, SW_OWE_DECLARE);
}

/* Fill a stream's part of a declaration. */
static void declare_stream(const struct sw_worker *w,
	const struct sw_wtensor *t, struct sw_declare_item *item)
{
	const struct sw_stream *s = t->stream;

	item->stream.members = s->group.members;
	if (t->key == SW_KEY_NONE)
		item->stream.ranks_crc = s->group.crc;
	else
		item->stream.group = t->first;
	item->stream.window_log2 = sw_stream_is_here(w, s)
					   ? SW_WINDOW_MIN_LOG2
					   : t->decl.window_log2;
}

/* Declare as many tensors as fit into one message and get their keys in one
 * turn. */
uint32_t sw_link_build_declare(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h)
{
	struct sw_declare_head head = {.payload = (uint16_t)w->params.payload};
	uint32_t at = sizeof(head), i = l->n_declared;
	uint32_t most = SW_DECLARE_MAX;

	if (!l->server_i)
		most = (uint32_t)sw_min64(most, sw_keys_some(w));
	for (; i < w->n_tensors && head.n < most; i++) {
		const struct sw_wtensor *t = sw_wtensor_numbered(w, i);
		struct sw_declare_item item = {.key = t->key,
			.priority = t->decl.priority,
			.mode = t->mode,
			.name_len = (uint16_t)strlen(t->name)};

		if (t->kind->is_group) {
			declare_stream(w, t, &item);
		} else {
			item.n_elems = t->decl.n_elems;
			item.first = t->first;
			item.dtype = (uint8_t)t->decl.dtype;
		}
		if (at + sizeof(item) + item.name_len > SW_ORDERED_MAX ||
			(l->server_i && t->key == SW_KEY_NONE))
			break;
		memcpy(w->payload + at, &item, sizeof(item));
		memcpy(w->payload + at + sizeof(item), t->name, item.name_len);
		at += (uint32_t)sizeof(item) + item.name_len;
		head.n++;
	}
	if (!head.n) /* the coordinator has refused them meanwhile */
		return 0;
	l->n_asked = head.n;
	h->type = SW_DECLARE;
	memcpy(w->payload, &head, sizeof(head));
	return at;
}

uint32_t sw_link_build_tune(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h)
{
	const struct sw_job_tuning *k = &w->tuning.wanted;
	struct sw_tune_ask ask = {.policy = (uint8_t)sw_policy_id(k->policy),
		.part_bytes = k->part_bytes,
		.credit_bytes = k->credit_bytes};

	h->type = SW_TUNE;
	memcpy(w->payload, &ask, sizeof(ask));
	return sizeof(ask);
}

uint32_t sw_link_build_request(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h)
{
	l->n_requests++;
	l->request_at_ns = w->now_ns + l->request_wait_ns;
	l->request_wait_ns =
		sw_min64(2 * l->request_wait_ns, w->params.retry_max);
	switch (l->state) {
	case SW_LINK_HELLO:
		return build_hello(w, l, h);
	case SW_LINK_JOIN:
		if (l->n_requests < JOIN_TRIES)
			return build_join(w, l, h);
		/* The cookie may have expired.  With the same nonce the next
		 * JOIN counts as a duplicate, if the first one arrived. */
		l->n_requests = 0;
		l->state = SW_LINK_HELLO;
		return build_hello(w, l, h);
	default:
		return build_leave(w, l, h);
	}
}

void sw_link_draw_nonce(struct sw_worker *w, struct sw_link *l)
{
	l->nonce = w->env->random(w->env->ctx);
	l->peer.seed = sw_session_seed(l->nonce);
}

void sw_link_start(struct sw_worker *w, struct sw_link *l)
{
	sw_link_draw_nonce(w, l);
	l->state = SW_LINK_HELLO;
	sw_link_request(w, l);
}

uint64_t sw_link_tick_request(struct sw_worker *w, struct sw_link *l)
{
	if (!has_request(w, l))
		return UINT64_MAX;
	if (w->now_ns < l->request_at_ns)
		return l->request_at_ns;
	sw_link_owe(w, l, SW_OWE_REQUEST);
	return UINT64_MAX;
}

uint64_t sw_link_tick_rest(struct sw_worker *w, struct sw_link *l)
{
	struct sw_flow *f = &l->peer.flow;
	uint64_t at = l->rest_at_ns;

	l->rest_at_ns = 0;
	if (l->n_todo || !sw_flow_may_rest(f))
		return UINT64_MAX;
	if (!at || w->now_ns < at) {
		l->rest_at_ns = at ? at : w->now_ns + w->params.rto_min;
		return l->rest_at_ns;
	}
	sw_flow_rest(f);
	sw_link_owe(w, l, SW_OWE_KEEPALIVE);
	return UINT64_MAX;
}

/* --- what a secret changes (PROTOCOL.md, section 14) --- */

void sw_link_forget_keys(struct sw_link *l)
{
	sw_seal_free(l->peer.seal);
	l->peer.seal = NULL;
	sw_crypto_wipe(&l->noise, sizeof(l->noise));
	sw_crypto_wipe(l->e, sizeof(l->e));
}

bool sw_link_is_handshake(const struct sw_link *l, const struct sw_header *h)
{
	return h->type == SW_COOKIE || h->type == SW_ACCEPT ||
	       (h->type == SW_ERROR &&
		       (!l->peer.seal || h->payload_len == SW_REFUSAL_BYTES));
}

bool sw_link_is_true(struct sw_worker *w, struct sw_link *l,
	const struct sw_rx_frame *f, struct sw_header *h)
{
	uint32_t seed = h->type == SW_COOKIE ? 0 : l->peer.seed;

	if (!l->is_keyed || sw_link_is_handshake(l, h))
		return sw_frame_is_true(NULL, seed, f, h, &w->stats);
	if (l->peer.seal)
		return sw_frame_is_true(l->peer.seal, seed, f, h, &w->stats);
	sw_count(&w->stats.rx_tag, 1);
	return false;
}

bool sw_worker_path(
	const struct sw_worker *w, uint32_t i, struct sw_worker_path *out)
{
	struct sw_flow_view v;

	if (i >= w->n_links)
		return false;
	v = sw_flow_view(&w->links[i].peer.flow);
	*out = (struct sw_worker_path){.server = w->links[i].name,
		.window_bytes = v.window,
		.granted_bytes = v.granted,
		.srtt_ns = v.srtt_ns};
	return true;
}
