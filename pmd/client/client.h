/* client.h - inside of libsumwire.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_CLIENT_CLIENT_H
#define SW_PMD_CLIENT_CLIENT_H

#include <pthread.h>
#include <stdbool.h>

#include "conf/launch.h"
#include "pmd/client/edge.h"
#include "pmd/client/folder.h"
#include "pmd/client/rows.h"
#include "pmd/client/segment.h"
#include <sumwire/coll.h>
#include <sumwire/sumwire.h>

enum {
	SW_GROUP_NAME_MAX = 100, /* bytes; the kind comes behind it */
	SW_OWN_CALL_BYTES = 96,  /* of a rank's own call, in its sentence */
};

enum sw_tensor_state {
	SW_TENSOR_IDLE,
	SW_TENSOR_OPEN,  /* pushed */
	SW_TENSOR_ENDED, /* completed, not yet reported to the caller */
};

/* Memory of the library's own, through which a piece goes. */
struct sw_stage {
	char *base; /* NULL: not allocated yet */
	struct sw_edge_place_at at;
	bool is_used;
};

/* Stages that no channel has: @n of @each bytes, one behind the other. */
struct sw_stage_spare {
	struct sw_stage_spare *next;
	struct sw_stage first;
	uint64_t each;
	uint32_t n;
};

enum {
	SW_STAGES_SMALL = 16, /* of SW_STAGE_SMALL bytes each */
	SW_STAGES_LARGE = 3,  /* of a whole piece */
	SW_STAGE_SMALL = 16 << 10,
};

/* One stream of a group, and what is called on it. */
struct sw_channel {
	struct sw_tensor *stream;     /* NULL: not opened yet */
	struct sw_call *first, **end; /* with pieces to put, in order */
	uint32_t n_pieces;            /* at the agent */
	struct sw_stage small[SW_STAGES_SMALL], large[SW_STAGES_LARGE];
	uint64_t large_bytes; /* of each of those */
	/* Pieces that are to be put, in order, when their copies are there. */
	struct sw_call_piece *filling, **filling_end;
	struct sw_channel *next; /* of the client's */
};

struct sw_group {
	struct sw_client *client;
	struct sw_group *next;
	struct sw_group_past *past; /* of its name */
	uint32_t generation;        /* closed ones before it */
	uint32_t timeout_s;         /* 0: none */
	uint32_t n_calls;           /* that were not reported yet */
	uint64_t n_called;          /* so far, of all kinds */
	/* Everything on it ends with this error and sentence; 0: it is alive.
	 */
	int death;
	bool is_closed;
	bool is_close_sent; /* the agent knows of the close */
	bool is_given;      /* streams and stages were given back */
	bool is_due;        /* they are to be: no handle is left */
	bool is_released;   /* its callers have their buffers back */
	bool is_expired;    /* the agent was told to abort it */
	char why[SW_EDGE_WHY_BYTES + SW_OWN_CALL_BYTES];
	struct sw_channel channels[SW_N_COLL_KINDS];
	char name[SW_GROUP_NAME_MAX + 1];
	uint32_t n;
	uint16_t ranks[]; /* of the job, in the group's order */
};

/* How often groups of that name were closed: streams of the next one are called
 * otherwise. */
struct sw_group_past {
	struct sw_group_past *next;
	uint32_t n_closed;
	char name[SW_GROUP_NAME_MAX + 1];
};

/* Who copies the buffers of a collective that memcpy does not reach: pmd/cuda,
 * which embeds it.  Its functions are called with the lock held, return at
 * once, and make no call of a driver. */
struct sw_call_device {
	const struct sw_call_device_ops {
		/* Begin to copy, into a stage or out of it; sw_client_copied,
		 * with the same @piece, says that it is done. */
		void (*copy)(struct sw_call_device *d, uint32_t piece,
			const struct sw_rows *rows, bool is_into);
		/* What a piece sent from @rows is summed; it is not copied back
		 * yet. */
		void (*sum)(
			struct sw_call_device *d, const struct sw_rows *rows);
		/* The call has ended: nothing of it is copied any more.  0, or
		 * the error that it ends with if it has no other. */
		int (*end)(struct sw_call_device *d);
	} * ops;
	const void *owner; /* of several */
	bool is_ready;     /* else no piece of it goes */
	/* What it sends, set when it is called; 0 bytes: nothing. */
	const char *sent;
	uint64_t sent_bytes;
	/* Where all of its result comes, the same. */
	const char *received;
	uint64_t received_bytes;
};

struct sw_call;

/* sw_call_end_device - of a call that has a device, or none any more: it has
 * ended, once.  0, or the error of ops->end. */
int sw_call_end_device(struct sw_call *k);

/* A collective, from sw_coll until its end was reported.  It is cut into
 * pieces, each a collective of its own to the agent (client_call.c). */
struct sw_call {
	uint64_t handle;
	enum sw_tensor_state state;
	int status;
	struct sw_group *group;
	struct sw_channel *channel;
	uint64_t number;      /* in its group, from 1 */
	uint64_t deadline_ns; /* then the group is aborted; 0: never */
	struct sw_coll_args args;
	uint64_t piece;  /* elements of a part that a piece has */
	uint64_t next;   /* the first of those that are not put yet */
	uint32_t n_open; /* pieces that have not ended */
	/* Which of the two buffers lie in memory of sw_alloc, where. */
	bool has_from, has_to;
	struct sw_edge_place_at from, to;
	bool is_begun;                 /* else it may still fail */
	bool is_counted;               /* in n_unfinished */
	struct sw_call_device *device; /* NULL: memcpy does, or it has ended */
	uint32_t n_copying;            /* pieces that it has */
	uint32_t n_waits;              /* threads that wait for it */
	struct sw_call *later; /* of its channel; of those that have ended */
	char token[8];         /* of a barrier */
};

/* A piece at the agent, or back from it. */
struct sw_call_piece {
	uint64_t handle; /* the agent's; 0: none */
	struct sw_call *call;
	uint64_t at, n;         /* elements of each part */
	struct sw_stage *stage; /* NULL: both buffers are shared */
	int status;
	bool is_full;                /* its stage is, so it may be put */
	bool is_back;                /* the agent has done with it */
	struct sw_call_piece *later; /* to be put, to be copied out */
};

struct sw_calls {
	struct sw_call calls[SW_EDGE_COLLS];
	struct sw_call_piece pieces[SW_EDGE_COLLS];
	struct sw_call_piece *ended, **ended_end; /* to be copied out */
	struct sw_call *done, **done_end;         /* ended, to be reported */
	struct sw_channel *channels, *turn;       /* all; where to go on */
	uint64_t n_calls, n_pieces;               /* handles so far */
	uint32_t n_open;
	uint32_t n_unfinished;          /* that somebody has to work for */
	uint64_t expire_ns;             /* none is overdue before */
	bool is_moving;                 /* a thread copies, without the lock */
	const struct sw_group *copying; /* whose buffers; NULL: none */
	uint32_t n_releasing;           /* threads that wait for that to end */
};

/* Whose turn it is (client_turn.c). */
struct sw_turn {
	pthread_mutex_t lock;         /* of the client */
	pthread_cond_t changed, work; /* work: of the library's thread */
	pthread_cond_t done;          /* of watchers */
	uint32_t n_waiting;           /* for changed */
	uint32_t n_watchers;          /* of the program's, in sw_wait_ended */
	uint32_t n_claims;            /* that want to lead whatever comes */
	uint32_t n_users;   /* of the program's, that wait for handles */
	uint32_t n_pollers; /* of those, that spin */
	bool has_leader;
	bool is_asleep; /* the leader is, until a kick */
	bool has_thread, is_ending;
	bool is_idle;      /* the thread waits for work */
	uint64_t until_ns; /* then it looks by itself */
	pthread_t thread;
	int kick_fd, event_fd; /* event_fd -1: nobody asked for it */
	uint32_t n_summed;     /* as the last leader saw it */
};

struct sw_tensor {
	struct sw_client *client;
	void *data;
	const void *result;
	const char *name;
	uint64_t handle; /* the last one */
	enum sw_tensor_state state;
	int status;       /* of SW_TENSOR_ENDED */
	bool needs_value; /* asynchronous, and none was broadcast yet */
	uint32_t id;      /* as the agent knows it (edge.h) */
	uint32_t i;       /* index: counted in the order of declaration */
	uint64_t bytes;
	uint32_t old_round; /* of a growing one: in its granules before this */
	uint64_t memory_bytes; /* of sw_alloc; 0: it is a tensor */
	bool is_freed;         /* given back; its number may be used again */
};

/* What one sw_declare allocates. */
struct sw_client_batch {
	struct sw_segment data;
	struct sw_tensor *tensors;
	char (*names)[SW_EDGE_NAME_BYTES];
};

/* What lives on a client and ends before it does: others embed it. */
struct sw_client_part {
	struct sw_client_part *next;
	void (*close)(struct sw_client_part *);
	/* The memory of stages at @base is about to be unmapped.  Called
	 * without the lock, by one thread at a time. */
	void (*unpin)(struct sw_client_part *, const void *base);
};

struct sw_client {
	struct sw_settings settings; /* its texts are ours: */
	char *agent, *agent_user;
	char agent_path[SW_FOLDER_BYTES]; /* where agent is a name alone */
	int sock, bell, error_fd; /* error_fd: agent_error.h */
	struct sw_segment control_segment;
	struct sw_edge_control *control;
	struct sw_spsc submits, colls, completions;
	uint32_t rank, size, local_rank, local_size;
	uint64_t epoch; /* of the job */
	char job[SW_EDGE_NAME_BYTES];
	struct sw_launch launch;   /* what the environment says of those */
	struct sw_segment results; /* shared by several local ranks, to read */

	uint64_t n_pushes;     /* handles so far; they start at 1 */
	uint32_t n_idle_polls; /* sw_poll without a completion */
	/* One page that reads as zeros in a forked child: there the attachment
	 * is not ours. */
	bool *is_ours;
	int closed; /* error that every call returns from now on, or 0 */

	uint32_t n_tensors, n_batches;
	uint32_t next_batch; /* counts declares, as the agent does */
	uint32_t near;       /* as of sw_edge_declare */
	struct sw_tensor *tensors[SW_EDGE_TENSORS];
	uint32_t memories[SW_EDGE_TENSORS]; /* what sw_alloc gave */
	uint32_t n_memories;
	struct sw_client_batch batches[SW_EDGE_TENSORS];

	struct sw_turn turn;
	struct sw_calls calls;
	uint32_t n_allocs;
	struct sw_group *groups; /* the newest first */
	bool has_due;            /* among them one that is due */
	struct sw_group_past *pasts;
	struct sw_stage_spare *spares;
	struct sw_client_part *parts;
	uint32_t n_unpinning; /* threads that call those */

	char status[SW_EDGE_TEXT_BYTES]; /* last progress line of the agent */
	char closed_text[SW_EDGE_TEXT_BYTES];
};

/* sw_client_fail - note the sentence of an error for sw_last_error of this
 * thread and return @err. */
int sw_client_fail(struct sw_client *c, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* sw_client_close - the attachment is over: every call returns @err and @text
 * from now on.  Only the first reason counts. */
void sw_client_close(struct sw_client *c, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* sw_client_check - 0, or why the attachment cannot be used any more. */
int sw_client_check(struct sw_client *c);

/* sw_client_log - one line to the caller's log. */
void sw_client_log(const struct sw_settings *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* sw_client_rx - one message of the agent, if there is one; never blocks.
 * Progress lines and hang-ups are handled inside.
 * Returns its kind and fills @m and @fds[2] (owned by the caller), 0 when there
 * is none for the caller, or the error that closed the attachment. */
int sw_client_rx(struct sw_client *c, union sw_edge_msg *m, int *fds);

/* sw_client_give - the agent forgets memory that nothing uses, or a stream of a
 * group that was closed; its number may be used again. */
int sw_client_give(struct sw_client *c, struct sw_tensor *t);

/* sw_client_map - make memory of @bytes.  The caller leads. */
int sw_client_map(struct sw_client *c, uint64_t bytes, struct sw_tensor **out);

/* sw_client_open_stream - open one of @ranks, desc->n_elems of them; @desc has
 * SW_EDGE_STREAM as is_async.  Else as sw_declare. */
int sw_client_open_stream(struct sw_client *c,
	const struct sw_tensor_desc *desc, const uint16_t *ranks,
	struct sw_tensor **out);

/* --- client_lock.c: the lock, and sleeping without it --- */

/* Errors: SW_ENOMEM. */
int sw_turn_init(struct sw_turn *t);
void sw_turn_fini(struct sw_turn *t);

/* sw_client_lock - before anything of @c is used; false: this process was
 * forked, and nothing was locked. */
bool sw_client_lock(struct sw_client *c);
void sw_client_unlock(struct sw_client *c);

/* sw_client_enter - the same; 0, or why the attachment cannot be used: then
 * nothing is locked. */
int sw_client_enter(struct sw_client *c);

/* sw_client_lead - no other thread reads what the agent says, until
 * sw_client_follow. */
void sw_client_lead(struct sw_client *c);
void sw_client_follow(struct sw_client *c);

/* sw_client_sleep - of who leads: until the agent has written a message
 * (@events POLLIN) or can be sent one (POLLOUT), until it rings the bell, until
 * a kick, or @until_ns. */
void sw_client_sleep(struct sw_client *c, short events, uint64_t until_ns);

/* sw_client_doze - the same, or not at all if something has ended or is summed,
 * of which the agent tells only who dozes. */
void sw_client_doze(struct sw_client *c, short events, uint64_t until_ns);

/* sw_client_has_work - is there something to do, and nobody who waits and so
 * does it? */
bool sw_client_has_work(const struct sw_client *c);

/* sw_client_can_lead - is there nobody who works for all, or will at once? */
bool sw_client_can_lead(const struct sw_client *c);

/* sw_client_wait_changed - of who does not lead: until sw_client_changed, which
 * says that handles may have ended, or @until_ns; sw_client_wait_work - of the
 * library's thread: until sw_client_changed finds work for it, or @until_ns;
 * sw_client_wait_done - of a watcher: until sw_client_changed finds an end that
 * nobody waits for, or that nobody leads. */
void sw_client_wait_changed(struct sw_client *c, uint64_t until_ns);
void sw_client_wait_work(struct sw_client *c, uint64_t until_ns);
void sw_client_wait_done(struct sw_client *c, uint64_t until_ns);
void sw_client_changed(struct sw_client *c);

/* sw_client_next_done - the first collective that has ended, is not
 * reported, and that nobody waits for; NULL: none. */
struct sw_call *sw_client_next_done(const struct sw_client *c);

/* sw_client_call_watchers - if there is something for them. */
void sw_client_call_watchers(struct sw_client *c);

/* sw_client_kick - the leader, if it sleeps, has something to do;
 * sw_client_call_thread - it, or whoever else waits, has. */
void sw_client_kick(struct sw_client *c);
void sw_client_call_thread(struct sw_client *c);

/* --- client_await.c --- */

/* sw_client_await - of who leads: until a message of the agent comes; works for
 * all meanwhile.
 * Returns like sw_client_rx, and SW_ETIMEDOUT at @until_ns. */
int sw_client_await(
	struct sw_client *c, uint64_t until_ns, union sw_edge_msg *m, int *fds);

/* sw_client_send - of who leads: send @m, for which a full socket may have no
 * room yet; works for all meanwhile.
 * Errors: SW_ETIMEDOUT the agent has not read until @until_ns; SW_ECLOSED a
 * hang-up, whose reason the next message tells; why the attachment ended. */
int sw_client_send(
	struct sw_client *c, const void *m, size_t bytes, uint64_t until_ns);

/* --- client_tuning.c --- */

/* sw_client_ask - send a message and await its answer, SW_EDGE_TUNED; @what is
 * the name of the request. */
int sw_client_ask(
	struct sw_client *c, const void *m, size_t bytes, const char *what);

/* --- client_rx.c --- */

/* sw_client_find_tensor - the one whose push_pull @handle is, NULL: none. */
struct sw_tensor *sw_client_find_tensor(struct sw_client *c, uint64_t handle);

/* What the agent has said: completions; messages between declarations. */
void sw_client_rx_completions(struct sw_client *c);
void sw_client_rx_messages(struct sw_client *c);

/* --- client_turn.c: who works --- */

/* sw_client_turn - work for all that wait, or sleep until there is something
 * to do, @until_ns at most; or let another thread do so. */
void sw_client_turn(struct sw_client *c, uint64_t until_ns);

/* The thread that works when nobody waits.  Errors: SW_ENOMEM. */
int sw_client_start_thread(struct sw_client *c);
void sw_client_end_thread(struct sw_client *c);

/* --- client_memory.c --- */

/* sw_client_alloc - as sw_alloc, of the library's own. */
int sw_client_alloc(struct sw_client *c, size_t bytes, struct sw_tensor **out);

/* sw_client_find_memory - the memory of sw_alloc in which @bytes at @p lie;
 * false: none. */
bool sw_client_find_memory(const struct sw_client *c, const void *p,
	uint64_t bytes, struct sw_edge_place_at *out);

/* --- client_begin.c, client_coll.c: a collective begins --- */

/* sw_client_call - @args were checked; @ch is that of their kind; @device has
 * their buffers, NULL: they are this machine's memory.
 * Errors: SW_EBUSY, SW_ENOMEM. */
int sw_client_call(struct sw_group *g, struct sw_channel *ch,
	const struct sw_coll_args *args, struct sw_call_device *device,
	uint64_t *handle);

/* sw_client_stages - have stages for @args, which were checked, of a device;
 * where they lie.  Errors: those of sw_alloc. */
int sw_client_stages(struct sw_group *g, struct sw_channel *ch,
	const struct sw_coll_args *args, void **base, uint64_t *bytes);

/* sw_client_ready - before sw_client_coll for a device, with the lock held:
 * have stream and stages for it.  @bytes at @base are to be pinned; 0: none.
 * Errors: those of sw_client_coll. */
int sw_client_ready(struct sw_client *c, struct sw_group *g,
	const struct sw_coll_args *args, void **base, uint64_t *bytes);

/* sw_client_coll - as sw_coll, with the lock of @c held; @device as above.
 * Errors: SW_EINVAL @g is of another client, too. */
int sw_client_coll(struct sw_client *c, struct sw_group *g,
	const struct sw_coll_args *args, struct sw_call_device *device,
	uint64_t *handle);

/* --- client_call.c: collectives --- */

/* sw_client_find_call - that is open, or has ended and was not reported. */
struct sw_call *sw_client_find_call(struct sw_client *c, uint64_t handle);

/* sw_client_end_piece - as the agent says; false: there is none. */
bool sw_client_end_piece(struct sw_client *c, const struct sw_completion *done);

/* sw_client_move - put pieces, copy what is staged, @bytes at most.  Returns
 * whether something was done.  The lock is released meanwhile. */
bool sw_client_move(struct sw_client *c, uint64_t bytes);

/* sw_client_copied - what sw_call_device_ops' copy was to copy is there, or
 * never will be: @err.  Takes the lock. */
void sw_client_copied(struct sw_client *c, uint32_t piece, int err);

/* sw_client_drop_call - it ends with @status: no more of it is put. */
void sw_client_drop_call(struct sw_client *c, struct sw_call *k, int status);

/* --- client_push.c --- */

/* sw_client_submit - under the lock; @root 0: sum, else 1 + the rank that
 * broadcasts.  Errors: SW_EINVAL, SW_EBUSY, or the attachment is over. */
int sw_client_submit(struct sw_client *c, struct sw_tensor *t, uint32_t root,
	uint32_t step, uint64_t *handle);

/* sw_client_after_ms - the time @ms from now; sw_client_wait_until_ns - when a
 * wait that begins now has exceeded wait_timeout_s. */
uint64_t sw_client_after_ms(uint64_t ms);
uint64_t sw_client_wait_until_ns(const struct sw_client *c);

/* sw_client_ring - wake the agent, if it has said so in @flag. */
void sw_client_ring(const struct sw_client *c, _Atomic uint32_t *flag);

#endif
