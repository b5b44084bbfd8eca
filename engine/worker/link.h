/* link.h - a link to a server: its state, requests and answers.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_WORKER_LINK_H
#define SW_ENGINE_WORKER_LINK_H

#include "engine/base/bitmap.h"
#include "engine/base/bits.h"
#include "engine/base/error.h"
#include "engine/base/ticks.h"
#include "engine/peer/handshake.h"
#include "engine/peer/peer.h"
#include "engine/worker/probe.h"
#include "engine/worker/wtensor.h"

enum {
	SW_LINK_WORDS = (SW_N_TODO_SETS + 2) * (SW_TENSORS / 64 + 1),
	SW_LEAVE_FOR_NS = 2000000000, /* how long LEAVING may last */
};

/* A link joins a worker and one server.  It repeats HELLO, JOIN and LEAVE until
 * the answer arrives.  Link 0 leads to the coordinator; the other links open
 * when the coordinator reports that all members have joined. */
enum sw_link_state {
	SW_LINK_IDLE, /* waits for PROBING from the coordinator */
	SW_LINK_HELLO,
	SW_LINK_JOIN,
	SW_LINK_OPEN,
	SW_LINK_LEAVING,
	SW_LINK_CLOSED,
};

/* The fate of a RESULT. */
enum sw_receipt {
	SW_NOT_TAKEN, /* invalid: not acknowledged */
	SW_HAD_IT,    /* a duplicate: acknowledged */
	SW_TAKEN,     /* written: acknowledged */
};

struct sw_link {
	struct sw_worker *worker;
	enum sw_link_state state;
	/* Its place in the list of servers; 0: the coordinator. */
	uint32_t server_i;
	uint32_t n_todo;   /* chunks that wait to be pushed there */
	uint32_t n_folded; /* chunks in FOLDED */
	/* Payload bytes sent there, each once, and result bytes taken. */
	uint64_t pushed_bytes, taken_bytes;
	struct sw_wtensor *next; /* the tensor to push next */
	/* Tensors whose set of chunks here is not empty, by their order.
	 * The list of SW_TODO has tensors that started under a policy without
	 * priorities, in the order of their start. */
	struct sw_bitmap sets[SW_N_TODO_SETS];
	struct sw_wtensor *oldest, *newest;
	struct sw_peer peer; /* its index counts the lane's links */
	/* The fields below are seldom touched. */
	uint64_t nonce, cookie;
	uint32_t far_payload; /* the largest that the server's port carries */
	struct sw_probe probe;
	struct sw_ip here; /* our address on the path */
	/* When the next request leaves, and the pause after it. */
	uint64_t request_at_ns, request_wait_ns;
	/* When the worker may next ask a silent server whether it still knows
	 * the session. */
	uint64_t question_at_ns;
	uint32_t n_cookies;  /* COOKIEs received before the session opened */
	uint16_t n_probes;   /* source ports tried in this handshake */
	bool is_settled;     /* the source port is chosen */
	uint32_t n_requests; /* requests sent since the state changed */
	uint32_t n_declared; /* tensors declared there */
	uint32_t n_asked;    /* tensors in the DECLARE in flight */
	/* When the last QUERY left or the last result arrived, and how long
	 * after that the next QUERY leaves; a wait of 0 is computed from the
	 * round-trip time. */
	uint64_t query_from_ns, query_wait_ns;
	/* When the idle link returns its grant; 0: it is not idle. */
	uint64_t rest_at_ns;
	uint32_t n_queries;
	/* Where the search for late results continues: a tensor's index, and
	 * the index of its local chunk. */
	uint32_t query_tensor, query_local;
	struct sw_query queries[SW_QUERY_MAX];
	/* Streams with chunks that wait for their window here to move. */
	uint32_t n_blocked;
	/* Tensors whose END the server is owed, and streams whose CLOSE it is
	 * owed. */
	struct sw_bitmap ends, closes;
	uint64_t words[SW_LINK_WORDS]; /* memory of all sets */
	uint16_t udp;                  /* the server's UDP port, for messages */
	char name[SW_NAME_MAX];
	/* Frames have tags. Until the session is open: the handshake after the
	 * JOIN, its ephemeral key, and whether a MAC proves the COOKIE. */
	bool is_keyed, is_proven, is_trusted;
	struct sw_noise noise;
	uint8_t e[32];
};

static inline struct sw_link *sw_link_of(struct sw_peer *p)
{
	return (struct sw_link *)((char *)p - offsetof(struct sw_link, peer));
}

static inline void sw_link_owe(struct sw_link *l, enum sw_owed what)
{
	sw_peer_owe(&l->peer, what);
}

static inline bool sw_link_has_session(const struct sw_link *l)
{
	return l->state == SW_LINK_OPEN || l->state == SW_LINK_LEAVING;
}

/* sw_link_came - note that a result arrived, so the next QUERY waits the short
 * pause. */
static inline void sw_link_came(struct sw_link *l)
{
	l->query_from_ns = l->worker->now_ns;
	l->query_wait_ns = 0;
}

/* sw_link_touch - mark the link: its next push or its credit may have changed.
 */
static inline void sw_link_touch(struct sw_link *l)
{
	sw_bits_add(l->worker->touched, l->peer.index);
}

/* sw_worker_make - return room for the payload of a frame of this tx. */
static inline uint8_t *sw_worker_make(struct sw_worker *w)
{
	uint8_t *made = w->made_at;

	w->made_at += SW_MADE_BYTES;
	return made;
}

/* sw_link_knows - does the server have chunks of the tensor or stream, and has
 * it answered our declaration? */
static inline bool sw_link_knows(
	const struct sw_link *l, const struct sw_wtensor *t)
{
	return t->key != SW_KEY_NONE && t->number < l->n_declared &&
	       t->parts[l->peer.index].place.n_local;
}

/* sw_link_tensor - look up the tensor that a frame names; NULL if it is unknown
 * or freed.  Counts an unknown one.
 * sw_link_has - does @chunk of a tensor, not of a stream, lie at the link, and
 * at which record?  Counts if it does not. */
static inline struct sw_wtensor *sw_link_tensor(struct sw_link *l, uint32_t key)
{
	struct sw_wtensor *t = sw_tensor_of_key(l->worker, key);

	if (!t)
		sw_count(&l->worker->stats.rx_key,
			!sw_key_is_past(l->worker, key));
	return t;
}

static inline bool sw_link_has(const struct sw_link *l,
	const struct sw_wtensor *t, uint32_t chunk, uint32_t *record)
{
	*record = sw_part_record(&t->parts[l->peer.index], chunk);
	if (*record != SW_PLACE_NONE)
		return true;
	sw_count(&l->worker->stats.rx_chunk, 1);
	return false;
}

/* sw_result_fits - does a RESULT have @bytes and a possible weight?  Counts a
 * failure. */
static inline bool sw_result_fits(
	struct sw_worker *w, const struct sw_header *h, uint32_t bytes)
{
	if (h->payload_len != bytes) {
		sw_count(&w->stats.rx_length, 1);
		return false;
	}
	if (h->weight - 1u >= w->size) {
		sw_count(&w->stats.rx_weight, 1);
		return false;
	}
	return true;
}

/* sw_result_verify - does the payload match the CRC in its header?  Counts a
 * failure. */
static inline bool sw_result_verify(
	struct sw_link *l, const struct sw_header *h, const uint8_t *payload)
{
	struct sw_worker *w = l->worker;
	uint32_t crc = h->payload_crc;

	if (l->peer.has_crc)
		SW_TIMED(w->stats.ticks_crc_in,
			crc = sw_data_crc_far(sw_epoch_seed(w->epoch), h,
				payload, h->payload_len));
	if (crc != h->payload_crc)
		sw_count(&w->stats.rx_payload_crc, 1);
	return crc == h->payload_crc;
}

/* sw_link_request - send the request of the link's new state at once, or cancel
 * the pending one if that state has none. */
void sw_link_request(struct sw_worker *w, struct sw_link *l);

/* sw_link_start - begin the handshake with HELLO. */
void sw_link_start(struct sw_worker *w, struct sw_link *l);

/* sw_link_build_request - build the request that is due; returns payload bytes.
 */
uint32_t sw_link_build_request(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h);

/* sw_link_tick_rest - give the rest of the grant back to the server when
 * nothing was pushed for rto_min, so that other workers can use it; returns
 * when to look again. */
uint64_t sw_link_tick_rest(struct sw_worker *w, struct sw_link *l);

/* sw_link_rx - handle a frame of the handshake or the session's control.  The
 * caller has checked @h and the payload's CRC.  Returns false if the type
 * belongs to neither. */
bool sw_link_rx(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload);

/* sw_link_on_status - take STATUS (status.c). */
void sw_link_on_status(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload);

/* sw_server_error - return the error that a server named; valid ones are
 * negative. */
static inline int sw_server_error(int err)
{
	return err < 0 ? err : SW_EPROTO;
}

/* sw_link_tick - run the timers of the handshake and of liveness. */
uint64_t sw_link_tick(struct sw_worker *w, struct sw_link *l);

/* --- with a secret --- */

/* sw_link_is_true - at a worker with a secret, return whether the frame may be
 * the server's.  It judges frames of the handshake; sw_peer_run_true
 * judges all other frames later.
 * sw_link_is_handshake - does the frame belong to the handshake, so that it has
 * CRCs, although the link is keyed?
 * sw_link_on_handshake - handle such a frame.
 * sw_link_forget_keys - wipe the keys of the session. */
bool sw_link_is_true(struct sw_worker *w, struct sw_link *l,
	const struct sw_rx_frame *f, struct sw_header *h);
bool sw_link_is_handshake(const struct sw_link *l, const struct sw_header *h);
void sw_link_on_handshake(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload);
void sw_link_forget_keys(struct sw_link *l);

#endif
