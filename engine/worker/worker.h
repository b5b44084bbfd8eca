/* worker.h - the worker's side of a job: pushes chunks, takes results.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A worker runs on one lcore, or on several as lanes (lane.h).  It has one to
 * 1,023 local ranks, each with a buffer per tensor.  A round begins when all
 * local ranks have asked for it.  The worker sums their buffers while it builds
 * a PUSH, and writes the result to a separate buffer; a single local rank has
 * one buffer for both.
 *
 * A push passes three files. round.c takes the requests of local ranks and
 * makes each round a task of the scheduler, todo.c keeps the started chunks by
 * link, and worker_tx.c sends them. worker_rx.c takes the results.
 *
 * Thread: the lcore of the worker, except sw_worker_stats, open, build, close.
 */
#ifndef SW_ENGINE_WORKER_WORKER_H
#define SW_ENGINE_WORKER_WORKER_H

#include "engine/base/env.h"
#include "engine/base/ids.h"
#include "engine/base/params.h"
#include "engine/base/stats.h"
#include "engine/flow/flow.h"
#include "engine/loop/engine.h"
#include "engine/peer/peer.h"
#include "engine/peer/peer_view.h"
#include "engine/sched/due.h"
#include "engine/sched/order.h"
#include "engine/sched/place.h"
#include "engine/sched/sched.h"
#include "engine/wire/coll.h"
#include "engine/wire/wire.h"
#include "engine/worker/lane.h"

enum {
	/* Tensors and streams that a worker has at a time. */
	SW_TENSORS = SW_IDS,
	/* Ranks of a stream's group. */
	SW_GROUP_RANKS = SW_MAX_MEMBERS * SW_LOCAL_RANKS,
	/* Words of a set of local ranks. */
	SW_LOCAL_WORDS = SW_LOCAL_RANKS / 64 + 1,
	/* A payload's room: the largest, in whole cache lines, and one line
	 * more, so that equal offsets lie in different sets of the cache. */
	SW_MADE_BYTES = (SW_PAYLOAD_MAX + 127) / 64 * 64,
};

struct sw_worker_server {
	const char *name; /* for messages */
	struct sw_path path;
	uint16_t udp; /* for messages; 0: path.udp */
};

struct sw_secret; /* keys/keyring.h */

struct sw_worker_job {
	const char *job, *node; /* 1 to 127 bytes; copied */
	uint16_t member, n_members, n_local;
	const struct sw_worker_server *servers; /* copied; [0] coordinates */
	uint32_t n_servers;
	/* Servers that run on the workers' machines. */
	uint16_t n_colocated;
	/* This many servers in a row are one process; 0: one. */
	uint8_t n_lcores;
	uint16_t n_ways; /* UDP ports of the worker's endpoint; 0: one */
	/* This lane's number, and how many lanes the worker has; 0, 0: one. */
	uint8_t lane_i, n_lanes;
	/* The n_lanes - 1 channels between lane 0 and other lanes, each set up
	 * by sw_lane_init; borrowed until all lanes are closed. */
	struct sw_lane *lanes;
	/* The secret of the job, borrowed until close; NULL: frames have no
	 * tags. */
	const struct sw_secret *secret;
};

enum sw_worker_state {
	SW_WORKER_JOINING,
	SW_WORKER_RUNNING,
	SW_WORKER_FAILED, /* final, except that LEFT follows */
	SW_WORKER_LEFT,   /* every server knows; the worker sends nothing */
};

/* The worker calls these from rx, tick or a function below, on its own lcore.
 */
struct sw_worker_events {
	/* The state has changed, or, while JOINING or RUNNING, there is a line
	 * for the waiting user.  @text may be "". */
	void (*state)(void *ctx, enum sw_worker_state state, int err,
		const char *text);
	/* All tensors declared so far are admitted everywhere. */
	void (*declared)(void *ctx);
	/* A round of @local has ended; @weight is the number of workers summed.
	 * @tensor is an id, here and below. */
	void (*done)(void *ctx, uint32_t tensor, uint32_t local,
		uint64_t cookie, int err, uint32_t weight);
	void *ctx;
	/* From sw_worker_take: all lanes have forgotten stream @tensor, which
	 * the local ranks have closed.  Call sw_worker_free next. */
	void (*gone)(void *ctx, uint32_t tensor);
	/* From sw_worker_take, in each lane: copy the buffers of dead stream
	 * @key that this lcore's loopback or server borrows, some in each call;
	 * true: all are copied (sw_loopback_copy_lent, sw_server_keep_stream).
	 * NULL: the lcore has neither. */
	bool (*keep)(void *ctx, uint32_t key);
	/* From sw_worker_take: granules of growing tensors are summed.  NULL:
	 * no tensor grows. */
	void (*summed)(void *ctx);
	/* A group with ranks of this worker has ended, because ranks did not
	 * call or called differently; local ranks need not have opened it.
	 * NULL: not reported. */
	void (*failed)(void *ctx);
};

/* The job's tuning, as this worker received it and as it asks for it. */
struct sw_worker_tuning {
	/* The newest change's number; 0: the JOINs' values hold. */
	uint32_t number;
	struct sw_job_tuning wanted; /* the values of the TUNE that is owed */
};

/* The steps after a local rank has died.  Each looks at all tensors and
 * streams. */
enum sw_deaths_step {
	SW_DEATHS_NOBODY,
	SW_DEATHS_JUDGED, /* is there a live stream without dead ranks? */
	SW_DEATHS_ENDED,  /* yes: end tensors and groups of the dead rank */
};

struct sw_deaths {
	uint32_t n_gone; /* local ranks that left or died */
	uint64_t gone[SW_LOCAL_WORDS], died[SW_LOCAL_WORDS];
	uint32_t local; /* the local rank that died last, and why */
	struct sw_fault why;
	enum sw_deaths_step step;
	bool is_needed; /* SW_DEATHS_JUDGED has found a live stream */
	/* Members that died, as the coordinator reports, and when that set last
	 * grew; the member that died last, and why. */
	uint64_t members, learned_ns;
	uint16_t member;
	struct sw_fault last;
	/* For an asynchronous job, which continues without gone members:
	 * members that left, the time when their last frames are past, and the
	 * members whose last frames are past.  Other lanes read past. */
	uint64_t left, past_at_ns, past;
};

struct sw_link;
struct sw_wtensor;

/* To be embedded.  Only this folder uses its fields. */
struct sw_worker {
	/* given by the caller */
	struct sw_engine engine;
	struct sw_hub hub; /* of its links */
	struct sw_params params;
	const struct sw_env *env;
	struct sw_worker_events events;
	struct sw_stats stats; /* counted since the struct was zeroed */
	uint64_t now_ns, gap_ns;
	enum sw_worker_state state;
	uint16_t member, n_members, n_local, n_ways;
	bool is_misrouted; /* the current frame landed on a wrong lcore */

	/* lanes */
	uint32_t lane_i, n_lanes;
	/* Lane 0: its channels to all other lanes; else the channel to lane 0.
	 */
	struct sw_lane *lanes;
	/* Lanes that take this lane's commands; how many of these lanes do not
	 * run yet, are declaring, have not left. */
	uint32_t n_others, n_awaited, n_declaring, n_staying;

	/* the job, as the coordinator tells it */
	/* Our ranks begin at first; size counts all ranks. */
	uint16_t first, size;
	/* The job's payload, from the coordinator; 0: not yet known.  Until
	 * then params has the largest that this node carries, and carried the
	 * largest that the paths of other lanes carry, as far as they have
	 * joined. */
	uint32_t payload_bytes, carried;
	bool has_joined; /* all servers of the lane are connected and probed */
	/* Each member's first rank, then size. */
	uint16_t firsts[SW_MAX_MEMBERS + 1];
	struct sw_deaths deaths;
	uint64_t epoch;  /* the job's epoch, from the coordinator */
	uint64_t joined; /* members that have joined, from the coordinator */

	/* waiting: for members, then for ranks and results */
	uint64_t started_ns; /* when JOINING began */
	uint64_t warned_ns;  /* when the last line about waiting left */
	/* The sweep for tensors without progress: when and where it continues,
	 * how many have stalled, the tensor stalled longest (SW_TENSORS: none),
	 * whether a stream has waited for SW_STILL_NS, and whether a tensor
	 * has lacked results for sw_paths_doubt_ns. */
	struct {
		uint64_t at_ns;
		uint32_t next, n, worst;
		bool is_still, is_slow;
	} look;
	uint64_t checked_ns; /* when the check of paths began; 0: it has not */
	uint64_t warn_at_ns; /* the next warning about stalls is due then */
	uint64_t stalled_ns; /* when the stall that was warned of began; 0: none
			      */

	/* the end */
	/* The deadline of LEAVING; 0: the job has not ended. */
	uint64_t left_by_ns;
	struct sw_fault fault; /* the payload of LEAVE; err 0: a clean end */
	/* Something is noted and not settled yet (settle_noted in worker.c):
	 * the worker's end (with a failure), ends of tensors and groups in
	 * ended, or a step of joining or declaring.  The sentence may be longer
	 * than a fault's text; "": use the fault's text. */
	bool is_unsettled, is_ending, is_failing;
	char sentence[SW_TEXT_MAX + SW_NAME_MAX];

	/* sentences for the user who waits for the start */
	/* The coordinator's sentence about missing members. */
	char known[SW_TEXT_MAX];
	/* The link whose JOIN was last refused for now (SW_EBUSY), when, and
	 * why. */
	const struct sw_link *refused_link;
	uint64_t refused_ns;
	bool is_refused; /* no JOIN has been accepted since */
	char refused[SW_TEXT_MAX];

	/* servers, links and what waits to be sent */
	struct sw_place_job place;
	/* The link of each of this lane's servers. */
	uint8_t link_of[SW_PLACE_SERVERS];
	uint8_t lane_of[SW_PLACE_SERVERS]; /* the lane of each server */
	uint32_t n_links;
	struct sw_due due[SW_MAX_PORTS]; /* its sessions are link indices */
	/* For a link with chunks to push: the tensor's order, and how much of
	 * the tensor's part there has left already, in 2^-32. */
	uint64_t turn_keys[SW_PLACE_SERVERS];
	/* Grants shared by the links to other machines. */
	struct sw_grants grants;
	struct sw_crowd crowd;
	struct sw_link *links;
	/* Links whose place in due may be stale: their most urgent push or its
	 * credit has changed (todo.c). */
	uint64_t touched[SW_PLACE_SERVERS / 64];

	/* tensors, streams and groups */
	/* By index, which later streams reuse.  Numbers follow the order of
	 * declaration, and the counts below are such numbers. */
	struct sw_wtensor *tensors;
	/* The index of a number, modulo SW_TENSORS. */
	uint16_t by_number[SW_TENSORS];
	uint32_t n_tensors, n_admitted;
	/* Sets of indices.  open: rounds or collectives are open.  ended: an
	 * ended life lies here, to be settled (faults.c).  dying: an ended
	 * group lies here, with collectives to end (group_end.c).  lacking: to
	 * check for gone ranks (deaths.c).  closing: a closed group lies here
	 * (group_end.c).  here: a stream whose ranks are all local has chunks
	 * to do (coll.c).  sw_worker_take works on the last five. */
	struct sw_bitmap open, ended, dying, lacking, closing, here;
	/* Indices that this lane has; the control thread may be building at
	 * all other indices. */
	struct sw_bitmap added;
	/* Streams built but not added.  The control thread owns the set; the
	 * lcore does from sw_worker_add to events.declared. */
	struct sw_bitmap new_streams;
	uint64_t set_words[8 * (SW_TENSORS / 64 + 1)];
	/* Where the look at closed streams, and local work, continue. */
	uint32_t close_turn, here_turn;
	uint32_t n_dead; /* dead tensors and streams */
	/* In other lanes: tensors that lane 0 has declared. */
	uint32_t n_wanted;
	/* The control thread's: tensors built, indices in use. */
	uint32_t n_built, n_places;
	uint32_t n_open; /* push_pulls */
	/* A stream has waited for SW_STILL_NS (look.is_still). */
	bool is_still;
	bool has_summed; /* lane 0's: events.summed is due */
	/* The stream whose window has moved in this burst, and the link where;
	 * NULL: none. */
	struct sw_wtensor *moved;
	struct sw_link *moved_at;
	struct sw_sched sched;
	struct sw_worker_tuning tuning;
	/* The highest round that any tensor has begun. */
	uint32_t highest_round;
	struct sw_orders orders; /* the order of the tensors' indices */
	/* By key index: the tensor's index, and the newest key that used the
	 * key index; SW_KEY_NONE: none. */
	uint32_t by_key[SW_KEY_INDICES], newest[SW_KEY_INDICES];
	/* By index of the identifier: the index where a group's life lies. */
	uint32_t by_group[SW_KEY_INDICES];
	/* Lane 0's: by hash of the group's name, 1 + the index where the life
	 * of an open group lies; 0: the place is free. */
	uint16_t groups[2 * SW_TENSORS];
	uint32_t order_words[SW_ORDERS_WORDS * SW_TENSORS];
	char job[SW_NAME_MAX], node_name[SW_NAME_MAX];
	const struct sw_secret *secret; /* NULL: frames have no tags */

	/* scratch of one turn */
	/* The sources of one chunk at the local ranks, and their factors
	 * (SW_PREMUL_SUM). */
	const void *sources[SW_LOCAL_RANKS];
	double scales[SW_LOCAL_RANKS];
	/* holds a control frame, or one scaled source */
	_Alignas(64) uint8_t payload[SW_PAYLOAD_MAX];
	/* 32-bit sums of 16-bit types. */
	_Alignas(64) float sums[SW_PAYLOAD_MAX / 2];
	struct sw_tagging tagging; /* the PUSHes being sent to a link */
	/* Payloads of the frames of one tx: sums of the local ranks, and
	 * copies; in use up to made_at.  Not zeroed. */
	uint8_t *made_at;
	_Alignas(64) uint8_t made[SW_TX_BURST][SW_MADE_BYTES];
	/* Placement by server, and by lane.  Not zeroed. */
	struct sw_place_map map, lane_map;
};

/* sw_worker_open - open a worker that starts to join at the first tick.
 * Its arguments are borrowed until close, unless copied.  Each lane opens on
 * its own lcore; in other lanes call only close, take, build, unbuild, free,
 * engine and stats. These lanes call only events.keep.
 * @w  zeroed once; its counters continue from one open to the next
 * @ports  @n_ports ports; open reads their ip, is_inner and is_trusted
 * Errors: SW_EINVAL, SW_ENOMEM. */
int sw_worker_open(struct sw_worker *w, const struct sw_params *params,
	const struct sw_env *env, const struct sw_worker_events *events,
	const struct sw_worker_job *job, struct sw_port *const *ports,
	uint32_t n_ports, uint64_t now_ns);

/* sw_worker_close - free everything at once, even if rounds are open. */
void sw_worker_close(struct sw_worker *w);

struct sw_worker_tensor {
	const char *name; /* 1 to 127 bytes; copied */
	uint64_t n_elems;
	uint32_t dtype;
	uint32_t priority; /* or SW_PRIORITY_BY_USE */
	/* Where results go; a single local rank also contributes from there.
	 * Borrowed until sw_worker_close. */
	void *base;
	/* For a growing tensor: a word per SW_GRANULE bytes.  The worker sets
	 * it to the round's number when all results there are written, and
	 * never reads it.  Borrowed as base.  NULL: any other tensor. */
	_Atomic uint32_t *granules;
	bool is_async;
	/* For a stream of collectives: the ranks of its group in the order of
	 * their parts, one of ours among them, and 2^window_log2 slots at each
	 * server. dtype, n_elems and base are then unused. */
	uint8_t window_log2;   /* 0: a tensor */
	uint32_t n_ranks;      /* at most SW_GROUP_RANKS */
	const uint16_t *ranks; /* copied */
	/* For a stream at the index of a freed one: its id, which follows the
	 * freed stream's (sw_id_next).  0: at a new index, which is its id. */
	uint32_t again;
};

/* sw_worker_build - build @n more tensors in the control thread, after
 * events.declared of the last batch: the same in each lane, lane 0 first.  The
 * lcore sees none until sw_worker_add.  Names differ; new indices continue from
 * the existing ones.
 * Errors: SW_EINVAL (dtype, size, name, ranks, again), SW_EBUSY too many,
 * SW_EAGAIN their memory is being prepared (env.h), SW_ENOMEM; nothing is built
 * then. */
int sw_worker_build(struct sw_worker *w, const struct sw_worker_tensor *tensors,
	uint32_t n);

/* sw_worker_unbuild - drop, in the control thread, the tensors built behind the
 * first @n.  They must not have been added. */
void sw_worker_unbuild(struct sw_worker *w, uint32_t n);

/* sw_worker_free - free, in the control thread, the memory and the index of
 * @tensor, after its events.gone; in each lane. */
void sw_worker_free(struct sw_worker *w, uint32_t tensor);

/* sw_worker_add - declare the built tensors, in all lanes.  The worker calls
 * events.declared when all servers have admitted them.
 * Errors: SW_EBUSY the last batch is not admitted yet, or why the job ended. */
int sw_worker_add(struct sw_worker *w);

/* sw_worker_declare - build and add @n tensors, for a worker of one lane and
 * one thread. */
int sw_worker_declare(struct sw_worker *w,
	const struct sw_worker_tensor *tensors, uint32_t n);

/* sw_worker_source - set where local rank @local has its contributions to a
 * declared tensor.  Call it once for each of several local ranks, before the
 * rank asks for a round.  @base is borrowed until sw_worker_close. */
void sw_worker_source(
	struct sw_worker *w, uint32_t tensor, uint32_t local, const void *base);

/* From here on, ids name tensors and streams; a stale id names nothing. */

/* One push_pull or broadcast of a tensor, as one local rank asks for it.  For
 * an asynchronous tensor the buffer holds a delta before and the servers' value
 * after. */
struct sw_worker_round {
	uint32_t tensor, step;
	uint32_t local;
	uint64_t cookie; /* passed to events.done */
	/* Bytes, in whole elements, at the end of its buffer that are not
	 * written yet.  The worker reads them only after sw_worker_grow. */
	uint64_t lacks;
	enum sw_round_kind op;
	uint16_t root; /* for a copy: the rank that gives the bytes */
};

/* sw_worker_begin - ask for a round of a declared tensor for a local rank.  The
 * round starts when all local ranks have asked; the rank must not write its
 * buffer until events.done.
 * Errors: SW_EINVAL no such tensor, root, source or part of a buffer, or the
 * first round of an asynchronous tensor is not a broadcast; SW_EBUSY the rank
 * has asked already; SW_EAGAIN not admitted yet; SW_EMISMATCH its request
 * differs from an earlier local rank's.  A dead tensor returns its death
 * (sw_worker_why), an ended job the reason. */
int sw_worker_begin(struct sw_worker *w, const struct sw_worker_round *round);

/* sw_worker_grow - note that only @lacks bytes at the end of a local rank's
 * buffer are not written yet.  @lacks must not increase in a round.  Does
 * nothing if the rank has no open round.
 * Errors: SW_EINVAL no such tensor, more than before, no whole elements. */
int sw_worker_grow(
	struct sw_worker *w, uint32_t tensor, uint32_t local, uint64_t lacks);

/* One collective of a stream, as one local rank submits it. */
struct sw_worker_coll {
	uint32_t stream, local;
	enum sw_coll_kind kind;
	uint32_t dtype;
	enum sw_reduce_op op; /* SW_SUM if the kind sums nothing */
	double scale;         /* SW_PREMUL_SUM: this rank's factor */
	/* Elements of the tensor; for all_gather and reduce_scatter, of one
	 * rank's part. */
	uint64_t n_elems;
	/* Elements of the whole call, if this is only a piece; 0: n_elems. */
	uint64_t whole;
	/* Bytes from part to part in the buffer of all parts; 0: parts are
	 * contiguous. */
	uint64_t stride;
	uint16_t root; /* for SW_BCAST and SW_REDUCE: a rank of the job */
	/* This rank's contribution, and the place for its result.  They may be
	 * equal; for all_gather and reduce_scatter the rank's part may lie in
	 * the other buffer.  Borrowed until events.done. */
	const void *from;
	void *to;
	/* Sizes of the buffers; ignored for a buffer that this rank does not
	 * use. */
	uint64_t from_bytes, to_bytes;
	uint64_t cookie; /* passed to events.done */
	/* The call's number in the group, from 1, shared by its pieces.
	 * Different kinds under one number fail; with 0 the stream counts, and
	 * they wait. */
	uint32_t call;
};

/* sw_worker_coll - submit a collective.  All ranks of the group must submit the
 * same collectives to a stream in the same order.  Each starts when all local
 * ranks of the group have submitted it; they run in a window, one behind the
 * other.
 * Errors: SW_EINVAL no such stream, kind, type, count or root, a buffer too
 * short, or @coll->local is not in the group; SW_EAGAIN not admitted yet or too
 * many are open; SW_EMISMATCH it differs from an earlier local rank's;
 * SW_EABORTED, SW_ECLOSED another local rank, or this one, has closed the
 * group.  A dead stream returns its death, an ended job the reason. */
int sw_worker_coll(struct sw_worker *w, const struct sw_worker_coll *coll);

/* sw_worker_fault - return why a declared tensor is dead; NULL if it is not:
 * members declare or call it differently, its group was aborted, or a server
 * has no room.  The job continues.
 * sw_worker_why - describe that fault in @out, and return @out, or NULL.
 * sw_worker_death - return the error with which its rounds fail; 0 if it is
 * alive. */
const struct sw_fault *sw_worker_fault(
	const struct sw_worker *w, uint32_t tensor);
const char *sw_worker_why(
	const struct sw_worker *w, uint32_t tensor, char out[SW_TEXT_MAX]);
int sw_worker_death(const struct sw_worker *w, uint32_t tensor);

/* sw_worker_uses - does an open collective of @local read or write the @bytes
 * at @base?  Looks at some collectives in each call: *at is 0 at first and
 * SW_TENSORS at the end.  From the first call on, @local must not submit a
 * collective that uses these bytes. */
bool sw_worker_uses(const struct sw_worker *w, uint32_t local, const void *base,
	uint64_t bytes, uint32_t *at);

/* sw_worker_abort - kill all streams of the group of @stream for its member,
 * local rank @local.  Open collectives end with @err and @why: here in the next
 * sw_worker_take, and at all members.
 * @err  SW_EABORTED, or SW_EEXPIRED after a timeout: adds the missing ranks to
 * @why, and lets the coordinator choose one sentence for all members */
void sw_worker_abort(struct sw_worker *w, uint32_t stream, uint32_t local,
	int err, const char *why);

/* sw_worker_close_group - close all streams of the group of @stream for its
 * member @local, which submits nothing to them afterwards.  Open collectives
 * end as with sw_worker_abort.  Servers free the windows when all members have
 * closed them. */
void sw_worker_close_group(
	struct sw_worker *w, uint32_t stream, uint32_t local);

/* sw_worker_clash - kill a known tensor that local rank @local declares
 * differently, as @d. */
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

/* sw_worker_local_left - note that local rank @local asks for nothing from now
 * on.  A round that lacks it ends the job; a stream that lacks it ends its
 * group.
 * sw_worker_local_died - note that @local died, for @why: end its groups, and
 * the rounds that it has not begun; if no group without it is left, the job.
 * Its buffers stay borrowed. */
void sw_worker_local_left(struct sw_worker *w, uint32_t local);
void sw_worker_local_died(
	struct sw_worker *w, uint32_t local, const struct sw_fault *why);

/* sw_worker_set_tuning - set partition and credit of this worker in bytes (0:
 * the policy's) from its next part on, until the job's tuning changes.
 * Errors: SW_EINVAL (sw_sched_check says why); nothing changes then. */
int sw_worker_set_tuning(
	struct sw_worker *w, uint64_t part_bytes, uint64_t credit_bytes);

/* sw_worker_tune - ask the coordinator for other tuning, which all members
 * apply when they receive it (policy.h).  A second call replaces the first,
 * unless the coordinator has already numbered the first.
 * Errors: SW_EINVAL (sw_sched_check says why), SW_EAGAIN the job does not run
 * yet, or why it ended. */
int sw_worker_tune(struct sw_worker *w, const struct sw_policy *policy,
	uint64_t part_bytes, uint64_t credit_bytes);

/* sw_worker_leave - end the job; open push_pulls end with SW_ECLOSED.
 * @why  NULL: a clean end; else the reason for the other members */
void sw_worker_leave(struct sw_worker *w, const struct sw_fault *why);

/* sw_worker_end_of - return why the job ended; 0 if it has not. */
int sw_worker_end_of(const struct sw_worker *w);

/* A snapshot of a worker's state. */
struct sw_worker_view {
	enum sw_worker_state state;
	/* Our ranks begin at first; size counts all; 0: the job has not begun.
	 */
	uint16_t first, size;
	uint16_t n_local;
	uint64_t epoch;  /* the job's epoch, once it has begun */
	uint32_t n_open; /* push_pulls */
	uint32_t round;  /* the highest round that any tensor has begun */
	uint64_t now_ns; /* the time of its last turn, or of open */
};

/* A tensor or stream of a group that has made no progress for a while. */
struct sw_worker_wait {
	char name[SW_NAME_MAX];
	bool is_stream;
	uint32_t n_missing; /* chunks without a result */
	uint64_t still_ns;
	char who[96]; /* "ranks 4-7 of 8", as far as they are known */
};

/* The collectives of a group at this member.  Bytes count a rank's buffer, or
 * its part; times are from the first local rank's call to the end. */
struct sw_worker_group {
	char name[SW_NAME_MAX];
	uint32_t n_open; /* collectives, each piece of a long one */
	uint64_t n_done, bytes, ns;
};

enum { SW_LOOK_GROUPS = 32 };

/* The answer of sw_worker_describe, which continues at next and next_group;
 * zero it first. */
struct sw_worker_waits {
	uint32_t n, n_more; /* entries of all, and further waits */
	struct sw_worker_wait all[8];
	uint32_t n_groups; /* groups described, the first ones */
	struct sw_worker_group groups[SW_LOOK_GROUPS];
	uint32_t next, next_group;
};

/* sw_worker_describe - find the groups, and the tensors without progress for
 * @least_ns.  Each call looks at some of them; returns true at the end.
 * Thread: the worker's. */
bool sw_worker_describe(const struct sw_worker *w, uint64_t least_ns,
	struct sw_worker_waits *out);

/* sw_worker_payload - return the bytes of a full chunk, once the job runs, in
 * any lane.  The control thread may also call it. */
static inline uint32_t sw_worker_payload(const struct sw_worker *w)
{
	return (w->lane_i ? w->lanes->zero : w)->params.payload;
}

/* sw_worker_has_dead - is any tensor or stream dead (sw_worker_death)? */
static inline bool sw_worker_has_dead(const struct sw_worker *w)
{
	return w->n_dead;
}

static inline struct sw_worker_view sw_worker_view(const struct sw_worker *w)
{
	return (struct sw_worker_view){.state = w->state,
		.first = w->first,
		.size = w->size,
		.n_local = w->n_local,
		.epoch = w->epoch,
		.n_open = w->n_open,
		.round = w->highest_round,
		.now_ns = w->now_ns};
}

/* sw_worker_call - name the newest call of tensor or stream @id, for a trace:
 * the wire key, and the number of its round or collective.  Returns false if
 * there is none.  Thread: the worker's. */
bool sw_worker_call(const struct sw_worker *w, uint32_t id, uint32_t *key,
	uint32_t *number);

/* sw_worker_tuning - return the tuning in use, with the credit of all lanes
 * together. */
struct sw_job_tuning sw_worker_tuning(const struct sw_worker *w);

static inline struct sw_engine *sw_worker_engine(struct sw_worker *w)
{
	return &w->engine;
}

/* A session of a lane with one server. */
struct sw_worker_path {
	const char *server; /* its name */
	bool is_open;
	uint64_t push_bytes, result_bytes; /* payloads sent once, and taken */
	struct sw_peer_view path;
};

/* sw_worker_path - describe the session with server @i of the lane; false: the
 * lane has fewer servers. */
bool sw_worker_path(
	const struct sw_worker *w, uint32_t i, struct sw_worker_path *out);

/* sw_worker_stats - return the counters.  The lcore writes them; other threads
 * read by sw_word. */
static inline const struct sw_stats *sw_worker_stats(const struct sw_worker *w)
{
	return &w->stats;
}

#endif
