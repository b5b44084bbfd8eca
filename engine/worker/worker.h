/* worker.h - the worker's side of a job: chunks out, sums in.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * One lcore, or one lane of several (lane.h).  worker.c takes data frames,
 * worker_tx.c sends, link.c gets in at the servers and keeps the links,
 * worker_life.c waits for the job, fails and leaves, tensors.c declares and
 * begins rounds, local.c keeps the local ranks together, mismatch.c ends
 * tensors that members call differently.
 *
 * A worker has one to 64 local ranks, each with a buffer per tensor.  A round
 * begins when all of them have asked for it; their buffers are summed while a
 * PUSH is built, and the result goes to a buffer of its own.  A single local
 * rank has one buffer for both.
 *
 * A chunk is HELD (its last sum is in the buffer), GRAD (the buffer holds a
 * contribution that is to be pushed) or PUSHED (it is on its way or folded).
 * It becomes HELD before the first byte of a result is written, and a PUSH is
 * built only in GRAD: so a retransmission can never carry a sum, although
 * source and destination are the same bytes.
 */
#ifndef SW_WORKER_H
#define SW_WORKER_H

#include "engine/base/bitmap.h"
#include "engine/base/env.h"
#include "engine/base/stats.h"
#include "engine/loop/node.h"
#include "engine/peer/peer.h"
#include "engine/sched/due.h"
#include "engine/sched/knobs.h"
#include "engine/sched/place.h"
#include "engine/sched/sched.h"
#include "engine/wire/wire.h"
#include "engine/worker/lane.h"

enum {
	SW_TENSORS = 4096,          /* per worker */
	SW_ORDERS = 2 * SW_TENSORS, /* by priority, then by readiness */
	SW_LOCAL_RANKS = 64,        /* per worker */
};

enum sw_chunk_state { SW_HELD, SW_GRAD, SW_PUSHED };

struct sw_wchunk {
	uint64_t psn;  /* of the last PUSH */
	uint64_t t_ns; /* PUSHED: when it was sent, or asked for */
	uint32_t crc;  /* of the first PUSH of this round */
	uint8_t state;
	uint8_t n_sent;    /* PUSHes of this round, stops at 255 */
	uint8_t n_refused; /* of them refused by CRC */
	bool is_charged;   /* takes credit: started, not folded yet */
};

struct sw_wtensor {
	uint32_t key;   /* SW_KEY_NONE until the coordinator gave one */
	uint32_t first; /* then also its place on the line */
	uint32_t rank;  /* among all by (priority, index) */
	uint32_t order; /* in which it goes: its rank, or by readiness */
	uint32_t priority;
	uint8_t dtype, class;
	uint8_t op;     /* of this round, enum sw_operation */
	uint16_t root;  /* copy: the rank whose bytes it is */
	bool is_async;  /* pushes deltas, gets copies (async.h) */
	bool is_open;   /* a local rank has asked for a round */
	bool is_edited; /* its buffer changed under a push */
	bool is_begun;  /* its round is counted */
	uint16_t step;
	uint16_t weight; /* of the results of this round */
	uint32_t round;
	/* Members call it differently: rounds from this one on fail, 0: none
	 * does. */
	uint32_t dead_from;
	uint32_t n_chunks;
	uint32_t n_missing; /* of this lane's chunks, not HELD */
	uint32_t lanes;     /* lane 0: which others have chunks of it */
	uint32_t n_lanes;   /* and how many of them are not done */
	uint32_t elem_bytes, chunk_bytes, last_bytes;
	uint64_t n_elems;
	uint8_t *base;        /* of results; borrowed until sw_worker_close */
	uint64_t asked;       /* local ranks that have asked for this round */
	uint64_t *cookies;    /* by local rank */
	const uint8_t **from; /* by local rank: its contributions; lane 0's */
	uint64_t progress_ns; /* last result, or the submit */
	uint64_t missing;     /* members that a WAIT named */
	struct sw_wchunk *chunks;
	struct sw_place own;     /* this lane's chunks */
	struct sw_place *places; /* by link */
	struct sw_bitmap *todo;  /* by link, local indices: in GRAD */
	struct sw_bitmap *again; /* the same: those of todo that were sent */
	struct sw_bitmap *late;  /* the same: acknowledged, no result yet */
	uint64_t *words;         /* of these sets */
	void *mem;               /* all of these, from chunks to words */
	uint64_t mem_bytes;
	struct sw_worker *worker; /* and its */
	struct sw_task task;      /* while it is open */
	char name[SW_NAME_MAX];
	char why[SW_TEXT_MAX]; /* it is dead */
};

enum sw_link_state {
	SW_LINK_IDLE, /* waits for the coordinator to say RUNNING */
	SW_LINK_HELLO,
	SW_LINK_JOIN,
	SW_LINK_OPEN,
	SW_LINK_LEAVING,
	SW_LINK_CLOSED,
};

/* What joins this worker and one server. */
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
	struct sw_bitmap ready; /* orders with todo */
	struct sw_bitmap again; /* orders with again */
	struct sw_bitmap late;  /* orders with late */
	/* Dead tensors of which the server has not said yet that it knows. */
	struct sw_bitmap dead;
	struct sw_bitmap told; /* of which it was told */
	uint32_t dead_turn;    /* where the next MISMATCH goes on */
	uint64_t dead_at_ns;
	uint64_t *words;
	char name[SW_NAME_MAX];
};

struct sw_worker_server {
	const char *name; /* for messages */
	struct sw_path path;
};

struct sw_worker_job {
	const char *job, *node; /* 1 to 127 bytes; copied */
	uint16_t rank, n_members, n_local;
	const struct sw_worker_server *servers; /* copied; [0] coordinates */
	uint32_t n_servers;
	uint16_t n_colocated; /* of them on the workers' machines */
	uint8_t n_lcores;     /* so many in a row are one process; 0: one */
	uint16_t n_ways;      /* UDP ports of its endpoint, 0: one */
	/* One lane of a worker of several, all of the same job. */
	uint8_t lane_i, n_lanes; /* 0, 0: there is one */
	/* Between lane 0 and the others, n_lanes - 1 of them, each after
	 * sw_lane_init; borrowed until all are closed. */
	struct sw_lane *lanes;
};

enum sw_worker_state {
	SW_WORKER_JOINING,
	SW_WORKER_RUNNING,
	SW_WORKER_FAILED, /* final, but for LEFT */
	SW_WORKER_LEFT,   /* every server knows; nothing is sent any more */
};

/* Called from rx, tick or a function below, on the worker's lcore. */
struct sw_worker_events {
	/* The state changed, or while JOINING or RUNNING there is a line for
	 * the person who waits.  @text may be "". */
	void (*state)(void *ctx, enum sw_worker_state state, int err,
		const char *text);
	/* All tensors declared so far are admitted everywhere. */
	void (*declared)(void *ctx);
	/* A round of @local ended; @weight is the number of workers summed. */
	void (*done)(void *ctx, uint32_t tensor, uint32_t local,
		uint64_t cookie, int err, uint32_t weight);
	void *ctx;
};

/* The job's knobs, as a worker has heard of them and asks for them. */
struct sw_worker_knobs {
	uint32_t number; /* of the newest; 0: those of the JOINs */
	bool is_asking;  /* the coordinator has not numbered what is wanted */
	uint32_t request;
	struct sw_knobs wanted;
};

struct sw_worker {
	struct sw_node node;
	struct sw_params params;
	const struct sw_env *env;
	struct sw_worker_events events;
	struct sw_stats stats; /* since @w was zeroed */
	uint64_t now_ns, gap_ns;
	enum sw_worker_state state;
	uint16_t rank, n_members, n_local, n_ways;
	bool is_astray; /* the frame at hand landed on a wrong lcore */
	uint32_t lane_i, n_lanes;
	struct sw_lane *lanes; /* lane 0: to the others; else to lane 0 */
	uint32_t n_lanes_running, n_lanes_declaring, n_lanes_left;
	uint32_t n_lanes_know; /* tensors of which they were told */
	uint16_t first, size;  /* ranks: ours from first on, of all */
	uint64_t gone;         /* local ranks that have left */
	uint64_t epoch;        /* of the job, as the coordinator says */
	uint64_t joined;       /* members, from the coordinator */
	uint64_t started_ns;   /* of JOINING */
	uint64_t told_ns;      /* last line about waiting */
	uint64_t stall_at_ns;  /* next look for tensors that stand still */
	uint64_t warn_at_ns;   /* no line about them before */
	uint64_t left_by_ns;   /* LEAVING: give up then */
	struct sw_fault fault; /* for LEAVE; err 0: a clean end */
	/* What the coordinator knows of those that are missing. */
	char known[SW_TEXT_MAX];
	/* The last JOIN that was refused, and may not be later. */
	const struct sw_link *refused_link;
	uint64_t refused_ns;
	bool is_refused; /* and it has not been accepted since */
	char refused[SW_TEXT_MAX];
	struct sw_place_job place;
	struct sw_place_map map, lane_map; /* by server, by lane */
	uint8_t link_of[SW_PLACE_SERVERS]; /* of this lane's servers */
	uint32_t n_links;
	struct sw_due due[SW_MAX_PORTS]; /* sessions are link indices */
	/* Of a link that has a push: the tensor's order, and how much of the
	 * tensor's part that lies there went before, in 2^-32. */
	uint64_t turn_keys[SW_PLACE_SERVERS];
	struct sw_link *links;
	struct sw_wtensor *tensors; /* in the order of declaration */
	uint32_t n_tensors, n_admitted;
	uint32_t n_wanted; /* but lane 0: tensors that it has declared */
	uint32_t n_open;   /* push_pulls */
	struct sw_sched sched;
	struct sw_worker_knobs knobs;
	uint32_t highest_round; /* of any tensor that has begun */
	uint32_t next_order;    /* by readiness */
	uint32_t *by_order;
	uint32_t *by_key; /* index of the tensor, or SW_KEY_NONE */
	char job[SW_NAME_MAX], node_name[SW_NAME_MAX];
	/* of a control frame, a copy, or the sum of the local ranks */
	_Alignas(64) uint8_t payload[SW_PAYLOAD_MAX];
	_Alignas(64) float sums[SW_PAYLOAD_MAX / 2]; /* of 16-bit types */
};

/* sw_worker_open - a worker that starts to join at the first tick.
 * @w  zeroed once; its counters go on from one open to the next
 * Everything that is not copied is borrowed until close.  Of several lanes each
 * is opened on its lcore; what follows is then for lane 0, but close, and of
 * the events the others call none.
 * @ports  n_ports of them; only is_inner is read
 * Errors: SW_EINVAL, SW_ENOMEM. */
int sw_worker_open(struct sw_worker *w, const struct sw_params *params,
	const struct sw_env *env, const struct sw_worker_events *events,
	const struct sw_worker_job *job, struct sw_port *const *ports,
	uint32_t n_ports, uint64_t now_ns);

/* sw_worker_close - free everything at once, whatever goes on. */
void sw_worker_close(struct sw_worker *w);

struct sw_worker_tensor {
	const char *name; /* 1 to 127 bytes; copied */
	uint64_t n_elems;
	uint32_t dtype;
	uint32_t priority; /* or SW_PRIORITY_BY_USE */
	/* Where results go; a single local rank contributes from there, too.
	 * Borrowed until sw_worker_close. */
	void *base;
	bool is_async;
};

/* sw_worker_declare - declare @n more tensors; indices go on from n_tensors.
 * events.declared is called when all servers have admitted them.
 * Their names differ.
 * Errors: SW_EINVAL (dtype, size, name), SW_EBUSY the last ones are not
 * admitted yet, SW_EAGAIN memory for them is being prepared (env.h), SW_ENOMEM,
 * or why the job ended; nothing is declared then. */
int sw_worker_declare(struct sw_worker *w,
	const struct sw_worker_tensor *tensors, uint32_t n);

/* sw_worker_source - where local rank @local has its contributions to a
 * declared tensor; of each of several it must be told once, before it asks for
 * a round.  @base is borrowed until sw_worker_close. */
void sw_worker_source(
	struct sw_worker *w, uint32_t tensor, uint32_t local, const void *base);

/* One push_pull or broadcast of a tensor, as one local rank asks for it.  Of an
 * asynchronous tensor: a delta, after which it holds what the servers keep. */
struct sw_worker_round {
	uint32_t tensor, step;
	uint32_t local;
	uint64_t cookie; /* comes back in events.done */
	enum sw_operation op;
	uint16_t root; /* copy: the rank whose bytes all get */
};

/* sw_worker_begin - a local rank asks for a round of a declared tensor, which
 * starts when all have.  Until events.done it may not write its buffer.
 * events.done is called when it ends, in order of completion.
 * Errors: SW_EINVAL no such tensor, root or source, or the first round of an
 * asynchronous tensor is no broadcast; SW_EBUSY it has asked
 * already, SW_EAGAIN not admitted yet, or why the job ended (SW_ECLOSED: it was
 * left); SW_EMISMATCH it asks for something else than a local rank before it,
 * or the tensor is dead (sw_worker_why); SW_EPEER one has left: this ends the
 * job. */
int sw_worker_begin(struct sw_worker *w, const struct sw_worker_round *round);

/* sw_worker_why - why a declared tensor is dead: members declare it, or call it
 * in one round, differently.  That round, and all that follow, end with
 * SW_EMISMATCH; the job goes on.  NULL: it is not. */
const char *sw_worker_why(const struct sw_worker *w, uint32_t tensor);

/* sw_worker_clash - local rank @local declares a known tensor differently, as
 * @d: it is dead. */
void sw_worker_clash(struct sw_worker *w, uint32_t tensor, uint32_t local,
	const struct sw_worker_tensor *d);

/* sw_worker_push - begin a sum, as the only local rank. */
static inline int sw_worker_push(
	struct sw_worker *w, uint32_t tensor, uint32_t step, uint64_t cookie)
{
	return sw_worker_begin(
		w, &(struct sw_worker_round){
			   .tensor = tensor, .step = step, .cookie = cookie});
}

/* sw_worker_local_left - local rank @local asks for nothing any more: a round
 * that lacks it ends the job, now or when another asks for it.  Its buffers
 * are still borrowed. */
void sw_worker_local_left(struct sw_worker *w, uint32_t local);

/* sw_worker_set_knobs - partition and credit of this worker from its next part
 * on, in bytes, 0: the policy's; until the job's change.
 * Errors: SW_EINVAL, with the reason in sched.fault; nothing changes then. */
int sw_worker_set_knobs(
	struct sw_worker *w, uint64_t part_bytes, uint64_t credit_bytes);

/* sw_worker_tune - ask the coordinator for other knobs for all members, which
 * go over when they hear of them (knobs.h).  A second call before the first was
 * numbered takes its place.
 * Errors: SW_EINVAL (sw_sched_check says why), SW_EAGAIN the job does not run
 * yet, or why it ended. */
int sw_worker_tune(struct sw_worker *w, const struct sw_policy *policy,
	uint64_t part_bytes, uint64_t credit_bytes);

/* sw_worker_leave - end the job; open push_pulls end with SW_ECLOSED.
 * @err, @text  0 and NULL: a clean end; else what the other members are told */
void sw_worker_leave(struct sw_worker *w, int err, const char *text);

/* --- between worker.c, link.c and tensors.c --- */

/* worker_life.c */
/* sw_worker_fail - the job cannot go on: every open push_pull ends with @err,
 * the servers are told. */
void sw_worker_fail(struct sw_worker *w, int err, uint32_t key, const char *fmt,
	...) __attribute__((format(printf, 4, 5)));

/* sw_link_check_running - is everybody there now? */
void sw_link_check_running(struct sw_worker *w);

/* sw_worker_tick_joining - say what is waited for; give up in the end. */
void sw_worker_tick_joining(struct sw_worker *w);

/* sw_worker_check_left - does every server and every lane know that we left, or
 * is it time to go without? */
void sw_worker_check_left(struct sw_worker *w);

static inline void sw_link_owe(
	struct sw_worker *w, struct sw_link *l, enum sw_owed what)
{
	sw_peer_owe(&l->peer, w->due, what);
}

/* The node's calls: what came; timers; control frames, then pushes by class
 * (worker_tx.c); is anything open? */
void sw_worker_rx(struct sw_node *node, uint64_t now_ns, uint32_t port_i,
	const struct sw_rx_frame *frames, uint32_t n);
uint64_t sw_worker_tick(struct sw_node *node, uint64_t now_ns, uint64_t gap_ns);
bool sw_worker_is_busy(const struct sw_node *node);
bool sw_worker_tx(struct sw_node *node, uint64_t now_ns, uint32_t port_i,
	struct sw_tx_frame *out);

/* sw_link_refresh - put the link into the set of its most urgent push that it
 * has credit for.  Within a class the more urgent tensor goes first, and the
 * links of one tensor go by how far each is with its part: so a server with
 * the larger share gets the larger share of the port, and all get their last
 * chunk at the same time. */
void sw_link_refresh(struct sw_worker *w, struct sw_link *l);

/* sw_link_request - what is asked now changed: ask at once. */
void sw_link_request(struct sw_worker *w, struct sw_link *l);

/* sw_link_start - say HELLO to its server. */
void sw_link_start(struct sw_worker *w, struct sw_link *l);

/* sw_links_skip_refused - what the coordinator refused is declared nowhere. */
void sw_links_skip_refused(struct sw_worker *w);

/* sw_link_rx - a frame of the handshake or the session's control.  @h and the
 * payload's CRC were checked.  Returns false when it is none of those. */
bool sw_link_rx(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload);

/* sw_probe_again - is another source port tried instead of joining from this
 * one?  (probe.c) */
bool sw_probe_again(
	struct sw_worker *w, struct sw_link *l, const struct sw_cookie *c);

/* sw_link_tick - timers of the handshake and of liveness. */
uint64_t sw_link_tick(struct sw_worker *w, struct sw_link *l);

/* sw_link_build_request - the request that is due; returns payload bytes. */
uint32_t sw_link_build_request(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h);

/* tensor_memory.c: chunks of a declared tensor; what it takes, in whole pages;
 * take it (SW_ENOMEM), n_chunks being known; give it back. */
uint32_t sw_wtensor_chunks(
	const struct sw_worker *w, const struct sw_worker_tensor *in);
uint64_t sw_wtensor_need(
	const struct sw_worker *w, const struct sw_worker_tensor *in);
int sw_wtensor_take(struct sw_worker *w, struct sw_wtensor *t);
void sw_wtensor_give(const struct sw_worker *w, struct sw_wtensor *t);

/* tensors.c */
int sw_tensors_open(struct sw_worker *w);
void sw_tensors_close(struct sw_worker *w);
/* sw_tensors_keyed - link 0 gave the tensor its key and its place. */
int sw_tensors_keyed(
	struct sw_worker *w, uint32_t tensor, uint32_t key, uint32_t first);
/* sw_tensors_are_admitted - by all servers, in all lanes. */
bool sw_tensors_are_admitted(const struct sw_worker *w);
/* sw_tensors_copy - another lane declares what lane 0 has: n_wanted tensors.
 * False: memory for them is being prepared, call it again. */
bool sw_tensors_copy(struct sw_worker *w, const struct sw_wtensor *from);
/* sw_tensors_begin - another lane begins the round that lane 0 began. */
void sw_tensors_begin(struct sw_worker *w, const struct sw_lane_order *o);
/* sw_tensors_held - this lane holds all its chunks of the round. */
void sw_tensors_held(struct sw_worker *w, struct sw_wtensor *t);
/* sw_tensors_lane_done - another lane does. */
void sw_tensors_lane_done(struct sw_worker *w, const struct sw_lane_news *news);
/* sw_tensors_order - number all anew, when priorities came with their keys. */
void sw_tensors_order(struct sw_worker *w);
/* sw_tensors_end - a push_pull ends. */
void sw_tensors_end(struct sw_worker *w, struct sw_wtensor *t, int err);
void sw_tensors_end_all(struct sw_worker *w, int err);

/* local.c */
/* sw_local_ask - note that a local rank asks for a round; 0, or an error that
 * has ended the job. */
int sw_local_ask(struct sw_worker *w, struct sw_wtensor *t,
	const struct sw_worker_round *round);
/* sw_local_missing - local ranks that have not asked for the open round. */
uint64_t sw_local_missing(
	const struct sw_worker *w, const struct sw_wtensor *t);
/* sw_local_end - tell all that have asked. */
void sw_local_end(struct sw_worker *w, struct sw_wtensor *t, int err);
/* sw_local_bytes - what this node contributes to a chunk: in a buffer, or
 * summed into w->payload (*is_stable false). */
const uint8_t *sw_local_bytes(struct sw_worker *w, const struct sw_wtensor *t,
	uint32_t chunk, bool *is_stable);

/* mismatch.c */
static inline bool sw_wtensor_is_dead(
	const struct sw_wtensor *t, uint32_t round)
{
	return t->dead_from && (int32_t)(round - t->dead_from) >= 0;
}
/* sw_tensor_kill - rounds from @round on fail, as @why says: the open one ends,
 * the other lanes and the servers are told. */
void sw_tensor_kill(struct sw_worker *w, struct sw_wtensor *t, uint32_t round,
	const char *why);
/* sw_link_on_mismatch - a server says that a tensor is dead. */
void sw_link_on_mismatch(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload);
/* sw_link_owes_dead - does its server not know all dead tensors yet? */
bool sw_link_owes_dead(const struct sw_link *l);
/* sw_link_tick_dead - say again what the server does not know yet. */
uint64_t sw_link_tick_dead(struct sw_worker *w, struct sw_link *l);
/* sw_link_build_mismatch - 0: there is nothing to say any more. */
uint32_t sw_link_build_mismatch(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h);

/* sw_tensors_start - all local ranks have asked: begin the round. */
void sw_tensors_start(struct sw_worker *w, struct sw_wtensor *t);
/* sw_worker_end_of - why nothing new can be begun; 0 when it can. */
int sw_worker_end_of(const struct sw_worker *w);

/* knobs.c */
/* sw_knobs_use - this lane's scheduler goes over to these, and so do the other
 * lanes.  Errors: SW_EINVAL, with the reason in sched.fault. */
int sw_knobs_use(struct sw_worker *w, const struct sw_policy *policy,
	uint64_t part_bytes, uint64_t credit_bytes);
/* sw_knobs_credit - what of the job's is this lane's; 0: the policy's. */
uint64_t sw_knobs_credit(const struct sw_worker *w,
	const struct sw_policy *policy, uint64_t credit_bytes);
/* sw_knobs_heard - the coordinator says the job's. */
void sw_knobs_heard(struct sw_worker *w, const struct sw_status *st);
/* sw_knobs_build_tune - the TUNE that is asked for; returns payload bytes. */
uint32_t sw_knobs_build_tune(struct sw_worker *w, struct sw_header *h);

/* sw_tensors_tick - say what stands still: one line, once in a while. */
void sw_tensors_tick(struct sw_worker *w);
/* sw_tensors_set - what a chunk waits for: to be pushed (todo; again, if it
 * has been sent), or for its result although its push was acknowledged (late).
 */
void sw_tensors_set(struct sw_worker *w, struct sw_wtensor *t, uint32_t chunk,
	bool is_todo, bool is_late);

/* worker_sched.c */
/* sw_tensors_ready - a push_pull of all its chunks, in GRAD, may start. */
void sw_tensors_ready(struct sw_worker *w, struct sw_wtensor *t);
/* sw_tensors_folded - a chunk's push has arrived for good: its credit comes
 * back.  sw_sched_run is to follow. */
void sw_tensors_folded(
	struct sw_worker *w, struct sw_wtensor *t, uint32_t chunk);

static inline uint32_t sw_wtensor_bytes(
	const struct sw_wtensor *t, uint32_t chunk)
{
	return chunk + 1 == t->n_chunks ? t->last_bytes : t->chunk_bytes;
}

#endif
