/* proc_nccl.h - what NCCL is to its plugin, for tests: load, listen, connect.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A program plays all nodes: one process each, forked, which exchange handles
 * through shared memory as NCCL's processes do through its bootstrap.
 */
#ifndef SW_TEST_PROC_PROC_NCCL_H
#define SW_TEST_PROC_PROC_NCCL_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "pmd/nccl/nccl.h"

enum { NODES_MAX = 8 };

/* Between the nodes. */
struct bootstrap {
	pthread_barrier_t barrier;
	uint8_t handles[NODES_MAX][NCCL_HANDLE_BYTES];
};

struct node {
	struct bootstrap *shared;
	uint32_t rank, n, version;
	pid_t pids[NODES_MAX]; /* of agents */
	uint32_t n_pids;
	bool is_refused; /* connect must fail */
	const struct nccl_net_v8 *net8;
	const struct nccl_net_v11 *net11;
	const struct nccl_collnet_v8 *coll8;
	const struct nccl_collnet_v11 *coll11;
	void *ctx, *coll_ctx;
};

/* nccl_must - end the process, unless it is so. */
void nccl_must(bool is_so, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* nccl_load - dlopen @path, init, devices and their properties, in NCCL's
 * order.
 * @n_coll  devices that sum */
void nccl_load(struct node *k, const char *path, int *n_coll);

/* nccl_unload - make NCCL's calls at a communicator's end. */
void nccl_unload(struct node *k);

/* nccl_ask_too_much - for what the plugin does not have: memory of a GPU, parts
 * that are several; it has to be refused. */
void nccl_ask_too_much(struct node *k, void *comm, void *data, void *mhandle);

void nccl_barrier(struct node *k);

/* nccl_connect - listen, exchange, connect, closeListen.  NULL if it is
 * refused, as it must be. */
void *nccl_connect(struct node *k);

/* Calls of either version. */
int nccl_listen(struct node *k, void *handle, void **listen_comm);
int nccl_join(struct node *k, void *handles[], void *listen_comm, void **comm);
bool nccl_supports(struct node *k, int dtype, int op);
void nccl_gather(struct node *k, void *comm, void *send, void *recv,
	size_t each, size_t at, size_t n, void *send_mr, void *recv_mr,
	void **request);
void nccl_scatter(struct node *k, void *comm, void *send, void *recv,
	size_t each, size_t at, size_t n, int dtype, void *send_mr,
	void *recv_mr, void **request);
int nccl_all_reduce(struct node *k, void *comm, void *send, void *recv,
	size_t count, int dtype, int op, void *send_mr, void *recv_mr,
	void **request);
void *nccl_register(struct node *k, void *comm, void *data, size_t size);
void nccl_deregister(struct node *k, void *comm, void *mhandle);
int nccl_test(struct node *k, void *request, int *done, int *size);
void nccl_close(struct node *k, void *comm);

/* nccl_await - test until it is done.  Returns what it received, or the
 * negative result that it ended with; fails after a minute. */
int nccl_await(struct node *k, void *request);

/* nccl_later - after a call that said later: sleep a little; fails after a
 * minute of them. */
void nccl_later(uint32_t *n_tries);

/* --- proc_nccl_close.c: cases --- */

/* Node 0 closes while it sums: it does not wait for the others, and they hear
 * of it. */
void nccl_run_close(struct node *k);

/* All close while no agent runs: that waits for nobody. */
void nccl_run_frozen(struct node *k);

#endif
