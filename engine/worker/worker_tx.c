/* worker_tx.c - send a worker's frames: owed control frames, then pushes.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/worker/worker_int.h"

#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/ticks.h"
#include "engine/wire/cipher.h"
#include "engine/worker/faults.h"
#include "engine/worker/probe.h"
#include "engine/worker/query.h"
#include "engine/worker/stream.h"
#include "engine/worker/tensors.h"
#include "engine/worker/todo.h"
#include "engine/worker/tuning.h"
#include "sum/sum.h"

/* Refusals by CRC before a chunk is pushed from a copy. */
enum { REFUSED_MAX = 3 };

/* Return the quanta that still wait to be pushed at the link. */
static uint64_t backlog_of(const struct sw_link *l)
{
	return l->n_todo * (uint64_t)sw_flow_frame(&l->peer.flow);
}

/* A builder returns 0 if it has nothing to send.  Builders without a type here
 * choose the type themselves. */
static const struct builder {
	uint8_t type;
	uint32_t (*build)(
		struct sw_worker *, struct sw_link *, struct sw_header *);
} builders[SW_N_OWED] = {
	[SW_OWE_REQUEST] = {0, sw_link_build_request},
	[SW_OWE_END] = {0, sw_link_build_end},
	[SW_OWE_TUNE] = {SW_TUNE, sw_tuning_build},
	[SW_OWE_PATHS] = {SW_PATHS, sw_link_build_paths},
	[SW_OWE_PROBE] = {SW_PROBE, sw_link_build_probe},
	[SW_OWE_DECLARE] = {SW_DECLARE, sw_link_build_declare},
	[SW_OWE_QUERY] = {SW_QUERY, sw_query_build},
};

/* Return the next link in turn that owes a frame; take links that owe none out
 * of the set. */
static struct sw_link *link_that_owes(struct sw_worker *w, struct sw_due *due)
{
	uint32_t i;

	while ((i = sw_due_take_turn(due, SW_CLASS_CTL)) < SW_MAX_SESSIONS) {
		struct sw_link *l = &w->links[i];

		if (l->state == SW_LINK_CLOSED || l->state == SW_LINK_IDLE)
			l->peer.owed = 0;
		if (sw_peer_may_send(&l->peer))
			return l;
		sw_due_put(due, SW_CLASS_CTL, i, false);
	}
	return NULL;
}

uint32_t sw_worker_build_control(
	struct sw_peer *p, enum sw_owed what, struct sw_header *h)
{
	const struct builder *b = &builders[what];
	struct sw_link *l = sw_link_of(p);
	uint32_t bytes;

	if (!sw_link_has_session(l))
		h->session = h->head_crc = 0;
	h->type = b->type;
	bytes = b->build ? b->build(l->worker, l, h) : 0;
	if (!bytes) {
		h->type = SW_KEEPALIVE;
		h->flags = sw_backlog_flags(backlog_of(l));
	}
	return bytes;
}

static uint32_t tx_control(
	struct sw_worker *w, uint32_t port_i, struct sw_tx_frame *out)
{
	struct sw_link *l = link_that_owes(w, &w->due[port_i]);

	if (!l)
		return 0;
	sw_peer_tx(&l->peer, w->payload, out);
	if (out->header.type != SW_ACK)
		sw_peer_wake(&l->peer, 0);
	return 1;
}

/* Sum the local ranks' bytes from @at on into a made payload. */
static const uint8_t *sum_locals(struct sw_worker *w,
	const struct sw_wtensor *t, uint64_t at, uint32_t bytes)
{
	const struct sw_sum_ops *ops = &w->env->sum->ops[t->decl.dtype];
	uint32_t n = bytes / t->elem_bytes;
	uint8_t *made = sw_worker_make(w);
	void *to = ops->round ? (void *)w->sums : made;

	for (uint32_t i = 0; i < w->n_local; i++)
		w->sources[i] = t->locals[i].from + at;
	SW_TIMED(w->stats.ticks_sum, ops->sum(to, w->sources, w->n_local, n);
		 if (ops->round) ops->round(made, to, n));
	return made;
}

/* Return this node's contribution to a chunk: in a buffer, or summed into a
 * made payload (*is_stable false). */
static inline const uint8_t *local_bytes(struct sw_worker *w,
	const struct sw_wtensor *t, uint32_t chunk, uint32_t bytes,
	bool *is_stable)
{
	uint64_t at = (uint64_t)chunk * t->chunk_bytes;

	*is_stable = w->n_local == 1 || t->op == SW_ROUND_COPY;
	if (!*is_stable)
		return sum_locals(w, t, at, bytes);
	return t->locals[w->n_local == 1 ? 0 : t->root - w->first].from + at;
}

/* Copy a chunk whose CRC its server refused several times: the process writes
 * it while it is pushed, and a copy cannot change under the CRC. */
static const uint8_t *copy_to_push(
	struct sw_worker *w, const uint8_t *p, uint32_t bytes, bool *is_stable)
{
	*is_stable = false;
	sw_count(&w->stats.push_copied, 1);
	return memcpy(sw_worker_make(w), p, bytes);
}

/* Note the CRC of a PUSH.  If it differs from that of the first PUSH, the
 * process has written the buffer. */
static void note_crc(
	struct sw_wtensor *t, uint32_t record, uint32_t crc, bool is_first)
{
	struct sw_wchunk *c = &t->chunks[record];

	if (is_first)
		c->crc = crc;
	else if (c->crc != crc)
		*(t->stream ? &t->stream->pieces[record].coll->is_edited
			    : &t->is_edited) = true;
}

/* Fill the header of a tensor's push; returns its bytes, NULL if it has none.
 */
static const uint8_t *fill(struct sw_worker *w, struct sw_wtensor *t,
	struct sw_part *p, uint32_t record, struct sw_header *h,
	bool *is_stable)
{
	h->round = t->round;
	h->chunk = sw_place_global_near(&p->near, &p->place, record - p->from);
	h->step = t->step;
	h->weight = t->gives;
	h->dtype = (uint8_t)t->decl.dtype;
	h->op = t->op;
	h->aux = t->root;
	h->payload_len = 0;
	if (!t->gives)
		return NULL;
	h->payload_len = (uint16_t)sw_wtensor_bytes(t, record);
	return local_bytes(w, t, h->chunk, h->payload_len, is_stable);
}

/* PUSHes that are not counted yet, and the retransmissions among them. */
struct pushed {
	uint32_t n, bytes, n_again, again_bytes;
};

static inline uint32_t first_bytes(const struct pushed *sum)
{
	return sum->bytes - sum->again_bytes;
}

static inline void note_sent(struct sw_worker *w, struct sw_wchunk *c,
	const struct sw_header *h, struct pushed *sum)
{
	sum->n++;
	sum->bytes += h->payload_len;
	if (c->n_sent) {
		sum->n_again++;
		sum->again_bytes += h->payload_len;
	}
	c->n_sent += c->n_sent < UINT8_MAX;
	c->psn = h->psn;
	c->t_ns = w->now_ns;
	c->state = SW_PUSHED;
}

static void count_pushed(struct sw_worker *w, struct pushed sum, uint32_t class)
{
	sw_count(&w->stats.retransmissions, sum.n_again);
	sw_count(&w->stats.push_folded, sum.n - sum.n_again);
	sw_count(&w->stats.push_bytes, first_bytes(&sum));
	sw_count(&w->stats.class_tx_frames[class], sum.n);
	sw_count(&w->stats.class_tx_bytes[class], sum.bytes);
}

static void count_frames(struct sw_worker *w, struct pushed sum, uint32_t class)
{
	count_pushed(w, sum, class);
	sw_frames_note(&w->stats, sum.n, sum.bytes + sum.n * SW_HEAD_BYTES);
}

/* Grant the credit that the server needs to send the result of this push. */
static inline void await(
	struct sw_link *l, const struct sw_wtensor *t, uint32_t record)
{
	if (!sw_flow_is_shared(&l->peer.flow))
		return;
	sw_todo_expect(l, t, record, true);
	sw_flow_give(&l->peer.flow);
}

static void await_run(struct sw_link *l, const struct sw_wtensor *t,
	const struct sw_header *h)
{
	uint32_t record;

	if (!sw_flow_is_shared(&l->peer.flow))
		return;
	for (uint32_t i = 0; i < h->stream.n; i++) {
		sw_stream_find(t, l, h->stream.j + i, &record);
		sw_todo_expect(l, t, record, true);
	}
	sw_flow_give(&l->peer.flow);
}

/* Ask by WANT for the result of a chunk to which this node gives nothing, and
 * for the results of its neighbours. */
static void want(struct sw_worker *w, struct sw_link *l, struct sw_wtensor *t,
	struct sw_tx_frame *out)
{
	struct sw_header *h = &out->header;
	struct pushed sum = {0};
	uint32_t record;

	h->type = SW_WANT;
	sw_stream_widen(l, t, h);
	await_run(l, t, h);
	sw_flow_send(&l->peer.flow, h, SW_CELL_WANT + h->stream.n, w->now_ns);
	for (uint32_t i = 0; i < h->stream.n; i++)
		note_sent(w, sw_stream_find(t, l, h->stream.j + i, &record), h,
			&sum);
	count_pushed(w, sum, t->class);
	sw_peer_build(&l->peer, out, NULL, true);
	out->way = l->peer.way;
}

/* Encrypt a PUSH into room of this tx, so that a buffer that the process writes
 * meanwhile is read only once. */
static const void *encrypt_push(struct sw_worker *w, struct sw_link *l,
	const void *payload, bool is_stable, struct sw_header *h)
{
	void *to = is_stable ? sw_worker_make(w) : (void *)payload;

	sw_encrypt(l->peer.seal, h, payload, to);
	return to;
}

/* Complete a PUSH of a keyed session, except its tag.  As with a CRC, a hash
 * that differs from the first one shows that the process has written the
 * buffer; the server cannot see that. */
static __attribute__((noinline)) void push_keyed(struct sw_worker *w,
	struct sw_link *l, struct sw_wtensor *t, uint32_t record,
	const void *payload, bool is_stable, struct sw_tx_frame *out)
{
	struct sw_wchunk *c = &t->chunks[record];
	struct sw_header *h = &out->header;
	struct sw_seal *seal = l->peer.seal;
	uint32_t some;
	uint8_t *hash;

	if (seal->is_encrypted && h->payload_len) {
		payload = encrypt_push(w, l, payload, is_stable, h);
		is_stable = false;
	}
	hash = sw_frame_seal(
		out, l->peer.path, payload, is_stable, &w->tagging);
	/* A process's buffer is stable, and is pushed from front to back. */
	if (is_stable)
		sw_polyval_far(&seal->tx_hash, payload, h->payload_len,
			(const void *)((uintptr_t)payload + h->payload_len),
			hash);
	else
		sw_polyval(&seal->tx_hash, payload, h->payload_len, hash);
	memcpy(&some, hash, sizeof(some));
	if (!seal->is_encrypted) {
		bool is_first = c->n_sent == 1;

		if (!is_first && c->crc != some)
			c->n_refused += c->n_refused < UINT8_MAX;
		note_crc(t, record, some, is_first);
	}
}

/* A run of PUSHes of one tensor to one link. */
struct run {
	struct sw_link *l;
	struct sw_wtensor *t;
	struct sw_part *p;
	struct sw_space *space; /* the tensor's class */
	struct pushed *sum;
};

static inline uint32_t crc_of(const struct sw_worker *w,
	const struct sw_header *h, const uint8_t *payload, bool is_stable)
{
	uint32_t seed = sw_epoch_seed(w->epoch);

	return is_stable ? sw_data_crc_far(seed, h, payload, h->payload_len)
			 : sw_data_crc(seed, h, payload, h->payload_len);
}

static inline void push_chunk(
	struct sw_worker *w, const struct run *r, struct sw_tx_frame *out)
{
	struct sw_link *l = r->l;
	struct sw_wtensor *t = r->t;
	uint32_t record = sw_todo_take(l, t, r->p);
	struct sw_wchunk *c = &t->chunks[record];
	struct sw_header *h = &out->header;
	bool is_stable = true;
	const uint8_t *payload;

	*h = (struct sw_header){.type = SW_PUSH,
		.flags = (uint8_t)((l->peer.has_crc ? 0 : SW_FLAG_NO_CRC) |
				   (c->n_sent ? SW_FLAG_RETX : 0)),
		.class = t->class,
		.session = l->peer.far_id,
		.head_crc = l->peer.seed,
		.key = t->key};
	payload = t->stream ? sw_stream_fill(t, record, h, &is_stable)
			    : fill(w, t, r->p, record, h, &is_stable);
	if (t->stream && !payload) {
		want(w, l, t, out);
		return;
	}
	if (c->n_refused >= REFUSED_MAX && payload && is_stable)
		payload = copy_to_push(w, payload, h->payload_len, &is_stable);
	if (payload)
		h->flags |= sw_backlog_flags(backlog_of(l));
	await(l, t, record);
	if (l->peer.has_crc) {
		SW_TIMED(w->stats.ticks_crc_push,
			h->payload_crc = crc_of(w, h, payload, is_stable));
		note_crc(t, record, h->payload_crc, !c->n_sent);
	}
	sw_flow_send_in(&l->peer.flow, r->space, h, record, w->now_ns);
	note_sent(w, c, h, r->sum);
	if (l->peer.seal) {
		push_keyed(w, l, t, record, payload, is_stable, out);
		out->way = l->peer.way;
		return;
	}
	out->payload = payload;
	out->is_stable = is_stable;
	sw_frame_fill_data(out, l->peer.path, l->peer.way);
}

/* Send at most @max frames of a run, which has at least one chunk.  Returns how
 * many: a WANT takes several chunks.  Not inline, so that values that the run
 * shares are not computed for each chunk. */
static __attribute__((noinline)) uint32_t push_some(struct sw_worker *w,
	const struct run *r, struct sw_tx_frame *out, uint32_t max)
{
	uint32_t n = 0;

	do
		push_chunk(w, r, &out[n++]);
	while (n < max && r->p->n_todo);
	return n;
}

/* Return the link's most urgent tensor; there must be one.  Within a class, a
 * tensor with a retransmission goes first. */
static struct sw_wtensor *most_urgent(
	const struct sw_worker *w, const struct sw_link *l)
{
	uint32_t again = sw_bitmap_first(&l->sets[SW_AGAIN]);
	struct sw_wtensor *t;

	if (again == SW_BITMAP_NONE)
		return l->next;
	t = &w->tensors[sw_orders_at(&w->orders, again)];
	return t->class == l->next->class ? t : l->next;
}

/* Return the tensor to push next at a link: the most urgent; in the link's turn
 * (@is_turn), the next tensor that has chunks. */
static struct sw_wtensor *tensor_to_push(
	struct sw_worker *w, struct sw_link *l, bool is_turn)
{
	struct sw_wtensor *t;

	if (!is_turn || sw_bitmap_is_empty(&l->sets[SW_TODO]))
		return most_urgent(w, l); /* listed tensors never starve */
	t = &w->tensors[sw_orders_at(&w->orders,
		sw_bitmap_turn(&l->sets[SW_TODO], &l->peer.turn_order))];
	return sw_flow_can_send(&l->peer.flow, t->class) ? t
							 : most_urgent(w, l);
}

/* Send a run of chunks of one tensor to one link, behind @n frames in @out.
 * While the tensor has more chunks, they stay the most urgent.  *sum counts the
 * pushes of *class.  Returns the new number of frames in @out. */
static uint32_t tx_run(struct sw_worker *w, uint32_t port_i,
	struct sw_tx_frame *out, uint32_t n, uint32_t max, struct pushed *sum,
	uint32_t *class)
{
	struct sw_due *due = &w->due[port_i];
	uint32_t i, bytes;
	struct sw_flow *flow;
	struct run r = {.sum = sum};
	bool is_turn;

	sw_links_refresh(w);
	i = sw_due_take_data(due, w->turn_keys, &is_turn);
	if (i == SW_MAX_SESSIONS)
		return n;
	r.l = &w->links[i];
	r.t = tensor_to_push(w, r.l, is_turn);
	r.p = &r.t->parts[i];
	if (*class != r.t->class && sum->n) {
		count_frames(w, *sum, *class);
		*sum = (struct pushed){0};
	}
	*class = r.t->class;
	bytes = first_bytes(sum);
	flow = &r.l->peer.flow;
	r.space = sw_flow_space(flow, r.t->class);
	sw_flow_give(flow);
	max = sw_min64(sw_min64(max - n, SW_RUN), r.p->n_todo);
	max = is_turn ? 1 : 1 + sw_due_run(due, max - 1);
	max = sw_flow_room(flow, r.t->class, max);
	w->made_at = w->made[n]; /* one room per frame */
	sw_tagging_for(&w->tagging, r.l->peer.seal);
	max = push_some(w, &r, &out[n], max);
	r.l->pushed_bytes += first_bytes(sum) - bytes;
	sw_link_touch(r.l);
	sw_due_note_run(due, max - 1);
	return n + max;
}

_Static_assert(
	(int)SW_TX_BURST <= (int)SW_RUN, "one pass tags the frames of a tx");

static uint32_t tx_pushes(struct sw_worker *w, uint32_t port_i,
	struct sw_tx_frame *out, uint32_t max)
{
	struct pushed sum = {0};
	uint32_t n = 0, class = 0, before;

	do {
		before = n;
		n = tx_run(w, port_i, out, n, max, &sum, &class);
	} while (n != before && n < max);
	sw_tagging_for(&w->tagging, NULL);
	if (!sum.n)
		return n;
	count_frames(w, sum, class);
	return n;
}

uint32_t sw_worker_tx(struct sw_engine *engine, uint64_t now_ns,
	uint32_t port_i, struct sw_tx_frame *out, uint32_t max)
{
	struct sw_worker *w = (struct sw_worker *)engine;

	w->now_ns = now_ns;
	if (tx_control(w, port_i, out))
		return 1;
	return engine->holds_data ? 0 : tx_pushes(w, port_i, out, max);
}
