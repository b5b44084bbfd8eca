/* agent.h - the agent's two threads and what they say to each other.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_NODE_AGENT_H
#define SW_APPS_NODE_AGENT_H

#include "apps/node/serve.h"
#include "engine/worker/worker.h"
#include "pmd/host/attach.h"

enum {
	AGENT_LOCAL_MAX = SW_LOCAL_RANKS,
	AGENT_RING_MIN = 256,
	/* Each command and report has a place, by its kind and what it is of,
	 * and is in its ring at most once, however late the other thread is.
	 * Of each process SERVE, GONE and TUNE, END or FREE; DECLARE; and since
	 * LEFT may have crossed what was put before, JOIN and LEAVE of two
	 * groups: */
	AGENT_COMMANDS = 3 * AGENT_LOCAL_MAX + 5,
	/* TUNED of each process, RUNNING, DECLARED, FAILED or ENDED, LEFT: */
	AGENT_REPORTS = AGENT_LOCAL_MAX + 4,
};

/* sw_agent_ring_size - entries of both rings, of an agent of @n_local: so none
 * is ever full, and lines may have the rest of it. */
static inline uint32_t sw_agent_ring_size(uint32_t n_local)
{
	uint32_t n = AGENT_RING_MIN;

	while (n < 4 * n_local)
		n *= 2;
	return n;
}

enum agent_command_kind {
	AGENT_JOIN,    /* the worker is there, or err */
	AGENT_SERVE,   /* take submits of local from client */
	AGENT_DECLARE, /* n tensors of local, which are built */
	AGENT_TUNE,    /* set what local asks for */
	AGENT_END,     /* a group, as local asks for */
	AGENT_FREE,    /* memory or a closed stream of local, its item n */
	AGENT_GONE,    /* local has closed, or died for the reason in text; the
			  others may go on */
	AGENT_LEAVE, /* release clients and tensors; err: what to tell others */
};

struct agent_command {
	enum agent_command_kind kind;
	int err;
	uint32_t local;
	uint32_t group; /* the one that it is of; sw_agent_command counts */
	struct sw_host_client *client;
	const struct sw_host_tensor *tensors; /* the host's, until release */
	uint32_t n, n_new; /* of them; those that were built for it */
	uint32_t first;    /* id of those; one local rank's are in a row */
	struct sw_edge_tune tune;
	struct sw_edge_end end;
	char text[SW_TEXT_MAX];
};

enum agent_report_kind {
	AGENT_STATUS,   /* a line for people; may be dropped */
	AGENT_RUNNING,  /* the job runs */
	AGENT_DECLARED, /* the batch is admitted, or err */
	AGENT_TUNED,    /* TUNE, END or FREE of local: done, or err */
	AGENT_FAILED,   /* the job failed; as the next */
	AGENT_ENDED,    /* no lcore reads or writes the clients' tensors: they
			   may be told that it is over */
	AGENT_LEFT,     /* nothing of the clients is used any more, nor the
			   worker */
};

struct agent_report {
	enum agent_report_kind kind;
	int err;
	bool is_dead; /* DECLARED: err is that of one that is */
	uint32_t size, first, local;
	uint64_t epoch;  /* RUNNING: of the job */
	uint32_t n_lost; /* lines since the last report; sw_agent_tell counts */
	char text[SW_TEXT_MAX + SW_NAME_MAX];
};

/* One process. */
struct agent_rank {
	uint32_t id, pid;
	bool is_here; /* the id is in use */
	bool is_gone; /* it hung up, was refused, or told that it is over */
};

/* The processes of one job, by local rank. */
struct agent_group {
	struct agent_rank ranks[AGENT_LOCAL_MAX];
	uint32_t n_here;
	uint64_t tell_at_ns; /* when to name those that are missing */
};

/* What an lcore but the first is to do with its lane of the worker. */
enum agent_lane_stage {
	AGENT_LANE_CLOSED,  /* it has none */
	AGENT_LANE_OPEN,    /* lcore 0: the job begins, have its worker */
	AGENT_LANE_CLOSING, /* lcore 0: close it when no port refers to it */
};

/* One of the agent's lcores but the first: a lane of the worker
 * (engine/worker/lane.h). */
struct agent_lane {
	struct agent_shared *shared;
	uint32_t i; /* of the lane and of the lcore: 1 … */
	_Atomic int stage;
	bool is_open; /* its loop has the worker */
	/* Of shared->n_freed, how many this lcore's ports have released, and
	 * will have when freeing ends. */
	_Atomic uint32_t n_freed;
	uint32_t n_marked;
	struct sw_release freeing, ending;
	/* The worker has ended, and what was lent is kept (sw_agent_copy_lent):
	 * this lcore uses no tensor of a client.  Read by lcore 0. */
	atomic_bool is_kept;
	struct sw_worker worker;
};

/* A lane of the worker, as the control thread opens and closes it.  The worker
 * lies in the part of its lcore, whose it is from JOIN to LEFT. */
struct agent_part {
	struct sw_worker *worker;
	struct sw_worker_events events; /* to the lcore */
	struct sw_env env;
};

struct agent_rings {
	/* By place: it is in the ring. */
	atomic_bool has_command[AGENT_COMMANDS], has_report[AGENT_REPORTS];
	/* Of commands, then of reports. */
	_Alignas(64) unsigned char rings[];
};

/* What the control thread alone reads and writes. */
struct agent_control {
	struct agent_shared *shared;
	struct sw_spsc commands; /* puts */
	struct sw_spsc reports;  /* takes */
	uint32_t n_joined;       /* groups */
	bool is_stopping;
	struct agent_group group;
	struct agent_group next; /* gathers until the one above is released */
	/* Of [agent] stay = no: was there a process; when was the agent last of
	 * use to anybody. */
	bool was_used;
	uint64_t used_at_ns;
	bool is_begun;    /* the lcore was ordered to join */
	bool is_admitted; /* the group was told that the job runs */
	bool is_ended;    /* all of it are gone, or will be told */
	int end_err;      /* what they will be told, when ENDED */
	char end_text[2 * SW_TEXT_MAX];
	uint32_t first;           /* rank of local rank 0 */
	uint32_t declarer, batch; /* whose batch is declared */
	/* That batch, until it is built in all lanes; n 0: there is none. */
	struct agent_command building;
	/* lanes that have it; tensors in all, and indices of theirs */
	uint32_t n_lanes_built, n_built, n_places;
	uint32_t again; /* its id, at the index of one that has gone; or 0 */
	/* Ids of streams that have gone, in turn, and how many of them were
	 * followed; of one local rank: of several the host keeps them. */
	uint32_t n_freed, n_reused;
	uint32_t freed[SW_TENSORS];
	bool is_busy; /* memory is to be made or unmapped: no time to sleep */
};

/* What lcore 0 alone reads and writes, but for counters of the worker, which
 * the control thread reads by sw_word. */
struct agent_core {
	struct agent_shared *shared;
	struct sw_spsc commands; /* takes */
	struct sw_spsc reports;  /* puts */
	struct sw_worker worker; /* lane 0 */
	bool is_joining; /* has_worker soon: it was opened at a later time */
	bool has_worker, is_leaving;
	/* FAILED or ENDED, told when all lcores have released the tensors. */
	bool is_ending;
	struct agent_report ending;
	uint32_t n_lost; /* lines that the next report counts */
	struct sw_host_client *clients[AGENT_LOCAL_MAX]; /* NULL: no submits */
	uint32_t next_client; /* whose submits are taken next */
	/* The batch that is being declared, how many of it were looked at. */
	struct agent_command batch;
	bool is_declaring; /* some were not */
	uint32_t n_looked;
	struct sw_host_tuning tuning; /* in use, as the processes see them */
	bool are_tuning_shown;
	/* Memory of a client, item of local, that is freed: the collectives
	 * before tensor at do not use it.  client NULL: none is looked for. */
	struct {
		struct sw_host_client *client;
		uint32_t local, item, at;
		const void *base;
		uint64_t bytes;
	} freed;
	/* Local ranks that wait until memory is free, shared->n_freed with the
	 * last one's, and those which freeing waits for. */
	uint32_t n_freeing;
	bool is_freeing[AGENT_LOCAL_MAX];
	uint32_t freed_at[AGENT_LOCAL_MAX], n_marked;
	struct sw_release freeing, leaving;
};

/* What several threads use. */
struct agent_shared {
	/* Made before the lcores run; then as their own headers say. */
	struct sw_daemon daemon;
	bool is_serving;       /* role = both: this node sums, too */
	struct sw_serve serve; /* then */
	struct sw_host *host;  /* control's; an lcore kicks, and has clients */
	/* Of the other lcores, which say themselves what lcore 0 may see. */
	uint32_t n_others;
	struct agent_lane *others;
	struct sw_lane *lanes;             /* between lcore 0 and each */
	struct agent_part parts[SW_LANES]; /* control's */

	/* Read and written while they run; each says who writes. */
	struct agent_rings *rings; /* one puts, one takes */
	/* Of the tuning in use, for statistics; lcore 0. */
	_Atomic uint64_t partition_bytes, credit_bytes, tuning_number;
	/* Streams that have gone, by index, their ids, and whether there are
	 * any; lcore 0 adds, control takes. */
	_Atomic uint64_t gone[SW_TENSORS / 64];
	uint32_t gone_ids[SW_TENSORS];
	atomic_bool has_gone;
	_Atomic uint32_t n_open;  /* push_pulls; lcore 0 */
	_Atomic uint32_t n_freed; /* memory of clients, so far; lcore 0 */
	atomic_bool is_draining;  /* no push_pull is taken any more; control */
};

/* sw_agent_n_local - local ranks, as configured.  Any thread. */
static inline uint32_t sw_agent_n_local(const struct agent_shared *shared)
{
	return shared->daemon.conf.agent.local_ranks;
}

/* sw_agent_loop - lcore 0's loop, for that lcore. */
static inline struct sw_loop *sw_agent_loop(struct agent_shared *shared)
{
	return &shared->daemon.pollers[0].loop;
}

/* The functions of a thread take its part, from which they reach what is shared
 * and no other thread's; those of begin, end and counters take the whole. */
struct agent {
	struct agent_shared shared;
	struct agent_control control;
	struct agent_core core;
};

/* sw_agent_init_parts - before all else but the memory of lanes. */
void sw_agent_init_parts(struct agent *a);

/* agent_build.c, control: open the lanes of a worker, before JOIN, and close
 * them, after LEFT; any that is open.  Errors: as sw_worker_open; then they are
 * to be closed. */
int sw_agent_open_worker(struct agent_shared *shared);
void sw_agent_close_worker(struct agent_shared *shared);

/* sw_agent_build - control, in each turn: build the batch in c->building, when
 * there is memory for it, and give it to the lcore. */
void sw_agent_build(struct agent_control *c);

/* sw_agent_take_gone - control, in each turn: free what the streams had that
 * have gone; they may have gone with the worker (is_closed). */
void sw_agent_take_gone(struct agent_control *c, bool is_closed);

/* sw_agent_make_memory - control, in each turn: a slice for each lane.  Returns
 * whether there may be more to do at once. */
bool sw_agent_make_memory(struct agent_shared *shared);

/* sw_agent_tensor - as the worker has what a process declares; a stream with
 * @again (sw_worker_tensor).  Any thread. */
void sw_agent_tensor(const struct agent_shared *shared,
	const struct sw_host_tensor *t, uint32_t again,
	struct sw_worker_tensor *out);

/* agent_declare.c, lcore: declare the batch in core->batch, in each turn while
 * core->is_declaring; it is admitted. */
void sw_agent_declare(struct agent_core *core);
void sw_agent_on_declared(void *ctx);

/* What a lane of the worker says to its lcore. */
struct sw_worker_events sw_agent_events(struct agent_core *core);
struct sw_worker_events sw_agent_lane_events(struct agent_lane *l);

/* sw_agent_is_over - nothing is begun or answered any more: each process will
 * be told so by a hang-up, with the sentence that says why. */
static inline bool sw_agent_is_over(const struct agent_core *core)
{
	return !core->has_worker || core->is_leaving ||
	       sw_worker_end_of(&core->worker);
}

/* agent_tuning.c, lcore: do what a process asks for; show them what is. */
void sw_agent_tune(struct agent_core *core, const struct agent_command *o);
void sw_agent_end_group(struct agent_core *core, const struct agent_command *o);
void sw_agent_show_tuning(struct agent_core *core);

/* agent_memory.c: memory that processes give back.  sw_agent_free - as ordered;
 * sw_agent_find_use - look whether core->freed is used, some of it in each
 * turn; sw_agent_work_free - answer who waits in core->is_freeing when nothing
 * refers to it any more.  Lcore 0; sw_agent_lane_free - another lcore's part of
 * that.
 */
void sw_agent_free(struct agent_core *core, const struct agent_command *o);
void sw_agent_find_use(struct agent_core *core);
void sw_agent_work_free(struct agent_core *core);
void sw_agent_lane_free(struct agent_lane *l);

/* sw_agent_tell - from the lcore to the control thread; what is in the ring
 * already is not put there again.  A line that would take the room of other
 * reports is dropped, and counted.  sw_agent_take_report - the control thread
 * takes the next one; false: there is none. */
void sw_agent_tell(struct agent_core *core, const struct agent_report *report);
bool sw_agent_take_report(struct agent_control *c, struct agent_report *report);

/* Functions of lcore 0, for struct sw_poller; @ctx is its struct agent_core. */
uint32_t sw_agent_work(void *ctx, uint64_t now_ns);
void sw_agent_rest(void *ctx, const int *fds, uint32_t n_fds, uint64_t max_ns);
void sw_agent_nap(void *ctx, uint64_t max_ns);
bool sw_agent_is_awaited(void *ctx);

/* agent_lane.c: the other lcores; @ctx is a struct agent_lane. */
uint32_t sw_agent_lane_work(void *ctx, uint64_t now_ns);

/* sw_agent_has_mail - as struct sw_daemon says; @ctx is a struct agent. */
bool sw_agent_has_mail(const void *ctx, uint32_t from, uint32_t to);

/* sw_agent_open_lanes - as many as the configuration says.  Errors: SW_ENOMEM.
 */
int sw_agent_open_lanes(struct agent_shared *shared);

/* Lcore 0: the others open their lanes of the worker that is being opened; they
 * close them, when it has left: true when all have, and no port refers to
 * memory of the clients any more. */
void sw_agent_start_lanes(struct agent_shared *shared);
bool sw_agent_end_lanes(struct agent_core *core);

/* sw_agent_copy_lent - the worker has ended: what our own server was lent at
 * lcore @lcore is copied, some of it in each call; true: all, and the training
 * processes may write it.  sw_agent_keep_stream - the same of a dead stream, by
 * its server's key.  That lcore. */
bool sw_agent_copy_lent(struct agent_shared *shared, uint32_t lcore);
bool sw_agent_keep_stream(
	struct agent_shared *shared, uint32_t lcore, uint32_t key);

/* sw_agent_are_kept - does no lane but this one use tensors of the clients any
 * more?  Lcore 0, after its own worker has ended. */
bool sw_agent_are_kept(const struct agent_shared *shared);

/* sw_agent_put_lanes - counters by lcore. */
void sw_agent_put_lanes(const struct agent *a,
	void (*put)(void *out, const char *name, uint64_t value), void *out);

/* What a worker of this agent is told, but for the lane; the rest of the
 * arguments is memory that @job borrows. */
void sw_agent_job(const struct agent_shared *shared, struct sw_worker_job *job,
	struct sw_worker_server servers[SW_CONF_ENDPOINTS_MAX],
	char names[SW_CONF_ENDPOINTS_MAX][SW_CONF_NAME_BYTES + 4]);

/* agent_group.c: callbacks for struct sw_host_events; @ctx is the
 * struct agent_control. */
void sw_agent_on_attach(
	void *ctx, uint32_t id, uint32_t pid, uint32_t uid, uint32_t wanted);
void sw_agent_on_declare(void *ctx, uint32_t id, uint32_t batch,
	const struct sw_host_tensor *tensors, uint32_t n);
void sw_agent_on_detach(
	void *ctx, uint32_t id, enum sw_host_why why, const char *text);
void sw_agent_on_tune(void *ctx, uint32_t id, const struct sw_edge_tune *tune);
void sw_agent_on_end(void *ctx, uint32_t id, const struct sw_edge_end *end);
void sw_agent_on_free(void *ctx, uint32_t id, uint32_t item);

/* sw_agent_take_reports - what the lcore has said. */
void sw_agent_take_reports(struct agent_control *c);

/* sw_agent_tell_waiting - tell those that wait for other local ranks, if it is
 * time to. */
void sw_agent_tell_waiting(struct agent_control *c);

/* sw_agent_stop_gathering - begin no other job: refuse processes that attach
 * and those that wait for a job to begin.  First when the agent stops.
 * sw_agent_stop - end the job that runs; tell its processes and the servers. */
void sw_agent_stop_gathering(struct agent_control *c);
void sw_agent_stop(struct agent_control *c);

/* sw_agent_open_rings - for commands and reports, when the configuration is
 * there; both threads' parts know what is shared.  shared.rings is to be freed.
 * Errors: SW_ENOMEM. */
int sw_agent_open_rings(struct agent *a);

/* sw_agent_command, sw_agent_take_command - the same the other way. */
void sw_agent_command(
	struct agent_control *c, const struct agent_command *order);
bool sw_agent_take_command(
	struct agent_core *core, struct agent_command *order);

#endif
