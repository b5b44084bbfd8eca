/* link.h - what joins a worker and one server.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The worker asks, the server answers: HELLO, JOIN, DECLARE, TUNE and LEAVE are
 * repeated with growing pauses until their answer is there.  Link 0 is the
 * coordinator; the others are opened when it says that the job runs.
 */
#ifndef SW_LINK_H
#define SW_LINK_H

#include "engine/base/bitmap.h"
#include "engine/peer/peer.h"
#include "engine/worker/worker.h"

enum sw_link_state {
	SW_LINK_IDLE, /* waits for the coordinator to say RUNNING */
	SW_LINK_HELLO,
	SW_LINK_JOIN,
	SW_LINK_OPEN,
	SW_LINK_LEAVING,
	SW_LINK_CLOSED,
};

struct sw_link {
	struct sw_peer peer; /* index: among the links of the lane */
	uint32_t server_i;   /* in the list of servers; 0 is the coordinator */
	enum sw_link_state state;
	uint64_t nonce, cookie;
	uint64_t request_at_ns, request_wait_ns; /* next try */
	uint32_t n_cookies;                      /* until the session is open */
	uint16_t n_probes;   /* of our UDP ports, of a handshake */
	bool is_settled;     /* it stays with that one */
	uint32_t n_requests; /* since the last answer */
	uint16_t status_seq;
	uint32_t batch;      /* DECLARE frames answered */
	uint32_t n_declared; /* tensors declared there */
	uint32_t n_asked;    /* in the DECLARE that is open */
	uint64_t pull_at_ns, pull_wait_ns;
	uint32_t n_pulls;
	uint32_t pull_order, pull_local; /* where the next PULL goes on */
	struct sw_pull pulls[SW_PULL_MAX];
	uint32_t n_todo;        /* chunks to push there */
	struct sw_bitmap ready; /* tensors with todo, by order */
	struct sw_bitmap again; /* ranks with again */
	struct sw_bitmap late;  /* ranks with late */
	/* Dead tensors of which the server has not said yet that it knows. */
	struct sw_bitmap dead;
	struct sw_bitmap told; /* of which it was told */
	uint32_t dead_turn;    /* where the next MISMATCH goes on */
	uint64_t dead_at_ns;
	uint64_t *words;
	char name[SW_NAME_MAX];
};

static inline void sw_link_owe(
	struct sw_worker *w, struct sw_link *l, enum sw_owed what)
{
	sw_peer_owe(&l->peer, w->due, what);
}

/* --- link.c: what is asked --- */

/* sw_link_request - what is asked now changed: ask at once. */
void sw_link_request(struct sw_worker *w, struct sw_link *l);

/* sw_link_start - say HELLO to its server. */
void sw_link_start(struct sw_worker *w, struct sw_link *l);

/* sw_links_skip_refused - what the coordinator refused is declared nowhere. */
void sw_links_skip_refused(struct sw_worker *w);

/* sw_link_build_request - the request that is due; returns payload bytes. */
uint32_t sw_link_build_request(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h);

/* sw_link_tick_request - repeat it; returns when. */
uint64_t sw_link_tick_request(struct sw_worker *w, struct sw_link *l);

/* sw_link_next_dead - the tensor that the server is told of next, of those that
 * are dead and it has been declared; SW_BITMAP_NONE: it knows all. */
uint32_t sw_link_next_dead(const struct sw_link *l);

static inline bool sw_link_owes_dead(const struct sw_link *l)
{
	return sw_link_next_dead(l) != SW_BITMAP_NONE;
}

/* --- link_rx.c --- */

/* sw_link_rx - a frame of the handshake or the session's control.  @h and the
 * payload's CRC were checked.  Returns false when it is none of those. */
bool sw_link_rx(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload);

/* sw_link_tick - timers of the handshake and of liveness. */
uint64_t sw_link_tick(struct sw_worker *w, struct sw_link *l);

/* sw_probe_again - is another source port tried instead of joining from this
 * one?  (probe.c) */
bool sw_probe_again(
	struct sw_worker *w, struct sw_link *l, const struct sw_cookie *c);

/* --- mismatch.c --- */

/* sw_link_on_mismatch - a server says that a tensor is dead. */
void sw_link_on_mismatch(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload);
/* sw_link_tick_dead - say again what the server does not know yet. */
uint64_t sw_link_tick_dead(struct sw_worker *w, struct sw_link *l);
/* sw_link_build_mismatch - 0: there is nothing to say any more. */
uint32_t sw_link_build_mismatch(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h);

#endif
