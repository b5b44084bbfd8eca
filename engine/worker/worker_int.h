/* worker_int.h - what the files of a worker share: links, and their calls.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_WORKER_WORKER_INT_H
#define SW_ENGINE_WORKER_WORKER_INT_H

#include "engine/base/bitmap.h"
#include "engine/base/bits.h"
#include "engine/base/bytes.h"
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
 * when it says that all members have joined. */
enum sw_link_state {
	SW_LINK_IDLE, /* waits for the coordinator to say PROBING */
	SW_LINK_HELLO,
	SW_LINK_JOIN,
	SW_LINK_OPEN,
	SW_LINK_LEAVING,
	SW_LINK_CLOSED,
};

/* A check of a path while the job runs (path_check.c). */
struct sw_path_check {
	uint32_t n_tries; /* PROBEs sent: full, small, full, ... */
	uint32_t n_small; /* small ones that came back */
	bool is_good;     /* a full one came back */
};

/* sw_worker_peer, sw_worker_tensor - as struct sw_engine has them (peers.c). */
bool sw_worker_peer(
	const struct sw_engine *engine, uint32_t i, struct sw_engine_peer *out);
bool sw_worker_tensor(const struct sw_engine *engine, uint32_t i, uint32_t key,
	struct sw_engine_tensor *out);

struct sw_link {
	struct sw_worker *worker;
	enum sw_link_state state;
	/* Its place in the list of servers; 0: the coordinator. */
	uint32_t server_i;
	uint32_t n_todo;         /* chunks that wait to be pushed there */
	uint32_t n_folded;       /* chunks in FOLDED */
	struct sw_wtensor *next; /* the tensor that goes next */
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
	struct sw_path_check check;
	struct sw_ip here; /* our address on the path */
	/* When the next request leaves, and the pause after it. */
	uint64_t request_at_ns, request_wait_ns;
	uint32_t n_cookies;  /* COOKIEs received before the session opened */
	uint16_t n_probes;   /* source ports tried in this handshake */
	bool is_settled;     /* the source port is chosen */
	uint32_t n_requests; /* requests sent since the state changed */
	uint32_t n_declared; /* tensors declared there */
	uint32_t n_asked;    /* tensors in the DECLARE in flight */
	/* When the last QUERY left or the last result arrived, and how long
	 * after that the next QUERY leaves; a wait of 0 is set anew from the
	 * round-trip time. */
	uint64_t query_from_ns, query_wait_ns;
	/* When the idle link returns its grant; 0: it is not idle. */
	uint64_t rest_at_ns;
	uint32_t n_queries;
	/* Where the search for late results continues: a tensor's index, a
	 * local chunk of it. */
	uint32_t query_tensor, query_local;
	struct sw_query queries[SW_QUERY_MAX];
	/* Streams with chunks that wait for their window here to move. */
	uint32_t n_blocked;
	/* Tensors whose END the server is owed, and streams whose CLOSE it is
	 * owed. */
	struct sw_bitmap ends, closes;
	uint64_t words[SW_LINK_WORDS]; /* memory of these sets */
	uint16_t udp;                  /* the server's UDP port, for messages */
	char name[SW_NAME_MAX];
	/* Frames have tags. Until the session is open: the handshake after the
	 * JOIN, its ephemeral key, and whether a MAC proves the COOKIE. */
	bool is_keyed, is_proven;
	struct sw_noise noise;
	uint8_t e[32];
};

static inline void sw_link_owe(
	struct sw_worker *w, struct sw_link *l, enum sw_owed what)
{
	sw_peer_owe(&l->peer, w->due, what);
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
	sw_count(&l->worker->stats.rx_chunk, *record == SW_PLACE_NONE);
	return *record != SW_PLACE_NONE;
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
	if (h->weight == 0 || h->weight > w->size) {
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

/* --- what a secret changes: link.c, and link_rx.c for the handshake --- */

/* sw_link_path - return the addresses of both ends.
 * sw_link_is_true - is a frame that is said to be the link's its server's?  At
 * a worker with a secret.
 * sw_link_is_handshake - does the frame belong to the handshake, so that it has
 * CRCs, although the link is keyed?
 * sw_link_on_handshake - handle it.
 * sw_link_forget_keys - forget those of the session. */
struct sw_hand_path sw_link_path(const struct sw_link *l);
bool sw_link_is_true(struct sw_worker *w, struct sw_link *l,
	const struct sw_rx_frame *f, struct sw_header *h);
bool sw_link_is_handshake(const struct sw_link *l, const struct sw_header *h);
void sw_link_on_handshake(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload);
void sw_link_forget_keys(struct sw_link *l);

/* --- work on many tensors, a bounded part of it in each turn --- */

/* sw_keys_some - return how many tensors may get their keys in one turn.  The
 * work grows with the links, since each tensor has a part at each link. */
static inline uint32_t sw_keys_some(const struct sw_worker *w)
{
	return 1 + 256 / w->n_links;
}

/* sw_wtensor_set_open - note whether something of the tensor is open. */
static inline void sw_wtensor_set_open(struct sw_wtensor *t, bool is_open)
{
	t->is_open = is_open;
	if (is_open)
		sw_bitmap_add(&t->worker->open, t->index);
	else
		sw_bitmap_remove(&t->worker->open, t->index);
}

/* sw_sweep - call @one for the tensors in @set, lowest index first, up to a
 * turn's share of work.  Returns the work of all calls.  @one returns its own,
 * and removes the tensor from the set when nothing is left. */
enum { SW_SWEEP_BURST = 64 };
static inline uint32_t sw_sweep(struct sw_worker *w,
	const struct sw_bitmap *set,
	uint32_t (*one)(struct sw_worker *w, struct sw_wtensor *t))
{
	uint32_t n = 0, i;

	while (n < SW_SWEEP_BURST &&
		(i = sw_bitmap_first(set)) != SW_BITMAP_NONE)
		n += one(w, &w->tensors[i]);
	return n;
}

/* --- worker_rx.c --- */

/* sw_worker_frames - take a burst of received frames.
 * sw_worker_on_fate - note the fate of frames of link @ctx, for its flow. */
void sw_worker_frames(
	struct sw_worker *w, const struct sw_rx_frame *frames, uint32_t n);
void sw_worker_on_fate(void *ctx, const struct sw_sent *const *sent, uint32_t n,
	enum sw_fate fate);

/* --- worker_tx.c: the engine's call (engine/loop/engine.h) --- */

uint32_t sw_worker_tx(struct sw_engine *engine, uint64_t now_ns,
	uint32_t port_i, struct sw_tx_frame *out, uint32_t max);

/* --- link.c: requests to a server --- */

/* sw_link_request - send the request of the link's new state at once, or cancel
 * the pending one if that state has none. */
void sw_link_request(struct sw_worker *w, struct sw_link *l);

/* sw_link_draw_nonce - draw a nonce for a new session, which also seeds its
 * header CRCs.
 * sw_link_start - begin the handshake with HELLO. */
void sw_link_draw_nonce(struct sw_worker *w, struct sw_link *l);
void sw_link_start(struct sw_worker *w, struct sw_link *l);

/* sw_link_build_request - build the request that is due; returns payload bytes.
 */
uint32_t sw_link_build_request(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h);

/* sw_link_probe - begin to probe the path of an open link. Does nothing once
 * the job's payload is settled.
 * sw_link_on_probe - take an answer.
 * sw_link_tick_probe - try again, or a smaller size. Returns when to call it
 * again.
 * sw_worker_carries - return the payload that all paths of the lane carry, or 0
 * while some are not probed.
 * sw_worker_use_payload - the job's payload is @payload. */
void sw_link_probe(struct sw_worker *w, struct sw_link *l);
uint32_t sw_link_build_probe(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h);
void sw_link_on_probe(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload);
uint64_t sw_link_tick_probe(struct sw_worker *w, struct sw_link *l);
uint32_t sw_worker_carries(const struct sw_worker *w);
uint32_t sw_link_build_paths(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h);
void sw_worker_use_payload(struct sw_worker *w, uint32_t payload);

/* --- path_check.c --- */

/* sw_paths_doubt_ns - return how long a tensor may lack results before the
 * paths are checked.
 * sw_paths_check - check them while @is_slow, a tensor does; called in each
 * sweep (sw_stall_tick). Fails the worker if a path stops carrying the job's
 * payload, within dead_after.
 * sw_link_build_check, sw_link_on_check - build the next PROBE; take an answer.
 */
uint64_t sw_paths_doubt_ns(const struct sw_worker *w);
void sw_paths_check(struct sw_worker *w, bool is_slow);
uint32_t sw_link_build_check(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h);
void sw_link_on_check(
	struct sw_worker *w, struct sw_link *l, const struct sw_header *h);

/* sw_link_declare - owe the server a DECLARE if tensors are left to declare
 * there and it has answered the last DECLARE.
 * sw_link_build_declare - build it; returns 0 if no tensor is left. */
void sw_link_declare(struct sw_worker *w, struct sw_link *l);
uint32_t sw_link_build_declare(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h);

/* sw_link_build_tune - build the TUNE that asks for worker->tuning.wanted. */
uint32_t sw_link_build_tune(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h);

/* sw_link_tick_request - repeat the request if it is due; returns when to call
 * again. */
uint64_t sw_link_tick_request(struct sw_worker *w, struct sw_link *l);

/* sw_link_tick_rest - return what is left of the server's grant when nothing
 * was pushed for rto_min, so that other workers can use it; returns when to
 * look again. */
uint64_t sw_link_tick_rest(struct sw_worker *w, struct sw_link *l);

/* sw_link_is_acked - has the server acknowledged all ENDs and CLOSEs that it
 * was owed? */
static inline bool sw_link_is_acked(const struct sw_link *l)
{
	return sw_bitmap_is_empty(&l->ends) && sw_bitmap_is_empty(&l->closes) &&
	       sw_control_is_idle(&l->peer.control);
}

/* --- link_rx.c: frames from a server --- */

/* sw_link_rx - handle a frame of the handshake or the session's control.  The
 * caller has checked @h and the payload's CRC.  Returns false if the type
 * belongs to neither. */
bool sw_link_rx(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload);

/* sw_link_tick - run the timers of the handshake and of liveness. */
uint64_t sw_link_tick(struct sw_worker *w, struct sw_link *l);

/* --- query.c --- */

/* sw_query_at - return when to look for late results at the link.  The pause
 * doubles while nothing arrives, so that a straggler costs few bytes. */
static inline uint64_t sw_query_at(const struct sw_worker *w, struct sw_link *l)
{
	if (!l->n_folded && !l->n_blocked && !w->is_still)
		return UINT64_MAX;
	if (!l->query_wait_ns)
		l->query_wait_ns = sw_max64(
			4 * sw_flow_srtt(&l->peer.flow), w->params.query_min);
	return l->query_from_ns + l->query_wait_ns;
}

/* sw_query_search - look for some, and owe a QUERY about those found.
 * sw_query_tick - do so if that time has come; returns when to call again.
 * sw_query_build - build that QUERY; returns payload bytes.
 * sw_query_answered - take the server's ANSWER. */
uint64_t sw_query_search(struct sw_worker *w, struct sw_link *l);
static inline uint64_t sw_query_tick(struct sw_worker *w, struct sw_link *l)
{
	uint64_t at = sw_query_at(w, l);

	if (l->peer.owed & 1u << SW_OWE_QUERY)
		return UINT64_MAX; /* until the QUERY has left */
	return w->now_ns < at ? at : sw_query_search(w, l);
}

uint32_t sw_query_build(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h);
void sw_query_answered(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload);

/* --- faults.c --- */

/* sw_worker_end - note that the worker leaves, with the fault that LEAVE has.
 */
void sw_worker_end(struct sw_worker *w, const struct sw_fault *why);

/* sw_worker_fail_for - note that the job fails: every open push_pull ends with
 * the fault's error, and the servers are told.
 * sw_worker_fail - do so for the reason @fmt. */
void sw_worker_fail_for(struct sw_worker *w, const struct sw_fault *why);
void sw_worker_fail(struct sw_worker *w, int err, uint32_t key, const char *fmt,
	...) __attribute__((format(printf, 4, 5)));

/* sw_tensor_kill - note that the life of @t ends from @round on for @why: these
 * rounds of the tensor fail, or all streams of the group; the other lanes and
 * the servers are told. */
void sw_tensor_kill(struct sw_worker *w, struct sw_wtensor *t, uint32_t round,
	const struct sw_fault *why);

/* sw_stream_propose - ask the coordinator to end the group of stream @t.  It
 * may name another reason that came first; the group ends with the reason that
 * the coordinator sends. */
void sw_stream_propose(
	struct sw_worker *w, struct sw_wtensor *t, const struct sw_fault *why);

/* sw_stream_compare - if stream @t makes no progress, kill it if local ranks of
 * its group wait in two of its streams under one number.  Returns whether it
 * makes no progress; then QUERY asks the servers the same (w->is_still). */
bool sw_stream_compare(struct sw_worker *w, struct sw_wtensor *t);

/* sw_link_declared - note that @l knows the first @n tensors.
 * sw_link_close - owe the server CLOSE of the group whose life lies in @slot.
 * sw_link_knows_closed - has the server acknowledged that, or does it not know
 * the group? */
void sw_link_declared(struct sw_link *l, uint32_t n);
void sw_link_close(struct sw_link *l, const struct sw_wtensor *slot);
bool sw_link_knows_closed(
	const struct sw_link *l, const struct sw_wtensor *slot);

/* sw_link_on_end - handle END: a server says that a tensor is dead. */
void sw_link_on_end(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload);
/* sw_link_build_end - build the next END or CLOSE; returns 0 if none is due. */
uint32_t sw_link_build_end(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h);

/* --- group_end.c --- */

/* sw_dead_released - queue the ended group of @t, to end its collectives. Lane
 * 0 does so when all other lanes have released it, another lane at once.
 * sw_dead_work - end some of these in each turn; returns the work done. */
void sw_dead_released(struct sw_worker *w, const struct sw_wtensor *t);
uint32_t sw_dead_work(struct sw_worker *w);

/* sw_life_closed - note that all local ranks have closed the group whose life
 * lies in @slot, and tell the servers. */
void sw_life_closed(struct sw_worker *w, struct sw_wtensor *slot);

/* sw_stream_gone_work - free closed streams that all servers and lanes know to
 * be closed.  Looks at some in each turn; returns how many it freed. */
uint32_t sw_stream_gone_work(struct sw_worker *w);

/* --- tensors.c --- */

int sw_tensors_open(struct sw_worker *w);
void sw_tensors_close(struct sw_worker *w);
/* sw_tensors_keyed - give @t its key and its place on the line, as link 0 said.
 */
int sw_tensors_keyed(struct sw_worker *w, struct sw_wtensor *t, uint32_t key,
	uint32_t first);
/* sw_tensors_are_admitted - have all servers, in all lanes, admitted all
 * tensors? */
bool sw_tensors_are_admitted(const struct sw_worker *w);
/* sw_links_skip_refused - declare no tensor that the coordinator has refused.
 */
void sw_links_skip_refused(struct sw_worker *w);
/* sw_tensors_copy - declare, in another lane, tensors that lane 0 has declared
 * (@zero), up to w->n_wanted, some in each turn.  Returns how many. */
uint32_t sw_tensors_copy(struct sw_worker *w, const struct sw_wtensor *zero);
/* sw_tensor_follow - catch up, in another lane, with lane 0's words of @t. */
void sw_tensor_follow(struct sw_worker *w, struct sw_wtensor *t);

/* --- deaths.c --- */

/* sw_deaths_check_local - end the open round of @t if it needs a local rank
 * that has left or died.
 * sw_deaths_work - check some of the tensors in w->lacking; returns the work
 * done. */
void sw_deaths_check_local(struct sw_worker *w, struct sw_wtensor *t);
uint32_t sw_deaths_work(struct sw_worker *w);

/* sw_deaths_why - return why local rank @local is missing.  The worker keeps
 * the fault only of the local rank that died last. */
struct sw_fault sw_deaths_why(const struct sw_worker *w, uint32_t local);

/* sw_deaths_learn - take from STATUS which members are gone, and why the last
 * one is.
 * sw_deaths_check_members - end what is open of @t if it needs a gone member: a
 * stream any of its group, a tensor one of @awaited, which the servers named.
 */
void sw_deaths_learn(struct sw_worker *w, const struct sw_status *st);
void sw_deaths_check_members(
	struct sw_worker *w, struct sw_wtensor *t, uint64_t awaited);
/* For asynchronous jobs, where a death ends only what waits for the dead
 * member:
 * sw_deaths_on_wait - fail the worker if the server of @l waits in @t for
 * @awaited and one of them can send nothing.  Any lane calls it.
 * sw_deaths_tick - note which members can send nothing. */
void sw_deaths_on_wait(struct sw_worker *w, const struct sw_link *l,
	const struct sw_wtensor *t, uint64_t awaited);
void sw_deaths_tick(struct sw_worker *w);

/* --- coll.c --- */

/* sw_stream_local_work - do some chunks of the collectives whose ranks are all
 * local; returns how many. */
uint32_t sw_stream_local_work(struct sw_worker *w);

/* --- grow.c --- */

/* sw_grow_bytes - return the bytes of a buffer.
 * sw_grow_is_possible - can @lacks bytes be missing at its end?
 * sw_grow_say - in lane 0, publish how many chunks are written, and return it.
 * sw_grow_lacks - does the round wait for more of the buffer of @local? */
static inline uint64_t sw_grow_bytes(const struct sw_wtensor *t)
{
	return t->decl.n_elems * t->elem_bytes;
}

static inline bool sw_grow_is_possible(
	const struct sw_wtensor *t, uint64_t lacks)
{
	return lacks <= sw_grow_bytes(t) && lacks % t->elem_bytes == 0;
}

static inline uint32_t sw_grow_say(struct sw_wtensor *t)
{
	uint64_t there = sw_grow_bytes(t) - t->lacks;
	uint32_t n =
		t->lacks ? (uint32_t)(there / t->chunk_bytes) : t->n_chunks;

	atomic_store_explicit(&t->n_ready, n, memory_order_release);
	return n;
}

static inline bool sw_grow_lacks(const struct sw_wtensor *t, uint32_t local)
{
	return t->lacks && sw_bits_has(t->asked, local) &&
	       t->locals[local].lacks;
}

/* sw_granules_of - return how many granules a growing tensor of @bytes has. */
static inline uint32_t sw_granules_of(uint64_t bytes)
{
	return (uint32_t)((bytes + SW_GRANULE - 1) / SW_GRANULE);
}

/* sw_granules_held - note that this lane holds @chunk of a growing tensor.
 * sw_granules_tell - in lane 0, call events.summed if a granule was completed
 * since the last call; returns whether it did. */
void sw_granules_held(
	struct sw_worker *w, struct sw_wtensor *t, uint32_t chunk);
bool sw_granules_tell(struct sw_worker *w);

/* --- round.c --- */

/* sw_round_open - open a round as the first local rank asks for it, with its
 * operation. */
void sw_round_open(struct sw_worker *w, struct sw_wtensor *t, uint8_t op,
	uint16_t step, uint16_t root);

/* sw_round_start - begin the round when all local ranks have asked: count it,
 * tell the other lanes, give this lane's written chunks to the scheduler. */
void sw_round_start(struct sw_worker *w, struct sw_wtensor *t);

/* sw_round_extend - give the scheduler the chunks that were written since.
 * Does nothing if the round is over or dead. */
void sw_round_extend(struct sw_worker *w, struct sw_wtensor *t);

/* sw_round_held - end the round if all lanes are done: this lane holds all its
 * chunks. */
void sw_round_held(struct sw_worker *w, struct sw_wtensor *t);

/* sw_round_drop - cancel all that this lane still does for a dead round. */
void sw_round_drop(struct sw_worker *w, struct sw_wtensor *t);

/* sw_round_end - end the round for all local ranks that asked for it.
 * sw_rounds_end - end what is open when the worker has ended, some in each
 * turn; returns the work done. */
void sw_round_end(struct sw_worker *w, struct sw_wtensor *t, int err);
uint32_t sw_rounds_end(struct sw_worker *w);

/* sw_round_end_some - end the round of a tensor, or the oldest open collective
 * of a stream, with @err; returns an upper bound of the work, n_local. */
uint32_t sw_round_end_some(struct sw_worker *w, struct sw_wtensor *t, int err);

/* sw_missing_text (stall.c) - name the ranks that @t, or with @of_kin any
 * stream of its group, waits for: "rank 5 of 8", "ranks 1, 4-7 of 8", "a
 * server"; cut to @room bytes: "ranks 1, ... of 8".  Returns @out. */
enum { SW_MISSING_TEXT = 96, SW_MISSING_LEAST = 34 };
const char *sw_missing_text(const struct sw_worker *w,
	const struct sw_wtensor *t, bool of_kin, uint32_t room,
	char out[SW_MISSING_TEXT]);

/* sw_stall_tick (stall.c) - look for tensors without progress; warn about them
 * in one line, or give up at stall_limit.  Called when look.at_ns has come;
 * returns when to call again. */
uint64_t sw_stall_tick(struct sw_worker *w);

/* --- joining.c --- */

/* sw_worker_tick_joining - report what a joining worker waits for; fail at the
 * deadline.
 * sw_links_are_open - are all servers of this lane connected? */
void sw_worker_tick_joining(struct sw_worker *w);
bool sw_links_are_open(const struct sw_worker *w);

/* --- tuning.c --- */

/* sw_tuning_use - set this lane's scheduler, and tell the other lanes.  Errors:
 * SW_EINVAL (sw_sched_check says why). */
int sw_tuning_use(struct sw_worker *w, const struct sw_policy *policy,
	uint64_t part_bytes, uint64_t credit_bytes);
/* sw_tuning_credit - return this lane's part of the job's credit; 0: the
 * policy's. */
uint64_t sw_tuning_credit(const struct sw_worker *w,
	const struct sw_policy *policy, uint64_t credit_bytes);
/* sw_tuning_received - apply the job's tuning in STATUS, if it is newer than
 * ours. */
void sw_tuning_received(struct sw_worker *w, const struct sw_status *st);

/* --- lane.c: what lanes tell each other (lane.h) --- */

/* sw_lane_take_commands - in another lane, take what lane 0 says.
 * sw_lane_take_reports - in lane 0, take what a lane says.  Both take some and
 * return the work done. */
uint32_t sw_lane_take_commands(struct sw_worker *w);
uint32_t sw_lane_take_reports(struct sw_worker *w, uint32_t lane);

/* sw_lane_say (faults.c) - tell the user of a state or a line; another lane
 * does so through lane 0. */
void sw_lane_say(struct sw_worker *w, int err, const char *text);

/* sw_lanes_command - set bits at all other lanes, in lane 0.
 * sw_lanes_declare - say, in lane 0, that tensors have keys.
 * sw_lane_report - set bits at lane 0, in another lane. */
static inline void sw_lanes_command(struct sw_worker *w, uint32_t bits)
{
	for (uint32_t i = 0; i < w->n_others; i++)
		atomic_fetch_or(&w->lanes[i].commands.bits, bits);
}

static inline void sw_lanes_declare(struct sw_worker *w)
{
	w->n_declaring = w->n_others;
	for (uint32_t i = 0; i < w->n_others; i++)
		atomic_store(&w->lanes[i].n_wanted, w->n_tensors);
	sw_lanes_command(w, SW_LANE_DECLARE);
}

static inline void sw_lane_report(struct sw_worker *w, uint32_t bits)
{
	atomic_fetch_or(&w->lanes->reports.bits, bits);
}

/* sw_lanes_all - return the bits of all other lanes.
 * sw_lanes_tell - raise a tensor's flag in lane 0 at some @lanes, a bit each,
 * after a word of it has changed.
 * sw_lane_tell - raise it in lane 0 at all others, in another lane at lane 0.
 */
static inline uint16_t sw_lanes_all(const struct sw_worker *w)
{
	return (uint16_t)((1u << w->n_others) - 1);
}

static inline void sw_lanes_tell(
	struct sw_worker *w, const struct sw_wtensor *t, uint32_t lanes)
{
	for (; lanes; lanes &= lanes - 1)
		sw_flags_raise(&w->lanes[__builtin_ctz(lanes)].commands.tensors,
			t->index);
}

static inline void sw_lane_tell(struct sw_worker *w, const struct sw_wtensor *t)
{
	if (w->lane_i)
		sw_flags_raise(&w->lanes->reports.tensors, t->index);
	else
		sw_lanes_tell(w, t, sw_lanes_all(w));
}

/* sw_lane_dead - say that a tensor is dead.  For a stream, another lane passes
 * on the server's reason, and lane 0 decides. */
static inline void sw_lane_dead(struct sw_worker *w, struct sw_wtensor *slot)
{
	atomic_store(&slot->said.dead_from, slot->own_life.from);
	sw_lane_tell(w, slot);
}

#endif
