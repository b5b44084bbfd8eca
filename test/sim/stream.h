/* stream.h - groups and their collectives in a simulated job.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Each group is a set of workers and one stream.  Its collectives are drawn
 * from the seed, the same for all; each member submits them in order, at
 * moments of its own, several at once.  The oracle is that of tensors: member w
 * gives d * 4^w.
 */
#ifndef SW_SIM_STREAM_H
#define SW_SIM_STREAM_H

#include "engine/worker/worker.h"

enum { SIM_GROUPS = 4, SIM_COLLS = 24 };

struct sim_job;
struct sim_worker;

struct sim_coll {
	enum sw_coll_kind kind;
	uint32_t dtype;
	uint64_t n_elems;
	uint16_t root;
	bool is_in_place;
};

struct sim_group {
	uint64_t members;
	uint16_t ranks[SW_MAX_MEMBERS]; /* the same, as they are declared */
	uint8_t window_log2;
	uint32_t n_colls, depth;
	uint32_t priority;
	struct sim_coll colls[SIM_COLLS];
};

/* What a worker has of a group. */
struct sim_of_group {
	uint32_t index; /* the engine's */
	uint32_t n_submitted, n_done;
	int err; /* of the first that failed */
	uint8_t *from[SIM_COLLS], *to[SIM_COLLS];
};

/* sim_groups_draw - for a job whose size is known: sets its groups. */
void sim_groups_draw(struct sim_job *job);

/* sim_groups_declare - the declarations of a worker's streams, to go behind its
 * @n tensors: to @out and their names; returns how many. */
uint32_t sim_groups_declare(struct sim_worker *w, struct sw_worker_tensor *out,
	char names[][SW_NAME_MAX], uint32_t n);

/* sim_groups_step - submit some, of a group of depth 0 none. */
void sim_groups_step(struct sim_worker *w);

/* sim_groups_submit - submit a group's next one. */
void sim_groups_submit(struct sim_worker *w, uint32_t group);

/* sim_groups_done - a collective has ended: is its result right? */
void sim_groups_done(
	struct sim_worker *w, uint64_t cookie, int err, uint32_t weight);

/* sim_groups_have_completed - are all of the worker's through? */
bool sim_groups_have_completed(const struct sim_worker *w);

/* sim_groups_count - chunks of all collectives, and pushes of them. */
void sim_groups_count(
	const struct sim_job *job, uint64_t *n_chunks, uint64_t *n_pushes);

/* sim_groups_wrong - after a complete run and a pause: NULL, or what servers
 * still wait for. */
const char *sim_groups_wrong(struct sim_job *job);

void sim_groups_close(struct sim_worker *w);

/* Cookies of collectives. */
#define SIM_COOKIE_COLL (1ULL << 32)

#endif
