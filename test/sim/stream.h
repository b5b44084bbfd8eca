/* stream.h - groups and their collectives in a simulated job.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Each group is a set of ranks and one stream; groups overlap.  Its collectives
 * are drawn from the seed, the same for all; each rank submits them in order,
 * at moments of its own, several at once.  One worker, or one of its ranks, may
 * call one of them differently (struct sim_clash).  A rank's *seat* at its
 * worker is the group's index, plus SIM_GROUPS times its local rank: so what
 * has one local rank names groups.
 *
 * The oracle is that of tensors: member w gives d * 4^w, each of its local
 * ranks a share of the elements, and elsewhere what changes nothing.  It looks
 * into every PUSH and RESULT of a stream as an engine gives it to its port, at
 * each element of each result, at what must not be written, and at what servers
 * keep.
 */
#ifndef SW_TEST_SIM_STREAM_H
#define SW_TEST_SIM_STREAM_H

#include "engine/worker/worker.h"

enum {
	SIM_GROUPS = 4,
	SIM_COLLS = 24,
	SIM_LOCAL = 4,                      /* ranks of a worker */
	SIM_SEATS = SIM_GROUPS * SIM_LOCAL, /* ranks of a worker in groups */
	SIM_RANKS = SIM_LOCAL * SW_MAX_MEMBERS,
};

struct sim_job;
struct sim_worker;

struct sim_coll {
	enum sw_coll_kind kind;
	enum sw_reduce_op op;
	uint32_t dtype;
	uint64_t n_elems;
	uint16_t root; /* a rank of the job */
	bool is_in_place;
};

struct sim_group {
	uint64_t members;
	/* Local ranks that are in it, a bit each; 0 of a member: all. */
	uint8_t here[SW_MAX_MEMBERS];
	uint16_t ranks[SIM_RANKS]; /* as they are declared */
	uint32_t n_ranks;
	uint8_t window_log2;
	uint32_t n_colls, depth;
	uint32_t priority;
	uint32_t start; /* its first chunk at each server; 0: 1, as it is */
	struct sim_coll colls[SIM_COLLS];
};

/* How one member's calls of a group differ from the others', or how it ends the
 * group. */
enum sim_clash_how {
	SIM_ALL_ALIKE,
	SIM_ELSE_KIND,
	SIM_ELSE_COUNT,
	SIM_ELSE_DTYPE,
	SIM_ELSE_OP,
	SIM_ELSE_ROOT,
	SIM_SWAPPED, /* this one and the next swapped */
	SIM_ABORTS,  /* when it has called that one */
	SIM_CLOSES,  /* instead of calling it */
	SIM_N_CLASHES,
};

struct sim_clash {
	enum sim_clash_how how;
	uint32_t by, group, coll;
	uint32_t local; /* rank of that worker; SIM_LOCAL: all of them */
};

/* The chunks of a stream as seen at a server. */
struct sim_seen {
	uint64_t first;   /* its first element, all parts counted through */
	uint64_t pushed;  /* members that did */
	uint32_t coll, n; /* kind and elements; n 0: no bytes seen */
};

struct sim_chunk_log {
	struct sim_seen *seen;
	uint32_t n;
};

enum sim_fate_of_coll {
	SIM_OPEN,
	SIM_ENDED_WELL,
	SIM_ENDED_BADLY, /* its buffers are not given back yet */
	SIM_GIVEN_BACK,
};

/* A worker's rank in a group. */
struct sim_of_group {
	uint32_t index; /* the engine's */
	uint32_t n_submitted, n_done;
	int err;               /* error of the first that failed */
	bool has_ended_it;     /* SIM_ABORTS, SIM_CLOSES */
	char why[SW_TEXT_MAX]; /* text of err: the stream may have gone */
	uint8_t fates[SIM_COLLS];
	uint8_t *from[SIM_COLLS], *to[SIM_COLLS];
};

/* --- stream.c --- */

/* sim_groups_list - once it is known which workers have how many ranks: who is
 * in each group. */
void sim_groups_list(struct sim_job *job);

/* sim_rank_worker - the worker that has @rank of the job; sim_seat_rank - the
 * rank that has a seat at @w, sim_seat_is_taken - if it is in that group. */
uint32_t sim_rank_worker(const struct sim_job *job, uint32_t rank);
uint32_t sim_seat_rank(const struct sim_worker *w, uint32_t seat);
bool sim_seat_is_taken(const struct sim_worker *w, uint32_t seat);

/* sim_groups_declare - the declarations of a worker's streams, to go behind its
 * @n tensors: to @out and their names; returns how many. */
uint32_t sim_groups_declare(struct sim_worker *w, struct sw_worker_tensor *out,
	char names[][SW_NAME_MAX], uint32_t n);

/* sim_groups_declared - they are admitted. */
void sim_groups_declared(struct sim_worker *w);

/* sim_groups_step - submit some, of a group of depth 0 none. */
void sim_groups_step(struct sim_worker *w);

/* sim_groups_submit - submit a rank's next one. */
void sim_groups_submit(struct sim_worker *w, uint32_t seat);

/* sim_groups_end - abort or close a group, as the job's clash says. */
void sim_groups_end(struct sim_worker *w, uint32_t seat);

/* sim_groups_done - a collective has ended: is its result right? */
void sim_groups_done(
	struct sim_worker *w, uint64_t cookie, int err, uint32_t weight);

/* sim_groups_give_back - the job is over, and what the node's server was lent
 * is kept: buffers of what ended with it are the process's again, which writes
 * them.  Others are as soon as they have ended. */
void sim_groups_give_back(struct sim_worker *w);

/* sim_groups_have_completed - are all of the worker's through? */
bool sim_groups_have_completed(const struct sim_worker *w);

/* sim_groups_have_ended - has all that was called? */
bool sim_groups_have_ended(const struct sim_worker *w);

void sim_groups_close(struct sim_worker *w);

/* --- stream_draw.c --- */

/* sim_groups_draw - for a job whose size is known: sets its groups. */
void sim_groups_draw(struct sim_job *job);

/* sim_clash_draw - maybe a member that differs, where nothing else goes wrong.
 */
void sim_clash_draw(struct sim_job *job);

/* sim_coll_of - return this rank's collective number @coll. */
struct sim_coll sim_coll_of(
	const struct sim_worker *w, uint32_t seat, uint32_t coll);

/* sim_clash_is_of - does it call differently? */
bool sim_clash_is_of(const struct sim_worker *w, uint32_t seat);

/* sim_clash_is_in - is it one that members may call differently, or behind it?
 */
bool sim_clash_is_in(const struct sim_job *job, uint32_t group, uint32_t coll);

/* sim_groups_describe - print them. */
void sim_groups_describe(const struct sim_job *job);

/* --- stream_buffers.c: what members give, and get --- */

/* sim_coll_n_parts - 1, or one for each rank. */
uint32_t sim_coll_n_parts(const struct sim_group *g, const struct sim_coll *c);

/* sim_coll_make - buffers of what a rank is about to submit. */
void sim_coll_make(struct sim_worker *w, uint32_t seat, uint32_t coll);
/* sim_coll_pointers - set the call's pointers: the buffer to give from, which
 * is element *first of all parts, and the buffer to get into. */
void sim_coll_pointers(const struct sim_worker *w, uint32_t seat, uint32_t coll,
	const uint8_t **from, uint8_t **to, uint64_t *first);

/* sim_coll_find - which element lies at @p, if that is where the rank gives
 * from. */
bool sim_coll_find(const struct sim_worker *w, uint32_t seat, uint32_t coll,
	const uint8_t *p, uint64_t *elem);

void sim_coll_free(struct sim_worker *w, uint32_t seat, uint32_t coll);

/* sim_coll_spoil - it has ended: the process writes its buffers, which a port
 * may still gather from for a PUSH that was sent again. */
void sim_coll_spoil(struct sim_worker *w, uint32_t seat, uint32_t coll);

/* sim_coll_count_wrong - bytes that are not as they must be when it ends well;
 * whether it was written after that. */
uint64_t sim_coll_count_wrong(
	const struct sim_worker *w, uint32_t seat, uint32_t coll);
bool sim_coll_is_written(
	const struct sim_worker *w, uint32_t seat, uint32_t coll);

/* sim_coll_given, sim_coll_sum - element @elem of what member @m gives, of the
 * result; all parts counted through. */
int64_t sim_coll_given(const struct sim_job *job, uint32_t group, uint32_t coll,
	uint32_t m, uint64_t elem);
int64_t sim_coll_sum(const struct sim_job *job, uint32_t group, uint32_t coll,
	uint64_t elem);

/* --- stream_oracle.c --- */

/* sim_stream_on_tx - a PUSH (@is_push) or RESULT of @worker that a node gives
 * to its port, if it is one of a stream; returns whether it is. */
bool sim_stream_on_tx(struct sim_job *job, uint32_t from, uint32_t worker,
	bool is_push, const struct sw_tx_frame *t);

/* sim_groups_count - chunks of all collectives, and pushes of them; how many of
 * both may be missing. */
void sim_groups_count(const struct sim_job *job, uint64_t *n_chunks,
	uint64_t *n_pushes, uint64_t *n_less);

/* sim_groups_wrong - after a run and a pause: NULL, or what is wrong with how
 * collectives ended, memory or servers. */
const char *sim_groups_wrong(struct sim_job *job);

void sim_seen_close(struct sim_job *job);

/* Cookies of collectives. */
#define SIM_COOKIE_COLL (1ULL << 32)

#endif
