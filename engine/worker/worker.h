/* worker.h - the worker's side of a job: chunks out, sums in.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * One lcore, or one lane of several (lane.h).  A worker has one to 1,023 local
 * ranks, each with a buffer per tensor.  A round begins when all of them have
 * asked for it; their buffers are summed while a PUSH is built, and the result
 * goes to a buffer of its own.  A single local rank has one buffer for both.
 *
 * A push goes through four files: local.c takes what local ranks ask for,
 * round.c makes a task of it for the scheduler, todo.c has the chunks that were
 * started, by link, and worker_tx.c sends them.  Results come in by worker.c.
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
#include "engine/sched/due.h"
#include "engine/sched/order.h"
#include "engine/sched/place.h"
#include "engine/sched/sched.h"
#include "engine/wire/coll.h"
#include "engine/wire/wire.h"
#include "engine/worker/lane.h"

enum {
	SW_TENSORS = SW_IDS, /* per worker, at a time */
	SW_ORDERS = SW_ORDERS_EACH * SW_TENSORS,
	SW_GROUP_RANKS = SW_MAX_MEMBERS * SW_LOCAL_RANKS, /* of a stream */
	SW_LOCAL_WORDS = SW_LOCAL_RANKS / 64 + 1, /* of a set of local ranks */
};

struct sw_worker_server {
	const char *name; /* for messages */
	struct sw_path path;
	uint16_t udp; /* for messages; 0: path.udp */
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
	/* A round of @local ended; @weight is the number of workers summed.
	 * @tensor is an id, here and below. */
	void (*done)(void *ctx, uint32_t tensor, uint32_t local,
		uint64_t cookie, int err, uint32_t weight);
	void *ctx;
	/* From sw_worker_take: no lane has stream @tensor any more, which the
	 * local ranks have closed: sw_worker_free is to follow. */
	void (*gone)(void *ctx, uint32_t tensor);
	/* From sw_worker_take: buffers of the dead stream @key (its server's)
	 * are given back before their pushes are folded.  What waits in a
	 * loopback of this lcore, or is lent to a server there, is to be copied
	 * (sw_loopback_copy_lent, sw_server_keep_stream), some in each call;
	 * true: all is.  NULL: it has none. */
	bool (*keep)(void *ctx, uint32_t key);
	/* From sw_worker_take: granules of growing tensors are summed.  NULL:
	 * there is no such tensor. */
	void (*summed)(void *ctx);
};

/* Streams are found by their group twice: those that are built by the control
 * thread, those that are added by the lcore. */
enum sw_kin_chain { SW_KIN_BUILT, SW_KIN_ADDED, SW_KIN_CHAINS };

/* The job's tuning, as a worker received it and asks for it. */
struct sw_worker_tuning {
	uint32_t number; /* the newest change's; 0: the JOINs' values hold */
	struct sw_job_tuning wanted; /* while a TUNE is owed: its values */
};

/* Who is gone, and what is done about the local ranks that died: all is looked
 * at twice. */
enum sw_deaths_step {
	SW_DEATHS_NOBODY,
	SW_DEATHS_JUDGED, /* is there a stream of others? */
	SW_DEATHS_ENDED,  /* there is: what they are in ends */
};

struct sw_deaths {
	uint32_t n_gone; /* local ranks that left or died */
	uint64_t gone[SW_LOCAL_WORDS], died[SW_LOCAL_WORDS];
	uint32_t local; /* the last that died, and why */
	char why[SW_TEXT_MAX];
	enum sw_deaths_step step;
	bool is_needed; /* there is such a stream */
	/* Members that died, as the coordinator says, and when that set grew;
	 * the member that died last, and why. */
	uint64_t members, learned_ns;
	uint16_t member;
	char text[SW_TEXT_MAX];
	/* Of an asynchronous job, which goes on without them: members that
	 * left, and when nothing of them can come any more; those of whom it
	 * cannot, which the other lanes read. */
	uint64_t left, past_at_ns, past;
};

struct sw_link;
struct sw_wtensor;

/* To be embedded; its fields are those of this folder alone. */
struct sw_worker {
	struct sw_engine engine;
	struct sw_params params;
	const struct sw_env *env;
	struct sw_worker_events events;
	struct sw_stats stats; /* since @w was zeroed */
	uint64_t now_ns, gap_ns;
	enum sw_worker_state state;
	uint16_t rank, n_members, n_local, n_ways;
	bool is_misrouted; /* the frame at hand landed on a wrong lcore */
	uint32_t lane_i, n_lanes;
	struct sw_lane *lanes; /* lane 0: to the others; else to lane 0 */
	/* Lanes that take this one's commands; those of them that do not run
	 * yet, are declaring, have not left. */
	uint32_t n_others, n_awaited, n_declaring, n_staying;
	uint16_t first, size; /* ranks: ours from first on, of all */
	uint16_t firsts[SW_MAX_MEMBERS + 1]; /* of each member; then size */
	struct sw_deaths deaths;
	uint64_t epoch;      /* of the job, as the coordinator says */
	uint64_t joined;     /* members, from the coordinator */
	uint64_t started_ns; /* of JOINING */
	uint64_t warned_ns;  /* last line about waiting */
	/* The look for what stands still, some of it in each tick: when it goes
	 * on, at which tensor; what it has found: how many, the one that has
	 * for the longest (SW_TENSORS: none), is a stream among them. */
	struct {
		uint64_t at_ns;
		uint32_t next, n, worst;
		bool is_still;
	} look;
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
	uint8_t lane_of[SW_PLACE_SERVERS]; /* of all */
	uint32_t n_links;
	struct sw_due due[SW_MAX_PORTS]; /* sessions are link indices */
	/* Of a link that has a push: the tensor's order, and how much of the
	 * tensor's part that lies there went before, in 2^-32. */
	uint64_t turn_keys[SW_PLACE_SERVERS];
	struct sw_grants grants; /* of links to other machines */
	struct sw_link *links;
	/* Links whose most urgent push, or credit for it, may be another one
	 * than their place in @due says (todo.c). */
	uint64_t touched[SW_PLACE_SERVERS / 64];
	/* By index.  They are numbered in the order of declaration, and counts
	 * are such numbers; an index has one stream after another. */
	struct sw_wtensor *tensors;
	uint16_t by_number[SW_TENSORS]; /* modulo that: an index */
	uint32_t n_tensors, n_admitted;
	/* Of their indices: of which something is open; and those of which
	 * sw_worker_take does some in each turn: dead streams that end
	 * (mismatch.c), what may lack a local rank that is gone (deaths.c),
	 * streams that are closed (stream_gone.c). */
	struct sw_bitmap open, dying, lacking, closing;
	/* Those that this lane has; at others control may be building. */
	struct sw_bitmap added;
	/* Built, and not added: the control thread's, the lcore's from
	 * sw_worker_add to events.declared. */
	struct sw_bitmap new_streams;
	uint64_t set_words[6 * (SW_TENSORS / 64 + 1)];
	uint32_t close_turn; /* where the look at closed streams goes on */
	uint32_t n_dead;     /* tensors, and streams */
	uint32_t n_wanted;   /* but lane 0: tensors that it has declared */
	uint32_t n_built, n_places; /* control: how many, at how many indices */
	uint32_t n_open;            /* push_pulls */
	bool is_still;   /* a stream has stood still for long (the same) */
	bool has_summed; /* events.summed is to be called; lane 0's */
	/* The stream whose window has moved in this burst, and at which link;
	 * NULL: none has. */
	struct sw_wtensor *moved;
	struct sw_link *moved_at;
	/* Streams whose ranks are all here (stream_local.c). */
	struct sw_wtensor *here;
	struct sw_sched sched;
	struct sw_worker_tuning tuning;
	uint32_t highest_round;  /* of any tensor that has begun */
	struct sw_orders orders; /* of their indices */
	/* By the index of a key: that of the tensor, or SW_KEY_NONE; and the
	 * newest key that was there, the same. */
	uint32_t by_key[SW_KEY_INDICES], newest[SW_KEY_INDICES];
	/* The stream that came last of groups of that hash. */
	struct sw_wtensor *groups[SW_KIN_CHAINS][SW_TENSORS];
	uint32_t order_words[SW_ORDERS_WORDS * SW_TENSORS];
	char job[SW_NAME_MAX], node_name[SW_NAME_MAX];
	/* Of one chunk: what local ranks give of it, and times which factors.
	 */
	const void *sources[SW_LOCAL_RANKS];
	double scales[SW_LOCAL_RANKS];
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
	/* Of a growing tensor, of which local ranks say in each round how far
	 * their buffers are there: a word for each SW_GRANULE bytes, which
	 * becomes the round's number when all results that lie there are
	 * written; never read.  Borrowed as base.  NULL: of any other. */
	_Atomic uint32_t *granules;
	bool is_async;
	/* Or a stream of collectives of these ranks of the job, in the order of
	 * their parts, one of ours among them, with 2^window_log2 slots at each
	 * server; dtype, n_elems and base are unused then. */
	uint8_t window_log2;   /* 0: a tensor */
	uint32_t n_ranks;      /* at most SW_GROUP_RANKS */
	const uint16_t *ranks; /* copied */
	/* Its id at the index of a stream that has gone, and which it follows
	 * (sw_id_next); 0: at a new index, which is its id. */
	uint32_t again;
};

/* sw_worker_build - control: @n more tensors, with all that they need, which
 * nobody sees until sw_worker_add, and after events.declared of those before.
 * In each lane the same, behind the same, and in lane 0 first; after it runs.
 * New indices go on from those that there are.  Their names differ.
 * Errors: SW_EINVAL (dtype, size, name, ranks, again), SW_EBUSY there are too
 * many, SW_EAGAIN memory for them is being prepared (env.h), SW_ENOMEM; nothing
 * is built then. */
int sw_worker_build(struct sw_worker *w, const struct sw_worker_tensor *tensors,
	uint32_t n);

/* sw_worker_unbuild - control: but for the first @n, which are added, or not
 * yet, none was built. */
void sw_worker_unbuild(struct sw_worker *w, uint32_t n);

/* sw_worker_free - control: after events.gone of @tensor, free its memory and
 * its index; in each lane. */
void sw_worker_free(struct sw_worker *w, uint32_t tensor);

/* sw_worker_add - declare those that were built; the other lanes, too.
 * events.declared is called when all servers have admitted them.
 * Errors: SW_EBUSY the last ones are not admitted yet, or why the job ended. */
int sw_worker_add(struct sw_worker *w);

/* sw_worker_declare - both, in one thread, of a worker of one lane. */
int sw_worker_declare(struct sw_worker *w,
	const struct sw_worker_tensor *tensors, uint32_t n);

/* sw_worker_source - where local rank @local has its contributions to a
 * declared tensor; of each of several it must be told once, before it asks for
 * a round.  @base is borrowed until sw_worker_close. */
void sw_worker_source(
	struct sw_worker *w, uint32_t tensor, uint32_t local, const void *base);

/* From here on, ids name tensors and streams; a stale one names nothing. */

/* One push_pull or broadcast of a tensor, as one local rank asks for it.  Of an
 * asynchronous tensor: a delta, after which it holds what the servers keep. */
struct sw_worker_round {
	uint32_t tensor, step;
	uint32_t local;
	uint64_t cookie; /* comes back in events.done */
	/* Bytes at the end of its buffer that are not there yet: whole
	 * elements; sw_worker_grow says when they are.  Until then nothing of
	 * them is read. */
	uint64_t lacks;
	enum sw_round_kind op;
	uint16_t root; /* copy: the rank whose bytes all get */
};

/* sw_worker_begin - a local rank asks for a round of a declared tensor, which
 * starts when all have.  Until events.done it may not write its buffer.
 * events.done is called when it ends, in order of completion.
 * Errors: SW_EINVAL no such tensor, root, source or part of a buffer, or the
 * first round of an asynchronous tensor is no broadcast; SW_EBUSY it has asked
 * already, SW_EAGAIN not admitted yet, or why the job ended (SW_ECLOSED: it was
 * left); SW_EMISMATCH it asks for something else than a local rank before it,
 * or the tensor is dead (sw_worker_why); SW_EPEER one has left: this ends the
 * job. */
int sw_worker_begin(struct sw_worker *w, const struct sw_worker_round *round);

/* sw_worker_grow - of what a local rank has asked for only @lacks bytes at the
 * end of its buffer are not there yet, so many or less than before.  What
 * follows nothing that it has asked for, or what has ended, is no error.
 * Errors: SW_EINVAL no such tensor, more than before, no whole elements. */
int sw_worker_grow(
	struct sw_worker *w, uint32_t tensor, uint32_t local, uint64_t lacks);

/* One collective of a stream, as one local rank submits it. */
struct sw_worker_coll {
	uint32_t stream, local;
	enum sw_coll_kind kind;
	uint32_t dtype;
	enum sw_reduce_op op; /* SW_SUM where nothing is summed */
	double scale;         /* SW_PREMUL_SUM: what this member's are times */
	/* Elements: of the tensor; of all_gather and reduce_scatter those of
	 * one rank's part. */
	uint64_t n_elems;
	uint64_t whole;  /* of the call that this is a piece of; 0: n_elems */
	uint64_t stride; /* bytes from part to part, in the buffer that has
			    all of them; 0: one lies behind the other */
	uint16_t root;   /* SW_BCAST, SW_REDUCE: a rank of the job */
	/* What this rank gives, and where its result goes; may be the same
	 * (all_gather, reduce_scatter: the rank's part in the other).
	 * Borrowed until events.done. */
	const void *from;
	void *to;
	/* Bytes that are there; of a buffer that is not used any number. */
	uint64_t from_bytes, to_bytes;
	uint64_t cookie; /* comes back in events.done */
	/* Its number in the group, from 1, and that of its pieces: other kinds
	 * under one number fail.  0: the stream counts, and they wait. */
	uint32_t call;
};

/* sw_worker_coll - submit a collective.  All ranks of the group submit the same
 * ones to a stream in the same order; each starts when all local ranks of the
 * group have submitted it, and they run behind each other, in a window.
 * events.done is called when it ends.
 * Errors: SW_EINVAL no such stream, kind, type, count or root, a buffer is too
 * short for the group, or @coll->local is not in it; SW_EAGAIN not admitted yet
 * or too many are open; SW_EMISMATCH it is another one than a local rank
 * submitted before it, or the stream is dead (sw_worker_why), or SW_EABORTED,
 * SW_EREFUSED; SW_ECLOSED the local rank has closed its group; or why the job
 * ended. */
int sw_worker_coll(struct sw_worker *w, const struct sw_worker_coll *coll);

/* sw_worker_why - why a declared tensor is dead: members declare it, or call it
 * in one round, differently, its group was aborted, or a server has no room for
 * it.  That round, and all that follow, end with sw_worker_death, an error; the
 * job goes on.  NULL, 0: it is not. */
const char *sw_worker_why(const struct sw_worker *w, uint32_t tensor);
int sw_worker_death(const struct sw_worker *w, uint32_t tensor);

/* sw_worker_uses - does a collective of @local that is open read or write the
 * @bytes of memory at @base?  Looks at some, from *at on, which is 0 at first;
 * SW_TENSORS: there are no more.  What it submits from the first look on is not
 * to use it. */
bool sw_worker_uses(const struct sw_worker *w, uint32_t local, const void *base,
	uint64_t bytes, uint32_t *at);

/* sw_worker_abort - local rank @local, a member of it, ends the group of
 * @stream: all its streams are dead.  Their open collectives end with @err and
 * @why, here in the next sw_worker_take, and at all members.
 * @err  SW_EABORTED; or SW_EEXPIRED, a timeout has passed: the ranks that are
 * missing are added to @why as far as they are known, and the coordinator
 * decides, so that all members get one sentence when several expire at the same
 * time. */
void sw_worker_abort(struct sw_worker *w, uint32_t stream, uint32_t local,
	int err, const char *why);

/* sw_worker_close_group - local rank @local is through with all streams of the
 * group of @stream, which it must be in, too: it submits nothing to them any
 * more.  What is open of them ends as with sw_worker_abort.  Servers free their
 * windows when all members have closed them. */
void sw_worker_close_group(
	struct sw_worker *w, uint32_t stream, uint32_t local);

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
 * that lacks it ends the job, a stream its group, now or when another asks for
 * it.  sw_worker_local_died - it will not, for @why: the groups that it is in
 * end, and rounds that it has not begun; if there is no group of others, the
 * job.  Its buffers are still borrowed. */
void sw_worker_local_left(struct sw_worker *w, uint32_t local);
void sw_worker_local_died(struct sw_worker *w, uint32_t local, const char *why);

/* sw_worker_set_tuning - partition and credit of this worker from its next part
 * on, in bytes, 0: the policy's; until the job's change.
 * Errors: SW_EINVAL (sw_sched_check says why); nothing changes then. */
int sw_worker_set_tuning(
	struct sw_worker *w, uint64_t part_bytes, uint64_t credit_bytes);

/* sw_worker_tune - ask the coordinator for other tuning for all members, which
 * go over when they receive it (policy.h).  A second call before the first was
 * numbered takes its place.
 * Errors: SW_EINVAL (sw_sched_check says why), SW_EAGAIN the job does not run
 * yet, or why it ended. */
int sw_worker_tune(struct sw_worker *w, const struct sw_policy *policy,
	uint64_t part_bytes, uint64_t credit_bytes);

/* sw_worker_leave - end the job; open push_pulls end with SW_ECLOSED.
 * @err, @text  0 and NULL: a clean end; else what the other members are told */
void sw_worker_leave(struct sw_worker *w, int err, const char *text);

/* sw_worker_end_of - why nothing new can be begun; 0 when it can. */
int sw_worker_end_of(const struct sw_worker *w);

/* What a worker is and has now. */
struct sw_worker_view {
	enum sw_worker_state state;
	uint16_t first, size; /* ranks: ours from first on, of all; size 0: the
				 job has not begun */
	uint16_t n_local;
	uint64_t epoch;     /* of the job, once it has begun */
	uint32_t n_tensors; /* declared, in all */
	uint32_t n_open;    /* push_pulls */
	uint32_t round;     /* the highest of any tensor that has begun */
	uint64_t now_ns;    /* when it was opened, or of its last turn */
};

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
		.n_tensors = w->n_tensors,
		.n_open = w->n_open,
		.round = w->highest_round,
		.now_ns = w->now_ns};
}

/* sw_worker_tuning - those in use, credit_bytes that of all lanes. */
struct sw_job_tuning sw_worker_tuning(const struct sw_worker *w);

static inline struct sw_engine *sw_worker_engine(struct sw_worker *w)
{
	return &w->engine;
}

/* sw_worker_stats - written by the lcore; others read it by sw_word. */
static inline const struct sw_stats *sw_worker_stats(const struct sw_worker *w)
{
	return &w->stats;
}

#endif
