/* cost_nodes.h - a server and its workers over a wire in one process.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * This is the real engine, without ports and processes.  It behaves as over a
 * port that gathers: payloads carry their CRC, and nothing is lent
 * (pmd/lcores/handoff.h lends and omits CRCs).  The caller that steps it passes
 * the time and chooses the threads.
 */
#ifndef SW_APPS_COST_COST_NODES_H
#define SW_APPS_COST_COST_NODES_H

#include "apps/cost/cost_wire.h"
#include "engine/loop/loop.h"
#include "engine/server/server.h"
#include "engine/worker/worker.h"
#include "engine/keys/keyring.h"
#include "sum/sum.h"

/* After these rounds both generations of a cell are present, and the senders'
 * windows are open. */
enum { COST_WARM_ROUNDS = 4, COST_LOCAL_MAX = 8 };

struct cost_shape {
	uint32_t n_members; /* 1 to 64 */
	uint32_t n_tensors; /* 1 to 4096, pushed together */
	uint64_t bytes;     /* size of a tensor of f32, a multiple of 64 */
	/* all_reduces of one stream instead of tensors; at most 64 */
	bool is_collective;
	bool is_gather;    /* all_gathers instead of the all_reduces */
	bool is_keyed;     /* frames have tags instead of CRCs */
	bool is_encrypted; /* also encrypts the payloads */
	uint32_t n_local;  /* local ranks of each member, 1 to COST_LOCAL_MAX */
};

/* Zeroed before it is opened, except for the fields that the caller sets.
 * 64-byte aligned. */
struct cost_nodes {
	/* Set by the caller. turns: take turns until *@count is @n, or err is
	 * set. level: the highest level of the kernels. */
	void (*turns)(struct cost_nodes *x, const uint32_t *count, uint32_t n);
	enum sw_sum_level level;

	const struct cost_shape *shape;
	struct sw_params params;
	struct sw_env env;
	struct sw_log log;
	struct cost_end ends[COST_ENDS];
	struct sw_port *ports[COST_ENDS];
	struct sw_loop loops[COST_ENDS];
	struct sw_server *server;
	struct sw_worker *workers;
	uint32_t n_workers; /* number of open workers */
	/* The ranks' tensors, then with several local ranks the results. */
	char *memory;
	uint64_t memory_bytes;
	uint64_t n_random; /* state of random(): nothing here must be secret */
	struct sw_keyring_entry entry;
	struct sw_keyring keyring;
	uint32_t n_running, n_declared, n_done;
	int err; /* a failed job has printed the reason */
};

/* sw_cost_nodes_open - open a server and workers over a wire, which may be
 * sorted (cost_wire.h).  The caller must close @x in any case. */
int sw_cost_nodes_open(struct cost_nodes *x, const struct cost_shape *shape,
	bool is_sorted, uint64_t now_ns);

/* sw_cost_submits - return how many tensors or collectives all ranks together
 * submit in a round. */
static inline uint32_t sw_cost_submits(const struct cost_shape *s)
{
	return s->n_members * s->n_local * s->n_tensors;
}

/* sw_cost_nodes_start - let all workers join and declare their tensors. */
int sw_cost_nodes_start(struct cost_nodes *x);

/* sw_cost_nodes_push - make every rank push all its tensors, or submit all its
 * collectives. n_done counts the completed ones. */
void sw_cost_nodes_push(struct cost_nodes *x, uint32_t round);

void sw_cost_nodes_close(struct cost_nodes *x);

#endif
