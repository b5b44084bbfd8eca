/* client.h - libsumwire: a client, its lock, and sleep and wake-up of threads.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_CLIENT_CLIENT_H
#define SW_PMD_CLIENT_CLIENT_H

#include <pthread.h>
#include <stdbool.h>

#include "conf/launch.h"
#include "pmd/client/client_call.h"
#include "pmd/client/edge.h"
#include "pmd/client/folder.h"
#include "pmd/client/segment.h"
#include <sumwire/sumwire.h>

/* The lock, and the state of the leading thread (client_turn.c). */
struct sw_turn {
	pthread_mutex_t lock;         /* protects the client */
	pthread_cond_t changed, work; /* work: for the library's thread */
	pthread_cond_t done;          /* for watchers */
	uint32_t n_waiting;           /* threads that wait for changed */
	uint32_t n_watchers;          /* threads in sw_wait_ended */
	uint32_t n_claims;            /* threads in sw_client_lead */
	uint32_t n_users;             /* threads that wait for handles */
	uint32_t n_pollers;           /* users that spin */
	bool has_leader;
	bool is_asleep; /* the leader sleeps, until a kick */
	bool has_thread, is_ending;
	bool is_idle;      /* the thread waits for work */
	uint64_t until_ns; /* when the thread wakes by itself */
	pthread_t thread;
	int kick_fd, event_fd; /* event_fd -1: not requested */
	uint32_t n_summed;     /* n_summed as the last leader saw it */
};

struct sw_tensor {
	struct sw_client *client;
	void *data;
	const void *result;
	const char *name;
	uint64_t handle; /* last handle */
	enum sw_tensor_state state;
	int status;       /* status of SW_TENSOR_ENDED */
	bool needs_value; /* asynchronous, and no value broadcast yet */
	uint32_t id;      /* the agent's id (edge.h) */
	uint32_t i;       /* index, in the order of declaration */
	uint64_t bytes;
	uint32_t old_round; /* growing: round in its granules before the call */
	uint64_t memory_bytes; /* bytes of sw_alloc memory; 0: a tensor */
	bool is_freed;         /* freed; its index may be reused */
};

/* The memory of one sw_declare. */
struct sw_client_batch {
	struct sw_segment data;
	struct sw_tensor *tensors;
	char (*names)[SW_EDGE_NAME_BYTES];
};

/* A part of a client, such as a device, embedded in it.  sw_close closes the
 * parts before the client. */
struct sw_client_part {
	struct sw_client_part *next;
	void (*close)(struct sw_client_part *);
	/* Unpin the stages at @base, because their memory is about to be
	 * unmapped.  Called without the lock, by one thread at a time. */
	void (*unpin)(struct sw_client_part *, const void *base);
};

struct sw_client {
	struct sw_settings settings; /* its texts are these copies */
	char *agent, *agent_user;
	char agent_path[SW_FOLDER_BYTES]; /* if agent is only a name */
	int sock, bell, error_fd;         /* error_fd: agent_error.h */
	struct sw_segment control_segment;
	struct sw_edge_control *control;
	struct sw_spsc submits, colls, completions, notes;
	uint32_t rank, size, local_rank, local_size;
	uint64_t epoch; /* of the job */
	bool is_async;  /* the job is asynchronous */
	char job[SW_EDGE_NAME_BYTES];
	struct sw_launch launch;   /* rank and size from the environment */
	struct sw_segment results; /* local ranks share it; read-only */

	uint64_t n_pushes;     /* handles so far; they start at 1 */
	uint32_t n_idle_polls; /* sw_poll without a completion */
	/* In its own page, which reads as zeros in a forked child: a child is
	 * not attached. */
	bool *is_ours;
	int closed; /* the error of every later call, or 0 */

	uint32_t n_tensors, n_batches;
	uint32_t next_batch; /* counts declares, as the agent does */
	uint32_t near;       /* as in sw_edge_declare */
	struct sw_tensor *tensors[SW_EDGE_TENSORS];
	uint32_t memories[SW_EDGE_TENSORS]; /* of sw_alloc */
	uint32_t n_memories;
	struct sw_client_batch batches[SW_EDGE_TENSORS];

	struct sw_turn turn;
	struct sw_calls calls;
	uint32_t n_allocs;
	struct sw_group *groups; /* the newest first */
	bool has_due;            /* one of the groups is due */
	struct sw_group_past *pasts;
	struct sw_stage_spare *spares;
	struct sw_client_part *parts;
	uint32_t n_unpinning; /* threads that call parts */

	char status[SW_EDGE_TEXT_BYTES]; /* last progress line of the agent */
	char closed_text[SW_EDGE_TEXT_BYTES];
};

/* --- errors --- */

/* sw_client_fail - store the sentence of an error for this thread's
 * sw_last_error.  Returns @err. */
int sw_client_fail(struct sw_client *c, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* sw_client_fail_for - store the sentence, and the conflict in @why for this
 * thread's sw_last_conflict.  Returns @err. */
int sw_client_fail_for(struct sw_client *c, int err,
	const struct sw_edge_why *why, const char *text);

/* sw_client_close - end the attachment: every later call returns @err, with
 * this sentence.  A second call changes nothing. */
void sw_client_close(struct sw_client *c, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* sw_client_check - return 0, or the error that ended the attachment. */
int sw_client_check(struct sw_client *c);

/* sw_client_log - write one line to the caller's log. */
void sw_client_log(const struct sw_settings *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* --- time --- */

/* sw_client_after_ms - return the time @ms from now. */
uint64_t sw_client_after_ms(uint64_t ms);

/* sw_client_wait_until_ns - return the time at which a wait that begins now
 * exceeds wait_timeout_s. */
uint64_t sw_client_wait_until_ns(const struct sw_client *c);

/* --- the lock --- */

/* Errors: SW_ENOMEM. */
int sw_turn_init(struct sw_turn *t);
void sw_turn_fini(struct sw_turn *t);

/* sw_client_lock - lock @c before any other use of it.  Returns false, without
 * the lock, in a forked child. */
bool sw_client_lock(struct sw_client *c);
void sw_client_unlock(struct sw_client *c);

/* sw_client_enter - lock @c.  Returns 0, or, without the lock, the error that
 * ended the attachment. */
int sw_client_enter(struct sw_client *c);

/* --- leading --- */

/* sw_client_lead - wait until no other thread leads, then lead: until
 * sw_client_follow, only this thread receives from the agent. */
void sw_client_lead(struct sw_client *c);
void sw_client_follow(struct sw_client *c);

/* sw_client_can_lead - return whether no thread leads, and no thread that waits
 * for a handle is about to lead. */
bool sw_client_can_lead(const struct sw_client *c);

/* sw_client_has_work - return whether there is work that no waiting thread will
 * do. */
bool sw_client_has_work(const struct sw_client *c);

/* sw_client_next_done - return the first ended, unreported collective that no
 * thread waits for; NULL: none. */
struct sw_call *sw_client_next_done(const struct sw_client *c);

/* --- sleep, without the lock --- */

/* sw_client_sleep - let the leader sleep until the agent's socket is readable
 * (@events POLLIN) or writable (POLLOUT), until its bell, a kick or @until_ns.
 * Returns whether the socket is ready, or has hung up. */
bool sw_client_sleep(struct sw_client *c, short events, uint64_t until_ns);

/* sw_client_doze - do the same, and have the agent ring the bell for
 * completions and sums; return at once if one is there already.  Returns false
 * if the socket has nothing. */
bool sw_client_doze(struct sw_client *c, short events, uint64_t until_ns);

/* sw_client_wait_changed - let a thread that does not lead sleep until
 * sw_client_changed or @until_ns. */
void sw_client_wait_changed(struct sw_client *c, uint64_t until_ns);

/* sw_client_wait_work - let the library's thread sleep until sw_client_changed
 * finds work for it, or @until_ns. */
void sw_client_wait_work(struct sw_client *c, uint64_t until_ns);

/* sw_client_wait_done - let a watcher sleep until sw_client_changed finds that
 * a collective without a waiting thread has ended, or that no thread leads, or
 * until @until_ns. */
void sw_client_wait_done(struct sw_client *c, uint64_t until_ns);

/* --- wake --- */

/* sw_client_changed - wake the threads for which a change may matter. */
void sw_client_changed(struct sw_client *c);

/* sw_client_call_watchers - wake only the watchers, if one of them has
 * something to do. */
void sw_client_call_watchers(struct sw_client *c);

/* sw_client_kick - wake the leader, if it sleeps. */
void sw_client_kick(struct sw_client *c);

/* sw_client_call_thread - wake the leader and the threads that wait. */
void sw_client_call_thread(struct sw_client *c);

/* sw_client_ring - ring the agent's bell if @flag says that the agent sleeps.
 */
void sw_client_ring(const struct sw_client *c, _Atomic uint32_t *flag);

#endif
