/* bench_nodes.h - a server and its workers over a wire in one process.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The real engine, without ports and processes.  All is as over a port that
 * gathers: payloads carry their CRC, and nothing is lent (pmd/lcores/handoff.h
 * does both otherwise).  Who steps it says what the time is, and which threads
 * take the turns.
 */
#ifndef SW_APPS_BENCH_BENCH_NODES_H
#define SW_APPS_BENCH_BENCH_NODES_H

#include "apps/bench/bench_wire.h"
#include "engine/loop/loop.h"
#include "engine/server/server.h"
#include "engine/worker/worker.h"
#include "sum/sum.h"

enum { BENCH_WARM_ROUNDS = 2 }; /* both generations of a cell are present */

struct bench_shape {
	uint32_t n_members; /* 1 to 64 */
	uint32_t n_tensors; /* 1 to 4096, pushed together */
	uint64_t bytes;     /* of a tensor of f32, a multiple of 64 */
	bool is_collective; /* all_reduces of one stream in place of tensors; 64
			       at most */
};

/* Zeroed before it is opened, but for what the caller sets; 64-byte aligned. */
struct bench_nodes {
	/* Set by the caller: take turns until *@count is @n, or err is set; the
	 * highest level of the kernels. */
	void (*turns)(struct bench_nodes *x, const uint32_t *count, uint32_t n);
	enum sw_sum_level level;

	const struct bench_shape *shape;
	struct sw_params params;
	struct sw_env env;
	struct sw_log log;
	struct bench_end ends[BENCH_ENDS];
	struct sw_port *ports[BENCH_ENDS];
	struct sw_loop loops[BENCH_ENDS];
	struct sw_server *server;
	struct sw_worker *workers;
	uint32_t n_workers; /* that are open */
	char *memory;
	uint64_t memory_bytes;
	uint64_t n_random; /* nothing here has to be secret */
	uint32_t n_running, n_declared, n_done;
	int err; /* why a job failed was printed */
};

/* sw_bench_nodes_open - a server and workers, over a wire that may be sorted
 * (bench_wire.h).  Close them whatever it returns. */
int sw_bench_nodes_open(struct bench_nodes *x, const struct bench_shape *shape,
	bool is_sorted, uint64_t now_ns);

/* sw_bench_nodes_start - all have joined and declared their tensors. */
int sw_bench_nodes_start(struct bench_nodes *x);

/* sw_bench_nodes_push - every member pushes all its tensors, or submits all its
 * all_reduces, of which n_done counts those that have their sum. */
void sw_bench_nodes_push(struct bench_nodes *x, uint32_t round);

void sw_bench_nodes_close(struct bench_nodes *x);

#endif
