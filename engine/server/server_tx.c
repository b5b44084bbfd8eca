/* server_tx.c - send a server's frames: replies, control frames, results.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "engine/server/admit.h"
#include "engine/server/job.h"
#include "engine/server/session.h"
#include "engine/wire/cipher.h"

enum { MANY_MEMBERS = 16 };

/* --- control frames: each builder fills the payload and returns its bytes ---
 */

static uint32_t build_error(struct sw_session *s, struct sw_header *h)
{
	memcpy(s->srv->next, &s->fault, sizeof(s->fault));
	return sizeof(s->fault);
}

static uint32_t build_status(struct sw_session *s, struct sw_header *h)
{
	struct sw_status st;

	s->status_number = sw_control_next(&s->peer.control);
	sw_job_status(s->job, s->member, &st);
	memcpy(s->srv->next, &st, sizeof(st));
	return sizeof(st);
}

static uint32_t build_end(struct sw_session *s, struct sw_header *h)
{
	uint32_t i = sw_bitmap_first(&s->ends);
	const struct sw_shard *sh = &s->job->shard;
	const struct sw_sgroup *g = &sh->tensors[i].own;
	const struct sw_fault *why = sw_sgroup_why(sh, g);

	sw_bitmap_remove(&s->ends, i);
	if (!sw_bitmap_is_empty(&s->ends))
		sw_session_owe(s, SW_OWE_END);
	h->round = g->from;
	memcpy(s->srv->next, why, sizeof(*why));
	return sizeof(*why);
}

static uint32_t build_declared(struct sw_session *s, struct sw_header *h)
{
	struct sw_server *srv = s->srv;
	struct sw_declared d = {
		.n = s->n_declared, .is_refused = s->refused.err != 0};
	uint32_t len = (uint32_t)sizeof(d) + 8u * s->n_declared;

	memcpy(srv->next, &d, sizeof(d));
	memcpy(srv->next + sizeof(d), s->declared, 4u * s->n_declared);
	memcpy(srv->next + sizeof(d) + 4u * s->n_declared, s->firsts,
		4u * s->n_declared);
	if (d.is_refused)
		memcpy(srv->next + len, &s->refused, sizeof(s->refused));
	return len + (d.is_refused ? (uint32_t)sizeof(s->refused) : 0);
}

static uint32_t build_answer(struct sw_session *s, struct sw_header *h)
{
	/* Send as many as the payload holds; the other answers follow. */
	uint32_t n = (uint32_t)sw_min64(
		s->n_answers, s->job->params.payload / sizeof(*s->answers));
	uint32_t bytes = n * (uint32_t)sizeof(*s->answers);

	memcpy(s->srv->next, s->answers, bytes);
	s->n_answers -= n;
	memmove(s->answers, s->answers + n, s->n_answers * sizeof(*s->answers));
	if (s->n_answers)
		sw_session_owe(s, SW_OWE_ANSWER);
	return bytes;
}

static uint32_t build_probe(struct sw_session *s, struct sw_header *h)
{
	memset(s->srv->next, 0, s->probe_bytes);
	return s->probe_bytes;
}

static const struct builder {
	uint8_t type;
	uint32_t (*build)(struct sw_session *, struct sw_header *);
} builders[SW_N_OWED] = {
	[SW_OWE_ERROR] = {SW_ERROR, build_error},
	[SW_OWE_STATUS] = {SW_STATUS, build_status},
	[SW_OWE_END] = {SW_END, build_end},
	[SW_OWE_DECLARED] = {SW_DECLARED, build_declared},
	[SW_OWE_PROBE] = {SW_PROBE, build_probe},
	[SW_OWE_ANSWER] = {SW_ANSWER, build_answer},
	[SW_OWE_KEEPALIVE] = {SW_KEEPALIVE, NULL},
	[SW_OWE_TAKEN] = {SW_KEEPALIVE, NULL},
};

uint32_t sw_server_build(
	struct sw_peer *p, enum sw_owed what, struct sw_header *h)
{
	const struct builder *b = &builders[what];
	struct sw_session *s = sw_session_of(p);

	h->type = b->type;
	if (sw_type_is_ordered(h->type)) /* its timer starts */
		s->srv->tick_at_ns[p->index] = s->srv->now_ns;
	return b->build ? b->build(s, h) : 0;
}

/* Send one reply, from each queue in turn. */
static uint32_t tx_reply(
	struct sw_server *srv, uint32_t port_i, struct sw_tx_frame *out)
{
	struct sw_replies *both[] = {
		&srv->replies[port_i], &srv->cookies[port_i]};
	struct sw_replies *q = both[srv->has_cookie_turn];
	struct sw_reply *r;

	if (!q->n)
		q = both[!srv->has_cookie_turn];
	if (!q->n)
		return 0;
	srv->has_cookie_turn = q == both[0];
	r = &q->ring[q->first % SW_REPLIES];
	q->first++;
	q->n--;
	out->header = r->header;
	out->header.class = SW_CLASS_CTL;
	if (r->is_tagged) {
		sw_frame_address(out, r->path, r->payload, false);
		sw_frames_note(
			&srv->stats, 1, SW_HEAD_BYTES + out->payload_len);
		return 1;
	}
	sw_frame_build(out, r->path, r->payload, false, &srv->stats);
	return 1;
}

static uint32_t tx_control(
	struct sw_server *srv, uint32_t port_i, struct sw_tx_frame *out)
{
	uint32_t i = sw_due_take_turn(&srv->due[port_i], SW_CLASS_CTL);
	struct sw_session *s;

	if (i == SW_MAX_SESSIONS)
		return 0;
	s = srv->sessions[i];
	if (!s) {
		sw_pending_build(srv, i, out);
		return 1;
	}
	sw_peer_tx(&s->peer, srv->next, out);
	return 1;
}

/* Send control frames as long as their payloads have room. */
static uint32_t tx_controls(struct sw_server *srv, uint32_t port_i,
	struct sw_tx_frame *out, uint32_t max)
{
	const uint8_t *last = srv->payload + SW_PAYLOAD_MAX;
	uint32_t n = 0;

	for (srv->next = srv->payload; n < max && srv->next <= last; n++) {
		if (!tx_control(srv, port_i, &out[n]))
			break;
		srv->next += out[n].payload_len;
	}
	return n;
}

/* Return the order of the tensor to send next: the most urgent tensor; in the
 * session's turn (@is_turn), the next tensor with results. */
static uint32_t order_to_send(struct sw_session *s, bool is_turn)
{
	const struct sw_shard *sh = &s->job->shard;
	const struct sw_bitmap *ready = &sh->ready[s->member];
	uint32_t first = sw_bitmap_first(ready), order;

	if (!is_turn)
		return first;
	order = sw_bitmap_turn(ready, &s->peer.turn_order);
	return sw_flow_can_send(&s->peer.flow, sw_shard_class(sh, order))
		       ? order
		       : first;
}

/* Count the results of one tensor or stream that answer PUSHes: a member that
 * contributes no bytes sends one WANT for many results. */
static inline uint32_t count_answers(
	const struct sw_tx_frame *f, const struct sw_tx_frame *end)
{
	uint32_t n = 0;

	if (!sw_coll_kind_of(f->header.op)) /* a tensor */
		return (uint32_t)(end - f);
	for (; f != end; f++)
		n += sw_coll_is_sum(sw_coll_kind_of(f->header.op));
	return n;
}

/* Hash a result's payload, and keep the hash for the other members, unless the
 * bytes may change. */
static __attribute__((noinline)) void hash_result(struct sw_session *s,
	struct sw_result_row *row, const struct sw_header *h,
	const void *payload)
{
	struct sw_result_keys *r = s->job->results;

	sw_count(&s->srv->stats.result_hashes, 1);
	row->key = h->key;
	row->round = h->round;
	row->chunk = h->chunk;
	row->era = sw_result_is_stable(h) ? r->era + 1 : 0;
	/* Adjacent results are sent in turn: prefetch the next one. */
	sw_polyval_far(&r->hash, payload, h->payload_len,
		(const void *)((uintptr_t)payload + h->payload_len), row->hash);
}

/* Return the hash of a result's payload. */
static inline const uint8_t *hash_of_result(
	struct sw_session *s, const struct sw_header *h, const void *payload)
{
	struct sw_result_keys *r = s->job->results;
	struct sw_result_row *row =
		sw_result_keys_row(r, h->key, h->round, h->chunk);

	if (row->era != r->era + 1 || row->key != h->key ||
		row->round != h->round || row->chunk != h->chunk)
		hash_result(s, row, h, payload);
	return row->hash;
}

/* Return a buffer for an encrypted payload of this tx. */
static void *next_cipher(struct sw_server *srv)
{
	return srv->ciphers[srv->n_ciphers++ % SW_TX_BURST];
}

/* Encrypt a RESULT that is the same for all members.  Encrypt it once, in
 * place; if a member reads results in the clear (has_inner), encrypt it into a
 * buffer of this tx.  Such a member joined before the sum was complete. */
static void encrypt_shared(
	struct sw_session *s, uint32_t cell, struct sw_tx_frame *out)
{
	struct sw_result_keys *r = s->job->results;
	struct sw_header *h = &out->header;
	void *to = (void *)out->payload;
	uint32_t era = h->payload_crc;

	if (s->job->has_inner) {
		to = next_cipher(s->srv);
		out->is_stable = false;
	} else if (sw_shard_seal(&s->job->shard, h, cell, r->era)) {
		if (!sw_era_is_old(era, r->era)) {
			sw_result_set_era(h, era);
			return;
		}
		sw_encrypt_result(&r->ciphers, era, h, to, to); /* decrypt */
	}
	sw_count(&s->srv->stats.result_ciphers, 1);
	sw_encrypt_result(&r->ciphers, r->era, h, out->payload, to);
	sw_result_set_era(h, r->era);
	out->payload = to;
}

/* Encrypt a RESULT of an encrypted session. */
static __attribute__((noinline)) void encrypt_result(
	struct sw_session *s, uint32_t cell, struct sw_tx_frame *out)
{
	void *to;

	if (sw_result_is_shared(&out->header)) {
		encrypt_shared(s, cell, out);
		return;
	}
	to = next_cipher(s->srv);
	sw_count(&s->srv->stats.result_ciphers, 1);
	sw_encrypt(s->peer.seal, &out->header, out->payload, to);
	out->payload = to;
	out->is_stable = false;
}

/* Complete a RESULT of a keyed session, except its tag. */
static inline void seal_result(
	struct sw_session *s, uint32_t cell, struct sw_tx_frame *out)
{
	uint8_t *hash;

	if (s->peer.seal->is_encrypted)
		encrypt_result(s, cell, out);
	hash = sw_frame_seal(out, s->peer.path, out->payload, out->is_stable,
		&s->srv->tagging);
	memcpy(hash, hash_of_result(s, &out->header, out->payload),
		SW_POLYVAL_BLOCK);
}

/* Send a result that sw_shard_take has built. */
static inline void send_result(struct sw_session *s, struct sw_space *space,
	uint32_t cell, struct sw_tx_frame *out, uint64_t now_ns)
{
	struct sw_header *h = &out->header;

	h->session = s->peer.far_id;
	h->head_crc = s->peer.seed;
	h->flags = s->peer.has_crc ? 0 : SW_FLAG_NO_CRC;
	sw_flow_send_in(&s->peer.flow, space, h, cell, now_ns);
	if (s->peer.seal)
		seal_result(s, cell, out);
	else
		sw_frame_fill_data(out, s->peer.path, 0);
}

/* The frames that tx_results has sent. */
struct sent_run {
	uint32_t n, bytes, n_answers;
};

/* Send up to @max - r->n results of the tensor at @order and of @class. */
static inline void send_some(struct sw_session *s, uint32_t order,
	uint8_t class, struct sw_tx_frame *out, uint32_t max,
	struct sent_run *r)
{
	struct sw_space *space = sw_flow_space(&s->peer.flow, class);
	uint32_t cells[SW_RUN], *cell = cells;
	struct sw_tx_frame *first = out + r->n, *end;
	uint64_t now_ns = s->srv->now_ns;

	end = first + sw_shard_take(&s->job->shard, s->member, order, first,
			      cells, max - r->n);
	for (struct sw_tx_frame *f = first; f != end; f++) {
		send_result(s, space, *cell++, f, now_ns);
		r->bytes += f->payload_len;
	}
	r->n = (uint32_t)(end - out);
	r->n_answers += count_answers(first, end);
}

/* Return the order of the most urgent tensor with results for the session, if
 * it is of @class; else SW_BITMAP_NONE. */
static __attribute__((noinline)) uint32_t order_of_class(
	const struct sw_session *s, uint8_t class)
{
	const struct sw_shard *sh = &s->job->shard;
	uint32_t order = sw_bitmap_first(&sh->ready[s->member]);

	return sw_shard_class(sh, order) == class ? order : SW_BITMAP_NONE;
}

/* Return the order of the next result, after a result of @order and @class;
 * SW_BITMAP_NONE: the next result is of another class. */
static inline uint32_t next_order(
	const struct sw_session *s, uint32_t order, uint8_t class)
{
	return sw_bitmap_has(&s->job->shard.ready[s->member], order)
		       ? order
		       : order_of_class(s, class);
}

/* Return how many frames one session may get in a row.  If several jobs are
 * active, return 1: their windows share the port, and small windows suffer when
 * grants arrive in bursts.  Each of many members has few results at a time:
 * runs that take all of them would make later runs shorter. */
static uint32_t run_of(const struct sw_server *srv, const struct sw_drr *drr,
	uint32_t job_i, uint32_t max)
{
	bool is_shared = srv->active & (srv->active - 1);
	uint32_t n_members = srv->jobs[job_i].n_members;

	if (is_shared || !sw_drr_is_alone(drr, job_i))
		return 1;
	return (uint32_t)sw_min64(
		max, n_members > MANY_MEMBERS ? SW_RUN / 2 : SW_RUN);
}

/* Return whether the payload stays valid while further frames of this tx are
 * built. */
static inline bool stays(
	const struct sw_server *srv, const struct sw_tx_frame *f)
{
	const uint8_t *p = f->payload;

	return f->is_stable ||
	       (p >= srv->ciphers[0] && p < srv->ciphers[SW_TX_BURST]);
}

/* Send results of one class to one session of the job whose turn it is.  These
 * results stay the most urgent, since no frame arrives meanwhile. */
static uint32_t tx_results(struct sw_server *srv, uint32_t port_i,
	struct sw_tx_frame *out, uint32_t max)
{
	struct sw_drr *drr = &srv->drr[port_i];
	uint32_t job_i = sw_drr_take(drr), order;
	struct sent_run r = {0};
	struct sw_due *due;
	struct sw_session *s;
	uint8_t class;
	bool is_turn;

	if (job_i == SW_MAX_JOBS)
		return 0;
	due = &srv->jobs[job_i].due[port_i];
	s = srv->sessions[sw_due_take_data(due, NULL, &is_turn)];
	order = order_to_send(s, is_turn);
	class = (uint8_t)sw_shard_class(&s->job->shard, order);
	sw_flow_give(&s->peer.flow);
	max = is_turn ? 1
		      : 1 + sw_due_run(due, run_of(srv, drr, job_i, max) - 1);
	max = sw_flow_room(&s->peer.flow, class, max);
	srv->tagging.seal = s->peer.seal;
	do {
		send_some(s, order, class, out, max, &r);
		order = next_order(s, order, class);
	} while (order != SW_BITMAP_NONE && r.n < max &&
		 stays(srv, &out[r.n - 1]));
	if (srv->tagging.n)
		sw_frames_tag(&srv->tagging);
	sw_frames_note(&srv->stats, r.n, r.bytes + r.n * SW_HEAD_BYTES);
	sw_count(&srv->stats.results, r.n);
	sw_count(&srv->stats.result_bytes, r.bytes);
	sw_count(&srv->stats.class_tx_frames[class], r.n);
	sw_count(&srv->stats.class_tx_bytes[class], r.bytes);
	s->job->shard.result_bytes[s->member] += r.bytes;
	sw_flow_answered(&s->peer.flow, class, r.n_answers, srv->now_ns);
	sw_drr_charge(drr, job_i, r.bytes + r.n * SW_HEAD_BYTES);
	sw_due_note_run(due, r.n - 1);
	sw_session_note_timer(s);
	if (is_turn || order == SW_BITMAP_NONE ||
		!sw_flow_can_send(&s->peer.flow, class))
		sw_session_refresh(s);
	return r.n;
}

/* Send runs until a payload is not stable: the next frame may overwrite its
 * memory. */
static uint32_t tx_data(struct sw_server *srv, uint32_t port_i,
	struct sw_tx_frame *out, uint32_t max)
{
	uint32_t n = 0, more;

	do {
		more = tx_results(srv, port_i, out + n, max - n);
		n += more;
	} while (more && n < max && stays(srv, &out[n - 1]));
	return n;
}

uint32_t sw_server_tx(struct sw_engine *engine, uint64_t now_ns,
	uint32_t port_i, struct sw_tx_frame *out, uint32_t max)
{
	struct sw_server *srv = (struct sw_server *)engine;
	uint32_t n;

	srv->now_ns = now_ns;
	if (tx_reply(srv, port_i, out))
		return 1;
	n = tx_controls(srv, port_i, out, max);
	return n || engine->holds_data ? n : tx_data(srv, port_i, out, max);
}
