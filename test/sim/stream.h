/* stream.h - groups and their collectives in a simulated job.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Each group is a set of ranks with one stream; groups overlap. The seed
 * determines the group's collectives, the same for all ranks. Each rank submits
 * them in order, several at once, at times of its own. One worker, or one of
 * its ranks, may call one of them differently (struct sim_clash). A rank's
 * *seat* at its worker is the group's index plus SIM_GROUPS times its local
 * rank, so the group's index is a seat of a worker with one local rank.
 *
 * The oracle is that of tensors: member w gives d * 4^w. Each of its local
 * ranks gives a share of the elements, and neutral values elsewhere. The oracle
 * checks every PUSH and RESULT of a stream as an engine gives it to its port,
 * every element of every result, the bytes that no call may write, and the
 * memory that servers keep.
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
	uint16_t root; /* rank of the job */
	bool is_in_place;
};

struct sim_group {
	uint64_t members;
	/* Local ranks of each member in the group, as bits; 0 for a member:
	 * all. */
	uint8_t here[SW_MAX_MEMBERS];
	uint16_t ranks[SIM_RANKS]; /* in the order of the declaration */
	uint32_t n_ranks;
	uint8_t window_log2;
	uint32_t n_colls, depth;
	uint32_t priority;
	uint32_t start; /* its first chunk at each server; 0: the usual 1 */
	struct sim_coll colls[SIM_COLLS];
};

/* How one member's calls of a group differ from the others' calls, or how it
 * ends the group. */
enum sim_clash_how {
	SIM_ALL_ALIKE,
	SIM_ELSE_KIND,
	SIM_ELSE_COUNT,
	SIM_ELSE_DTYPE,
	SIM_ELSE_OP,
	SIM_ELSE_ROOT,
	SIM_SWAPPED, /* this call and the next are swapped */
	SIM_ABORTS,  /* after it has called that one */
	SIM_CLOSES,  /* instead of calling it */
	SIM_N_CLASHES,
};

struct sim_clash {
	enum sim_clash_how how;
	uint32_t by, group, coll;
	uint32_t local; /* a local rank; SIM_LOCAL: all of them */
};

/* The oracle's record of a stream's chunk at a server. */
struct sim_seen {
	uint64_t first;   /* its first element, counted through all parts */
	uint64_t pushed;  /* members that have pushed it */
	uint32_t coll, n; /* collective + 1; elements, 0: no bytes seen */
};

struct sim_chunk_log {
	struct sim_seen *seen;
	uint32_t n;
};

enum sim_fate_of_coll {
	SIM_OPEN,
	SIM_ENDED_WELL,
	SIM_ENDED_BADLY, /* the process has not got its buffers back */
	SIM_GIVEN_BACK,
};

/* State of a worker's rank in a group. */
struct sim_of_group {
	uint32_t index; /* index in the engine */
	uint32_t n_submitted, n_done;
	int err;               /* error of its first failure */
	bool has_ended_it;     /* SIM_ABORTS, SIM_CLOSES */
	char why[SW_TEXT_MAX]; /* text of err; the stream may be closed later */
	uint8_t fates[SIM_COLLS];
	uint8_t *from[SIM_COLLS], *to[SIM_COLLS];
};

/* --- stream.c --- */

/* sim_groups_list - list the ranks of each group. Call when the number of local
 * ranks of each worker is known. */
void sim_groups_list(struct sim_job *job);

/* sim_rank_worker - return the worker that has @rank of the job.
 * sim_seat_rank - return the rank at a seat of @w.
 * sim_seat_is_taken - is that rank in the seat's group? */
uint32_t sim_rank_worker(const struct sim_job *job, uint32_t rank);
uint32_t sim_seat_rank(const struct sim_worker *w, uint32_t seat);
bool sim_seat_is_taken(const struct sim_worker *w, uint32_t seat);

/* sim_groups_declare - write the declarations of a worker's streams and their
 * names, to follow its @n tensors; return their number. */
uint32_t sim_groups_declare(struct sim_worker *w, struct sw_worker_tensor *out,
	char names[][SW_NAME_MAX], uint32_t n);

/* sim_groups_declared - note that the servers have admitted the streams. */
void sim_groups_declared(struct sim_worker *w);

/* sim_groups_step - submit some collectives; none for a group of depth 0. */
void sim_groups_step(struct sim_worker *w);

/* sim_groups_submit - submit the next collective of a rank. */
void sim_groups_submit(struct sim_worker *w, uint32_t seat);

/* sim_groups_end - abort or close a group, as the job's clash says. */
void sim_groups_end(struct sim_worker *w, uint32_t seat);

/* sim_groups_done - check the result of a collective that has ended. */
void sim_groups_done(
	struct sim_worker *w, uint64_t cookie, int err, uint32_t weight);

/* sim_groups_give_back - overwrite the buffers of collectives that ended with
 * the job, as their process does. Call when the node's server has copied the
 * payloads lent to it. Buffers of other collectives are overwritten as soon as
 * these end. */
void sim_groups_give_back(struct sim_worker *w);

/* sim_groups_have_completed - have the worker's ranks completed all
 * collectives? */
bool sim_groups_have_completed(const struct sim_worker *w);

/* sim_groups_have_ended - have all submitted collectives ended? */
bool sim_groups_have_ended(const struct sim_worker *w);

void sim_groups_close(struct sim_worker *w);

/* --- stream_draw.c --- */

/* sim_groups_draw - draw the groups of a job whose size is known. */
void sim_groups_draw(struct sim_job *job);

/* sim_clash_draw - draw a member that differs, or none; only in a job without
 * other failures. */
void sim_clash_draw(struct sim_job *job);

/* sim_coll_of - return this rank's collective number @coll. */
struct sim_coll sim_coll_of(
	const struct sim_worker *w, uint32_t seat, uint32_t coll);

/* sim_clash_is_of - does this rank call a collective differently? */
bool sim_clash_is_of(const struct sim_worker *w, uint32_t seat);

/* sim_clash_is_in - is the collective the first that members may call
 * differently, or a later one? */
bool sim_clash_is_in(const struct sim_job *job, uint32_t group, uint32_t coll);

/* sim_groups_describe - print the groups. */
void sim_groups_describe(const struct sim_job *job);

/* --- stream_buffers.c: contents of members' buffers --- */

/* sim_coll_n_parts - return 1, or the number of ranks if each has a part. */
uint32_t sim_coll_n_parts(const struct sim_group *g, const struct sim_coll *c);

/* sim_coll_make - create the buffers for the next collective of a rank. */
void sim_coll_make(struct sim_worker *w, uint32_t seat, uint32_t coll);
/* sim_coll_pointers - set the call's pointers: the send buffer, which starts at
 * element *first of all parts, and the receive buffer. */
void sim_coll_pointers(const struct sim_worker *w, uint32_t seat, uint32_t coll,
	const uint8_t **from, uint8_t **to, uint64_t *first);

/* sim_coll_find - set the element that lies at @p; return false if @p is not in
 * the rank's send buffer. */
bool sim_coll_find(const struct sim_worker *w, uint32_t seat, uint32_t coll,
	const uint8_t *p, uint64_t *elem);

void sim_coll_free(struct sim_worker *w, uint32_t seat, uint32_t coll);

/* sim_coll_spoil - overwrite the buffers of an ended collective, as the process
 * does. A port may still gather from them for a retransmitted PUSH. */
void sim_coll_spoil(struct sim_worker *w, uint32_t seat, uint32_t coll);

/* sim_coll_count_wrong - count the wrong bytes of a collective that ended well;
 * check for writes after its end. */
uint64_t sim_coll_count_wrong(
	const struct sim_worker *w, uint32_t seat, uint32_t coll);
bool sim_coll_is_written(
	const struct sim_worker *w, uint32_t seat, uint32_t coll);

/* sim_coll_given, sim_coll_sum - return element @elem of member @m's
 * contribution, or of the result, counted through all parts. */
int64_t sim_coll_given(const struct sim_job *job, uint32_t group, uint32_t coll,
	uint32_t m, uint64_t elem);
int64_t sim_coll_sum(const struct sim_job *job, uint32_t group, uint32_t coll,
	uint64_t elem);

/* --- stream_oracle.c --- */

/* sim_stream_on_tx - check a PUSH (@is_push) or RESULT of @worker that a node
 * gives to its port; return whether it belongs to a stream. */
bool sim_stream_on_tx(struct sim_job *job, uint32_t from, uint32_t worker,
	bool is_push, const struct sw_tx_frame *t);

/* sim_groups_count - count the chunks of all collectives and their pushes; set
 * how many of both may be missing. */
void sim_groups_count(const struct sim_job *job, uint64_t *n_chunks,
	uint64_t *n_pushes, uint64_t *n_less);

/* sim_groups_wrong - after a run and a pause: return NULL, or what is wrong
 * with the end of a collective, with memory or with servers. */
const char *sim_groups_wrong(struct sim_job *job);

void sim_seen_close(struct sim_job *job);

/* Marks cookies of collectives. */
#define SIM_COOKIE_COLL (1ULL << 32)

#endif
