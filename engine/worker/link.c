/* link.c - a link to a server: requests, answers, timers, silence.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/worker/link.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/worker/faults.h"
#include "engine/worker/probe.h"
#include "engine/worker/tensors.h"

enum { JOIN_TRIES = 8 }; /* JOINs with one cookie: 0.6 s */

static bool has_request(const struct sw_worker *w, const struct sw_link *l)
{
	switch (l->state) {
	case SW_LINK_HELLO:
	case SW_LINK_JOIN:
		return true;
	case SW_LINK_LEAVING:
		/* LEAVE waits until the server knows our dead tensors and
		 * closed streams.  Otherwise the server would tell members that
		 * wait for such a tensor or stream that we left. */
		return w->fault.err ||
		       (sw_bitmap_is_empty(&l->ends) &&
			       sw_bitmap_is_empty(&l->closes) &&
			       sw_control_is_idle(&l->peer.control) &&
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
		sw_link_owe(l, SW_OWE_REQUEST);
	else /* cancel a repetition */
		l->peer.owed &= ~(1u << SW_OWE_REQUEST);
}

/* --- requests --- */

/* Return the addresses of both ends. */
static struct sw_hand_path path_of(const struct sw_link *l)
{
	return (struct sw_hand_path){
		.worker = l->here, .server = l->peer.path.ip};
}

/* Set the MAC of the HELLO in w->payload. */
static void prove(struct sw_worker *w, struct sw_link *l)
{
	struct sw_hand_path path = path_of(l);

	memcpy(w->payload + offsetof(struct sw_hello, key_id), w->secret->id,
		sizeof(w->secret->id));
	sw_hand_mac(w->secret, SW_LABEL_HELLO, &path, w->payload,
		sizeof(struct sw_hello), offsetof(struct sw_hello, mac));
}

/* Seal the JOIN in w->payload. */
static void seal(struct sw_worker *w, struct sw_link *l)
{
	struct sw_hand_path path = path_of(l);
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

/* Ask the server whether it still knows the session. Reuse the JOIN's nonce: a
 * HELLO with this session follows only ACCEPT, so no answer to it is older than
 * the session. */
static uint32_t build_question(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h)
{
	struct sw_hello hello = {.nonce = l->nonce,
		.session = l->peer.far_id,
		.udp = l->peer.path.udp};

	*h = (struct sw_header){.type = SW_HELLO};
	memcpy(w->payload, &hello, sizeof(hello));
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
		.first = l->server_i ? (uint16_t)(1 + w->first) : 0,
		.is_trusted = l->is_trusted};

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

uint32_t sw_link_build_request(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h)
{
	if (l->state == SW_LINK_OPEN)
		return build_question(w, l, h);
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
		h->type = SW_LEAVE;
		memcpy(w->payload, &w->fault, sizeof(w->fault));
		return sizeof(w->fault);
	}
}

/* Draw a nonce for a new session, which also seeds its header CRCs. */
static void draw_nonce(struct sw_worker *w, struct sw_link *l)
{
	l->nonce = w->env->random(w->env->ctx);
	l->peer.seed = sw_session_seed(l->nonce);
}

void sw_link_start(struct sw_worker *w, struct sw_link *l)
{
	draw_nonce(w, l);
	l->state = SW_LINK_HELLO;
	sw_link_request(w, l);
}

/* Repeat the request if it is due; returns when to call again. */
static uint64_t tick_request(struct sw_worker *w, struct sw_link *l)
{
	if (!has_request(w, l))
		return UINT64_MAX;
	if (w->now_ns < l->request_at_ns)
		return l->request_at_ns;
	sw_link_owe(l, SW_OWE_REQUEST);
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
	sw_link_owe(l, SW_OWE_KEEPALIVE);
	return UINT64_MAX;
}

/* --- with a secret (PROTOCOL.md, section 14) --- */

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

	if (l->is_keyed ? sw_link_is_handshake(l, h) : h->type == SW_COOKIE)
		return sw_frame_is_true(NULL, seed, f, h, &w->stats);
	if (l->peer.seal || !l->is_keyed)
		return true;
	sw_count(&w->stats.rx_tag, 1);
	return false;
}

/* --- source ports (PROTOCOL.md, section 4.4) ---
 *
 * A COOKIE tells whether its HELLO landed on a wrong lcore, and may itself land
 * on a wrong one here.  Until the first JOIN the server has no state, so the
 * next HELLO may leave from another of our ports. */

/* Probe another source port instead of joining from this one, if a frame landed
 * on a wrong lcore, until all ports were tried.  Returns whether it did. */
static bool probe_again(
	struct sw_worker *w, struct sw_link *l, const struct sw_cookie *c)
{
	bool is_misrouted = c->is_misrouted || w->is_misrouted;

	if (l->is_settled)
		return false;
	if (is_misrouted && l->n_probes + 1u < w->n_ways) {
		l->peer.way = (uint16_t)((l->peer.way + 1) % w->n_ways);
		l->n_probes++;
		draw_nonce(w, l); /* so late COOKIEs do not match */
		sw_count(&w->stats.probes, 1);
		sw_link_request(w, l);
		return true;
	}
	l->is_settled = true;
	if (!is_misrouted)
		return false;
	sw_count(&w->stats.probes_failed, 1);
	sw_log(w->env->log, SW_LOG_INFO,
		"job %s, agent %u: none of %u source ports leads to the right "
		"lcore of server %s and back (the last: to its lcore %u): "
		"frames are handed over",
		w->job, w->member, w->n_ways, l->name, c->landed);
	return false;
}

/* --- answers --- */

static void take_accept(
	struct sw_worker *w, struct sw_link *l, const struct sw_accept *a)
{
	l->peer.far_id = a->session;
	l->far_payload = a->payload;
	l->probe.good = l->probe.size = 0;
	sw_peer_begin(&l->peer);
	l->state = SW_LINK_OPEN;
	l->n_cookies = 0;
	sw_link_request(w, l); /* cancel JOIN */
	l->peer.rx_ns = w->now_ns;
	w->is_refused = false;
	sw_link_owe(l, SW_OWE_KEEPALIVE); /* this confirms the session */
	sw_count(&w->stats.sessions_opened, 1);
	sw_link_probe(w, l);
	w->is_unsettled = true;
}

static void on_accept(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload)
{
	struct sw_accept a;

	memcpy(&a, payload, sizeof(a));
	if (l->state == SW_LINK_OPEN && a.session == l->peer.far_id) {
		/* Our KEEPALIVE was lost. */
		sw_link_owe(l, SW_OWE_KEEPALIVE);
		return;
	}
	if (l->state != SW_LINK_JOIN || a.nonce != l->nonce || !a.session ||
		!sw_payload_is_good(a.payload)) {
		sw_count(&w->stats.rx_state, 1);
		return;
	}
	sw_flow_rx(&l->peer.flow, h);
	take_accept(w, l, &a);
}

/* Forget an offered session that the server has dropped. */
static void forget_session(struct sw_worker *w, struct sw_link *l)
{
	uint16_t generation = (uint16_t)(l->peer.id + 1);

	sw_flow_restart(&l->peer.flow);
	sw_link_forget_keys(l);
	l->peer.id = l->peer.index << 16 | (generation ? generation : 1);
}

/* Keep a server's reason for the message at the deadline of joining. */
static void note_refused(struct sw_worker *w, const struct sw_link *l,
	const char *how, const struct sw_fault *fault)
{
	snprintf(w->refused, sizeof(w->refused), "%s%.*s", how,
		(int)(sizeof(w->refused) - 1 - strlen(how)), fault->text);
	w->refused_link = l;
	w->refused_ns = w->now_ns;
	w->is_refused = true;
}

/* Handle a refused JOIN.  If the place is taken (SW_EBUSY), it may become free:
 * ask again. */
static void on_refused(
	struct sw_worker *w, struct sw_link *l, struct sw_fault *fault)
{
	if (fault->err != SW_EBUSY) {
		sw_worker_fail(w, fault->err, SW_KEY_NONE, "server %.32s: %s",
			l->name, fault->text);
		return;
	}
	note_refused(w, l, "", fault);
	if (l->state == SW_LINK_OPEN)
		forget_session(w, l);
	l->state = SW_LINK_HELLO;
	draw_nonce(w, l);
	l->request_wait_ns = w->params.retry_max;
	l->request_at_ns = w->now_ns + l->request_wait_ns;
}

static void on_error(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload)
{
	/* A link is joining also after ACCEPT: another worker may have
	 * confirmed its session first. */
	bool is_joining =
		l->state == SW_LINK_JOIN ||
		(l->state == SW_LINK_OPEN && w->state == SW_WORKER_JOINING);
	struct sw_fault fault;

	if (!sw_fault_read(&fault, payload))
		fault.kind = SW_FAULT_SAID;
	fault.err = (int16_t)sw_server_error(fault.err);
	if (fault.nonce == l->nonce && is_joining)
		on_refused(w, l, &fault);
	else if (l->state == SW_LINK_OPEN && !fault.nonce)
		sw_worker_fail_for(w, &fault);
	else
		sw_count(&w->stats.rx_state, 1);
}

/* Join again, or fail, because the server does not know our session. */
static void on_unknown(struct sw_worker *w, struct sw_link *l)
{
	if (w->state == SW_WORKER_JOINING && (l->server_i || !w->size)) {
		forget_session(w, l);
		sw_link_start(w, l);
		return;
	}
	l->state = SW_LINK_CLOSED;
	sw_worker_fail(w, SW_ESERVER, SW_KEY_NONE,
		"server %.64s no longer knows this agent: it was "
		"restarted, or received nothing from it for %llu s",
		l->name, (unsigned long long)(w->params.dead_after / SW_S));
}

static void on_left(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload)
{
	if (h->ctl.left != l->peer.far_id) {
		sw_count(&w->stats.rx_state, 1);
	} else if (l->state == SW_LINK_LEAVING) {
		l->state = SW_LINK_CLOSED;
		sw_count(&w->stats.sessions_closed, 1);
		w->is_unsettled = true;
	} else if (l->state == SW_LINK_OPEN) {
		on_unknown(w, l);
	}
}

/* Does a MAC prove that the COOKIE is the server's?  Only keyed links have
 * MACs.
 */
static bool has_mac(const struct sw_worker *w, const struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload)
{
	struct sw_hand_path path = path_of(l);

	return l->is_keyed && h->payload_len > sizeof(struct sw_cookie) &&
	       sw_hand_is_good(w->secret, SW_LABEL_COOKIE, &path, payload,
		       h->payload_len, sizeof(struct sw_cookie));
}

/* Handle a COOKIE.  On a keyed link without a MAC, it is forged or its server
 * lacks our secret: JOIN with it until a proven COOKIE arrives. */
static void on_cookie(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload)
{
	struct sw_cookie c;
	bool is_proven, may;

	memcpy(&c, payload, sizeof(c));
	is_proven = c.nonce == l->nonce && has_mac(w, l, h, payload);
	if (l->state == SW_LINK_OPEN && is_proven && c.unknown &&
		c.unknown == l->peer.far_id) {
		on_unknown(w, l);
		return;
	}
	may = l->state == SW_LINK_HELLO ||
	      (l->state == SW_LINK_JOIN && is_proven && !l->is_proven);
	if (!may || c.nonce != l->nonce) {
		sw_count(&w->stats.rx_state, 1);
		return;
	}
	l->is_proven = is_proven;
	if (l->is_keyed) {
		sw_hand_random(w->env, l->e);
		c.is_misrouted = c.is_misrouted && is_proven;
	}
	if (probe_again(w, l, &c))
		return;
	l->cookie = c.cookie;
	l->n_cookies++;
	l->state = SW_LINK_JOIN;
	sw_link_request(w, l);
}

static void (*const handlers[SW_N_TYPES])(struct sw_worker *, struct sw_link *,
	const struct sw_header *, const uint8_t *) = {
	[SW_COOKIE] = on_cookie,
	[SW_ACCEPT] = on_accept,
	[SW_DECLARED] = sw_link_on_declared,
	[SW_STATUS] = sw_link_on_status,
	[SW_PROBE] = sw_link_on_probe,
	[SW_LEFT] = on_left,
	[SW_ERROR] = on_error,
	[SW_END] = sw_link_on_end,
};

bool sw_link_rx(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload)
{
	if (!handlers[h->type])
		return h->type == SW_KEEPALIVE;
	handlers[h->type](w, l, h, payload);
	return true;
}

/* --- the handshake of a keyed link: ACCEPT, refusals ---
 *
 * These frames have CRCs and prove themselves by a MAC or by Noise. A frame
 * without proof is at most a hint: it opens, refuses and ends nothing. */

/* Does the server encrypt if this worker does?  It has proved its identity, so
 * a difference ends the worker. */
static bool is_as_private(
	struct sw_worker *w, const struct sw_link *l, const struct sw_accept *a)
{
	if (a->is_encrypted == w->params.is_encrypted)
		return true;
	sw_worker_fail(w, SW_EMISMATCH, SW_KEY_NONE,
		"server %.64s does not encrypt, and [job] encrypt = yes: "
		"update that server",
		l->name);
	return false;
}

static void on_keyed_accept(
	struct sw_worker *w, struct sw_link *l, const uint8_t *payload)
{
	struct sw_noise noise = l->noise;
	uint8_t sealed[SW_ACCEPT_SEALED];
	struct sw_seal *seal = NULL;
	struct sw_accept a;

	if (sw_noise_answered(&noise, payload + SW_ACCEPT_CLEAR,
		    SW_ACCEPT_NOISE, sealed)) {
		memcpy(&a, payload, SW_ACCEPT_CLEAR);
		memcpy((uint8_t *)&a + SW_ACCEPT_CLEAR, sealed,
			sizeof(a) - SW_ACCEPT_CLEAR);
		if (a.session && sw_payload_is_good(a.payload) &&
			is_as_private(w, l, &a))
			seal = sw_hand_finish(
				&noise, false, w->params.is_encrypted);
	} else {
		sw_count(&w->stats.rx_tag, 1);
	}
	if (seal && !sw_seal_set_results(
			    seal, sealed + sizeof(a) - SW_ACCEPT_CLEAR)) {
		sw_seal_free(seal);
		seal = NULL;
	}
	if (seal) {
		sw_link_forget_keys(l);
		l->peer.seal = seal;
		take_accept(w, l, &a);
	}
	sw_crypto_wipe(&noise, sizeof(noise));
	sw_crypto_wipe(sealed, sizeof(sealed));
}

/* Keep the reason that a server gives without proof of its identity, for the
 * message at the deadline of joining. */
static void note_hint(
	struct sw_worker *w, struct sw_link *l, const uint8_t *payload)
{
	struct sw_fault fault;

	if (!sw_fault_read(&fault, payload) || fault.nonce != l->nonce ||
		l->state != SW_LINK_JOIN)
		return;
	note_refused(w, l, "it says, without a proof: ", &fault);
}

static void on_refusal(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload)
{
	struct sw_hand_path path = path_of(l);
	uint64_t nonce;

	memcpy(&nonce, payload, sizeof(nonce));
	if (h->payload_len != SW_REFUSAL_BYTES)
		note_hint(w, l, payload);
	else if (nonce && nonce == l->nonce &&
		 sw_hand_is_good(w->secret, SW_LABEL_REFUSE, &path, payload,
			 SW_REFUSAL_BYTES, sizeof(struct sw_fault)))
		on_error(w, l, h, payload);
	else
		sw_count(&w->stats.rx_tag, 1);
}

/* Handle a duplicate ACCEPT: our KEEPALIVE may have been lost.  A server that
 * waits for it still knows the session, so the worker need not join again.  A
 * replay of the ACCEPT gains nothing: the open timeout stays. */
static void on_repeated(struct sw_worker *w, struct sw_link *l)
{
	if (w->state == SW_WORKER_JOINING &&
		!l->peer.seal->taken[SW_CLASS_CTL].largest)
		l->peer.rx_ns = w->now_ns;
	if (w->now_ns - l->peer.sent_ns >= w->params.retry_min)
		sw_link_owe(l, SW_OWE_KEEPALIVE);
}

void sw_link_on_handshake(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload)
{
	uint64_t nonce;

	memcpy(&nonce, payload, sizeof(nonce));
	sw_peer_wake(&l->peer, 0);
	if (h->type == SW_COOKIE) {
		on_cookie(w, l, h, payload);
	} else if (h->type == SW_ERROR) {
		on_refusal(w, l, h, payload);
	} else if (nonce != l->nonce || h->payload_len < SW_ACCEPT_KEYED) {
		sw_count(&w->stats.rx_state, 1);
	} else if (l->state == SW_LINK_JOIN) {
		on_keyed_accept(w, l, payload);
	} else if (l->state == SW_LINK_OPEN) {
		on_repeated(w, l);
	}
}

/* --- timers --- */

/* Has the server been silent since ACCEPT?  A server that has confirmed the
 * session sends several frames within this time. */
static bool is_deaf(const struct sw_worker *w, const struct sw_link *l)
{
	return l->state == SW_LINK_OPEN && w->state == SW_WORKER_JOINING &&
	       (l->server_i || !w->size) &&
	       !l->peer.seal->taken[SW_CLASS_CTL].largest &&
	       w->now_ns - l->peer.rx_ns >= w->params.dead_after / 2;
}

/* A server that was restarted cannot answer frames of a session that it does
 * not know, because it lacks the keys.  Ask a server that has been silent for
 * longer than a server with the session ever is.  Returns when to call again.
 */
static uint64_t tick_question(struct sw_worker *w, struct sw_link *l)
{
	uint64_t at = l->peer.rx_ns + w->params.dead_after / 8;

	if (!l->is_keyed || l->state != SW_LINK_OPEN)
		return UINT64_MAX;
	if (at <= w->now_ns && l->question_at_ns <= w->now_ns) {
		l->question_at_ns = w->now_ns + w->params.retry_max;
		sw_link_owe(l, SW_OWE_REQUEST);
		/* To a server with the session, HELLO is no sign of life. */
		sw_link_owe(l, SW_OWE_KEEPALIVE);
	}
	return sw_max64(at, l->question_at_ns);
}

static void bury(struct sw_worker *w, struct sw_link *l, enum sw_silence how)
{
	char ip[SW_IP_TEXT];

	l->state = SW_LINK_CLOSED;
	sw_count(&w->stats.sessions_dead, 1);
	sw_worker_fail(w, SW_ESERVER, SW_KEY_NONE,
		"server %.64s (%s) %s for %llu s", l->name,
		sw_ip_text(l->peer.path.ip, ip), sw_silence_text(how),
		(unsigned long long)(w->params.dead_after / SW_S));
}

uint64_t sw_link_tick(struct sw_worker *w, struct sw_link *l)
{
	uint64_t at = tick_request(w, l);
	enum sw_silence how;

	if (!sw_link_has_session(l))
		return at;
	if (l->is_keyed && is_deaf(w, l)) {
		forget_session(w, l);
		sw_link_start(w, l);
		return tick_request(w, l);
	}
	sw_peer_tick_control(&l->peer);
	how = sw_peer_silence(&l->peer);
	if (how && l->state == SW_LINK_OPEN)
		bury(w, l, how);
	at = sw_min64(at, tick_question(w, l));
	at = sw_min64(at, sw_link_tick_probe(w, l));
	if (w->state == SW_WORKER_JOINING)
		w->is_unsettled = true;
	return at;
}
