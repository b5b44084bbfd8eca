/* proc_nccl.h - NCCL's role towards its plugin: load, listen, connect.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * One program plays all nodes: it forks a process for each, and they exchange
 * handles through shared memory as NCCL's processes do through its bootstrap.
 */
#ifndef SW_TEST_PROC_PROC_NCCL_H
#define SW_TEST_PROC_PROC_NCCL_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "pmd/nccl/nccl.h"

enum { NODES_MAX = 8 };

/* Shared between the nodes. */
struct bootstrap {
	pthread_barrier_t barrier;
	uint8_t handles[NODES_MAX][NCCL_HANDLE_BYTES];
};

struct node {
	struct bootstrap *shared;
	uint32_t rank, n, version;
	pid_t pids[NODES_MAX]; /* pids of agents */
	uint32_t n_pids;
	bool is_refused; /* connect must fail */
	const struct nccl_net_v8 *net8;
	const struct nccl_net_v11 *net11;
	const struct nccl_collnet_v8 *coll8;
	const struct nccl_collnet_v11 *coll11;
	void *ctx, *coll_ctx;
};

/* nccl_must - end the process with a message unless @is_so. */
void nccl_must(bool is_so, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* nccl_load - dlopen @path, call init, devices and their properties, in NCCL's
 * order. @n_coll: set to the number of devices that sum. */
void nccl_load(struct node *k, const char *path, int *n_coll);

/* nccl_unload - make NCCL's calls at a communicator's end. */
void nccl_unload(struct node *k);

/* nccl_ask_too_much - request unsupported features, memory of a GPU and several
 * parts; the plugin must refuse. */
void nccl_ask_too_much(struct node *k, void *comm, void *data, void *mhandle);

void nccl_barrier(struct node *k);

/* nccl_connect - listen, exchange, connect, closeListen. Return NULL after an
 * expected refusal. */
void *nccl_connect(struct node *k);

/* Calls for both versions. */
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

/* nccl_await - test until the request is done. Return the size received, or the
 * negative result that it ended with; fail after a minute. */
int nccl_await(struct node *k, void *request);

/* nccl_later - sleep briefly after a call that must be repeated; fail after a
 * minute of repetitions. */
void nccl_later(uint32_t *n_tries);

/* --- proc_nccl_close.c: cases --- */

/* Node 0 closes during a sum: it does not wait for the others, and they get an
 * error. */
void nccl_run_close(struct node *k);

/* All close while no agent runs: close does not wait. */
void nccl_run_frozen(struct node *k);

#endif
