/* worker_int.h - the inside of a worker: its tensors, links, rounds, lanes.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_WORKER_WORKER_INT_H
#define SW_ENGINE_WORKER_WORKER_INT_H

#include "engine/base/bitmap.h"
#include "engine/base/bits.h"
#include "engine/base/ticks.h"
#include "engine/peer/peer.h"
#include "engine/worker/wtensor.h"

enum {
	SW_LINK_WORDS =
		SW_N_TODO_SETS * (SW_ORDERS / 64 + SW_ORDERS / 4096 + 1) +
		2 * (SW_TENSORS / 64 + 1),
	SW_LEAVE_FOR_NS = 2000000000, /* LEAVING, at most */
};

/* What joins a worker and one server.  HELLO, JOIN and LEAVE are repeated with
 * growing pauses until their answer is there.  Link 0 is the coordinator; the
 * others are opened when it says that the job runs. */
enum sw_link_state {
	SW_LINK_IDLE, /* waits for the coordinator to say RUNNING */
	SW_LINK_HELLO,
	SW_LINK_JOIN,
	SW_LINK_OPEN,
	SW_LINK_LEAVING,
	SW_LINK_CLOSED,
};

struct sw_link {
	struct sw_worker *worker;
	enum sw_link_state state;
	uint32_t server_i; /* in the list of servers; 0 is the coordinator */
	uint32_t n_todo;   /* chunks to push there */
	struct sw_wtensor *next; /* the most urgent of those that have some */
	/* Tensors of which a part's set has members, by order. */
	struct sw_bitmap sets[SW_N_TODO_SETS];
	struct sw_peer peer; /* index: among the links of the lane */
	/* What follows is seldom touched. */
	uint64_t nonce, cookie;
	uint64_t request_at_ns, request_wait_ns; /* next try */
	uint32_t n_cookies;                      /* until the session is open */
	uint16_t n_probes;   /* of our UDP ports, of a handshake */
	bool is_settled;     /* it stays with that one */
	uint32_t n_requests; /* since the last answer */
	uint32_t n_declared; /* tensors declared there */
	uint32_t n_asked;    /* in the DECLARE that is open */
	/* When the last QUERY left or the last result came, and how long after
	 * it the next QUERY leaves; 0: as after a result. */
	uint64_t query_from_ns, query_wait_ns;
	uint64_t rest_at_ns; /* it returns its grant; 0: it is not idle */
	uint32_t n_queries;
	/* Where the next QUERY goes on: with late results, with streams. */
	uint32_t query_order, query_local, query_stream;
	struct sw_query queries[SW_QUERY_MAX];
	uint32_t n_blocked; /* streams that wait for its window to move */
	/* Tensors of which the server is owed END, and streams by which it is
	 * owed CLOSE of their groups. */
	struct sw_bitmap ends, closes;
	uint64_t words[SW_LINK_WORDS]; /* of these sets */
	uint16_t udp;                  /* of the server, for messages */
	char name[SW_NAME_MAX];
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

/* sw_link_came - a result came: the pause between QUERY frames is short again.
 */
static inline void sw_link_came(struct sw_link *l)
{
	l->query_from_ns = l->worker->now_ns;
	l->query_wait_ns = 0;
}

/* sw_link_touch - what it may push next, or its credit, may have changed. */
static inline void sw_link_touch(struct sw_link *l)
{
	sw_bits_add(l->worker->touched, l->peer.index);
}

/* sw_result_fits - has a RESULT @bytes, and a weight that there can be? */
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

/* sw_result_verify - does its payload have the CRC that the header says? */
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

/* --- worker.c, worker_tx.c: what drives it (engine/loop/engine.h) --- */

void sw_worker_rx(struct sw_engine *engine, uint64_t now_ns, uint32_t port_i,
	const struct sw_rx_frame *frames, uint32_t n);
uint64_t sw_worker_tick(
	struct sw_engine *engine, uint64_t now_ns, uint64_t gap_ns);
bool sw_worker_is_busy(const struct sw_engine *engine);
uint32_t sw_worker_tx(struct sw_engine *engine, uint64_t now_ns,
	uint32_t port_i, struct sw_tx_frame *out, uint32_t max);

/* --- link.c: what is asked of a server --- */

/* sw_link_request - what is asked now changed: ask at once. */
void sw_link_request(struct sw_worker *w, struct sw_link *l);

/* sw_link_draw_nonce - begin a new session, to which its frames are bound.
 * sw_link_start - say HELLO to its server. */
void sw_link_draw_nonce(struct sw_worker *w, struct sw_link *l);
void sw_link_start(struct sw_worker *w, struct sw_link *l);

/* sw_link_build_request - the request that is due; returns payload bytes. */
uint32_t sw_link_build_request(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h);

/* sw_link_declare - owe the server a DECLARE if tensors are left to declare
 * there and it has answered the last DECLARE.
 * sw_link_build_declare - build it; returns 0 if no tensor is left. */
void sw_link_declare(struct sw_worker *w, struct sw_link *l);
uint32_t sw_link_build_declare(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h);

/* sw_link_build_tune - build the TUNE that asks for worker->tuning.wanted. */
uint32_t sw_link_build_tune(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h);

/* sw_link_tick_request - repeat it; returns when. */
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

/* --- link_rx.c: what it answers --- */

/* sw_link_rx - a frame of the handshake or the session's control.  @h and the
 * payload's CRC were checked.  Returns false when it is none of those. */
bool sw_link_rx(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload);

/* sw_link_tick - timers of the handshake and of liveness. */
uint64_t sw_link_tick(struct sw_worker *w, struct sw_link *l);

/* --- mismatch.c --- */

/* sw_tensor_kill - rounds from @round on fail with @death (sw_fault_death), as
 * @why says: the open one ends, the other lanes and the servers are told.  The
 * same of all streams of its group. */
void sw_tensor_kill(struct sw_worker *w, struct sw_wtensor *t, uint32_t round,
	int death, const char *why);

/* sw_stream_propose - the same of a stream, but as the coordinator decides, who
 * may know another reason: when it has said so. */
void sw_stream_propose(
	struct sw_worker *w, struct sw_wtensor *t, int death, const char *why);

/* sw_dead_released - a dead stream is used by no lane any more, or by this one
 * alone, which is not lane 0: what is open of it ends between turns, some in
 * each (sw_dead_work, which returns how much). */
void sw_dead_released(struct sw_worker *w, const struct sw_wtensor *t);
uint32_t sw_dead_work(struct sw_worker *w);

/* sw_stream_compare - does it stand still?  Then: are its group's local ranks
 * in two of its streams?  If not, servers are asked whether others are
 * (w->is_still). */
bool sw_stream_compare(struct sw_worker *w, struct sw_wtensor *t);

/* sw_tensor_tell - owe END of it to its servers, to each when it has been
 * declared there.
 * sw_link_declared - @n in all have been declared at @l.
 * sw_link_close - owe the server CLOSE of the group of stream @t, if this
 * member has closed all of its streams and all have been declared there: the
 * server closes what it knows. */
void sw_tensor_tell(struct sw_worker *w, const struct sw_wtensor *t);
void sw_link_declared(struct sw_link *l, uint32_t n);
void sw_link_close(struct sw_link *l, const struct sw_wtensor *t);

/* sw_link_knows_closed - has the server acknowledged CLOSE of stream @t, or
 * does it not know the stream? */
bool sw_link_knows_closed(const struct sw_link *l, const struct sw_wtensor *t);

/* sw_link_on_end - END: a server says that a tensor is dead. */
void sw_link_on_end(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload);
/* sw_link_build_end - build the next END or CLOSE; returns 0 if none is due. */
uint32_t sw_link_build_end(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h);

/* --- tensors.c --- */

int sw_tensors_open(struct sw_worker *w);
void sw_tensors_close(struct sw_worker *w);
/* sw_tensors_keyed - link 0 gave the tensor its key and its place. */
int sw_tensors_keyed(struct sw_worker *w, struct sw_wtensor *t, uint32_t key,
	uint32_t first);
/* sw_tensors_are_admitted - by all servers, in all lanes. */
bool sw_tensors_are_admitted(const struct sw_worker *w);
/* sw_links_skip_refused - what the coordinator refused is declared nowhere. */
void sw_links_skip_refused(struct sw_worker *w);
/* sw_tensors_copy - another lane declares what lane 0 has: of n_wanted tensors,
 * which were built, some in each turn.  Returns how many. */
uint32_t sw_tensors_copy(struct sw_worker *w, const struct sw_wtensor *zero);
/* sw_tensors_give - @t goes; with the first of its batch the batch's memory. */
void sw_tensors_give(const struct sw_worker *w, struct sw_wtensor *t);

/* --- todo.c: what each link has to push, what it waits for --- */

/* sw_links_refresh - put each link that was touched into the set of its most
 * urgent push that it has credit for: before data is sent, and so once for all
 * that a burst of frames brought.  Within a class the more urgent tensor goes
 * first, and the links of one tensor go by how far each is with its part: so a
 * server with the larger share gets the larger share of the port, and all get
 * their last chunk at the same time. */
void sw_links_refresh(struct sw_worker *w);

/* sw_todo_put - the chunk of a record at @l waits in these of the sets, a mask
 * of 1 << enum sw_todo_set, and in no other.  Touches @l. */
void sw_todo_put(struct sw_link *l, struct sw_wtensor *t, uint32_t record,
	uint32_t sets);

/* sw_todo_has - has the link chunks of the tensor to push?  sw_todo_take - the
 * record of the one that goes: of the lowest, first of those that go again.  It
 * waits for nothing then.  Touches @l. */
static inline bool sw_todo_has(
	const struct sw_link *l, const struct sw_wtensor *t)
{
	return !sw_bitmap_is_empty(&t->parts[l->peer.index].sets[SW_TODO]);
}

uint32_t sw_todo_take(struct sw_link *l, struct sw_wtensor *t);

/* sw_todo_start - @n chunks in a row at @l, which wait for nothing, are started
 * and wait in SW_TODO.  Touches @l. */
void sw_todo_start(
	struct sw_link *l, struct sw_wtensor *t, uint32_t record, uint32_t n);

/* sw_todo_ask - put what is late into the link's next QUERY, most urgent first;
 * each goes on behind the one before, so that 64 hold up no others. */
void sw_todo_ask(struct sw_worker *w, struct sw_link *l);

/* sw_todo_drop - the tensor, which nothing is done for any more, is none of
 * those that links have chunks of; its own sets and records stay as they are.
 * Touches all links. */
void sw_todo_drop(struct sw_worker *w, struct sw_wtensor *t);

/* sw_todo_admit - the tensor, which has a key now, takes its place among all;
 * sw_todo_forget - nothing of it is open, and it has none any more.
 * sw_todo_renumber - after some of these.  Touches all links. */
void sw_todo_admit(struct sw_worker *w, struct sw_wtensor *t);
void sw_todo_forget(struct sw_worker *w, const struct sw_wtensor *t);
void sw_todo_renumber(struct sw_worker *w);

/* sw_todo_take_place - the tensor goes by priority, or behind all that are
 * ready.  Its chunks wait for nothing. */
void sw_todo_take_place(struct sw_worker *w, struct sw_wtensor *t);

/* --- deaths.c --- */

/* sw_deaths_check_local - end the open round of @t if it needs a local rank
 * that is gone.
 * sw_deaths_work - do so for some of the tensors that may; returns for how
 * many.
 */
void sw_deaths_check_local(struct sw_worker *w, struct sw_wtensor *t);
uint32_t sw_deaths_work(struct sw_worker *w);

/* sw_deaths_learn - take from STATUS which members are gone, and why the last
 * of them is.
 * sw_deaths_check_members - end what is open of @t if a member that it needs is
 * gone: for a stream any of its group, for a tensor one of @awaited, which the
 * servers named. */
void sw_deaths_learn(struct sw_worker *w, const struct sw_status *st);
void sw_deaths_check_members(
	struct sw_worker *w, struct sw_wtensor *t, uint64_t awaited);
/* For asynchronous jobs, where a death ends only what waits for the dead:
 * sw_deaths_on_wait - the server of @l waits in @t for the members @awaited.
 * Fail the worker if one of them can send nothing more.  Any lane.
 * sw_deaths_tick - note which members can send nothing more. */
void sw_deaths_on_wait(struct sw_worker *w, const struct sw_link *l,
	const struct sw_wtensor *t, uint64_t awaited);
void sw_deaths_tick(struct sw_worker *w);

/* --- stream_gone.c --- */

/* sw_tensor_closed - all local ranks have closed stream @t: tell the servers.
 */
void sw_tensor_closed(struct sw_worker *w, struct sw_wtensor *t);

/* sw_stream_gone_work - free closed streams that all servers and lanes know to
 * be closed.  Looks at some; returns how many it freed. */
uint32_t sw_stream_gone_work(struct sw_worker *w);

/* --- stream_local.c --- */

/* sw_stream_local_work - do some chunks of collectives of groups whose ranks
 * are all here; returns how many. */
uint32_t sw_stream_local_work(struct sw_worker *w);

/* --- grow.c --- */

/* sw_grow_is_possible - can a buffer of the tensor lack that many bytes? */
bool sw_grow_is_possible(const struct sw_wtensor *t, uint64_t lacks);

/* sw_grow_bytes - of a buffer.
 * sw_grow_say - lane 0 says to all how many are there, and returns it.
 * sw_grow_lacks - does it wait for more of the buffer of @local? */
static inline uint64_t sw_grow_bytes(const struct sw_wtensor *t)
{
	return t->decl.n_elems * t->elem_bytes;
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

/* sw_granules_of - how many a growing tensor of @bytes has. */
static inline uint32_t sw_granules_of(uint64_t bytes)
{
	return (uint32_t)((bytes + SW_GRANULE - 1) / SW_GRANULE);
}

/* sw_granules_held - of a growing tensor, this lane holds @chunk.
 * sw_granules_tell - who watches is told, if there are more than before.  Lane
 * 0's; returns whether it was. */
void sw_granules_held(
	struct sw_worker *w, struct sw_wtensor *t, uint32_t chunk);
bool sw_granules_tell(struct sw_worker *w);

/* --- round.c --- */

/* sw_round_open - the first local rank has asked: it says what is done. */
void sw_round_open(struct sw_worker *w, struct sw_wtensor *t, uint8_t op,
	uint16_t step, uint16_t root);

/* sw_round_start - all local ranks have asked for it: count it, let the other
 * lanes begin it, give what this lane has of it to the scheduler. */
void sw_round_start(struct sw_worker *w, struct sw_wtensor *t);

/* sw_round_extend - more of its buffers may be there: give that to the
 * scheduler.  Of a round that is over, or dead, nothing. */
void sw_round_extend(struct sw_worker *w, struct sw_wtensor *t);

/* sw_round_held - this lane holds all its chunks; sw_round_lane_done - another
 * lane does, whose tensor @theirs is. */
void sw_round_held(struct sw_worker *w, struct sw_wtensor *t);
void sw_round_lane_done(struct sw_worker *w, struct sw_wtensor *t,
	const struct sw_wtensor *theirs);

/* sw_round_drop - it is dead: this lane has nothing to do with it any more. */
void sw_round_drop(struct sw_worker *w, struct sw_wtensor *t);

/* sw_round_end - it ends, for all who asked.  sw_rounds_end - the worker has
 * ended: what is open does so, some in each turn; returns how much. */
void sw_round_end(struct sw_worker *w, struct sw_wtensor *t, int err);
uint32_t sw_rounds_end(struct sw_worker *w);

/* sw_round_end_some - the round of a tensor, or one collective of a stream, is
 * over; returns how many local ranks it had at most. */
uint32_t sw_round_end_some(struct sw_worker *w, struct sw_wtensor *t, int err);

/* sw_missing_text (stall.c) - the ranks for which what is open of a tensor, or
 * of all streams of its group, waits, as far as that is known: "rank 5 of 8",
 * "ranks 1, 4-7 of 8", "a server"; in @room bytes, "ranks 1, ... of 8".
 * Returns @out. */
enum { SW_MISSING_TEXT = 96, SW_MISSING_LEAST = 34 };
const char *sw_missing_text(const struct sw_worker *w,
	const struct sw_wtensor *t, bool of_kin, uint32_t room,
	char out[SW_MISSING_TEXT]);

/* sw_stall_tick - look.at_ns has come: say what stands still: one line, once in
 * a while (stall.c).  Returns when to look again. */
uint64_t sw_stall_tick(struct sw_worker *w);

/* --- worker_life.c --- */

/* sw_worker_fail - the job cannot go on: every open push_pull ends with @err,
 * the servers are told. */
void sw_worker_fail(struct sw_worker *w, int err, uint32_t key, const char *fmt,
	...) __attribute__((format(printf, 4, 5)));

/* sw_worker_check_running - is everybody there now? */
void sw_worker_check_running(struct sw_worker *w);

/* sw_worker_tick_joining - say what is waited for; give up in the end. */
void sw_worker_tick_joining(struct sw_worker *w);

/* sw_worker_check_left - does every server and every lane know that we left, or
 * is it time to go without? */
void sw_worker_check_left(struct sw_worker *w);

/* --- tuning.c --- */

/* sw_tuning_use - this lane's scheduler goes over to these, and so do the other
 * lanes.  Errors: SW_EINVAL (sw_sched_check says why). */
int sw_tuning_use(struct sw_worker *w, const struct sw_policy *policy,
	uint64_t part_bytes, uint64_t credit_bytes);
/* sw_tuning_credit - what of the job's is this lane's; 0: the policy's. */
uint64_t sw_tuning_credit(const struct sw_worker *w,
	const struct sw_policy *policy, uint64_t credit_bytes);
/* sw_tuning_received - the coordinator says the job's. */
void sw_tuning_received(struct sw_worker *w, const struct sw_status *st);

/* --- lane.c: to the other lanes; of lane 0 also to the user --- */

/* sw_lane_say - tell the user of a state or a line; from another lane through
 * lane 0. */
void sw_lane_say(struct sw_worker *w, int err, const char *text);

/* sw_lane_admitted - all tensors are admitted: in all lanes, as lane 0 says to
 * the user; in this one, as another says to lane 0. */
void sw_lane_admitted(struct sw_worker *w);

/* Lane 0 to all others: SW_LANE_START or LEAVE; tensors have keys; a round
 * begins (returns how many lanes have chunks of it); other tuning. */
void sw_lanes_command(struct sw_worker *w, enum sw_lane_kind kind);
void sw_lanes_declare(struct sw_worker *w);
uint32_t sw_lanes_begin(struct sw_worker *w, const struct sw_wtensor *t);
/* sw_lanes_begin_coll - @lanes, a bit each, have chunks of a collective that
 * begins; returns how many they are. */
uint32_t sw_lanes_begin_coll(struct sw_worker *w, const struct sw_wtensor *t,
	const struct sw_coll *c, uint32_t lanes);
/* sw_lanes_grown - more of a tensor is there. */
void sw_lanes_grown(struct sw_worker *w, const struct sw_wtensor *t);
void sw_lanes_set_tuning(
	struct sw_worker *w, uint64_t part_bytes, uint64_t credit_bytes);

/* sw_lane_dead - a tensor is dead: lane 0 to all others, another to lane 0.  Of
 * a stream that one says what a server says, and lane 0 decides. */
void sw_lane_dead(struct sw_worker *w, const struct sw_wtensor *t);

/* sw_lane_closed - this member has closed a stream: lane 0 to all others. */
void sw_lane_closed(struct sw_worker *w, const struct sw_wtensor *t);

/* Another lane than 0 says something of a tensor (lane.h); it holds all its
 * chunks of a collective. */
void sw_lane_report(struct sw_worker *w, enum sw_lane_kind kind,
	const struct sw_wtensor *t);
void sw_lane_coll_done(struct sw_worker *w, const struct sw_wtensor *t,
	const struct sw_coll *c);

#endif
