/* coll.h - a communicator of NCCL as a group of libsumwire.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * NCCL's calls (collnet.c) queue requests in a communicator and test them. The
 * thread (progress.c) calls libsumwire, without the lock. Only closeColl and
 * deregMr also call it: after their sw_group_release, libsumwire uses no buffer
 * of the communicator, even if collectives are still in flight at the agent.
 */
#ifndef SW_PMD_NCCL_COLL_H
#define SW_PMD_NCCL_COLL_H

#include <sumwire/coll.h>

#include "pmd/nccl/plugin.h"

enum sw_nccl_request_state {
	SW_NCCL_FREE,
	SW_NCCL_QUEUED, /* libsumwire does not know its buffers yet */
	SW_NCCL_OPEN,   /* libsumwire reads and writes them */
	SW_NCCL_DONE,
	SW_NCCL_FAILED,
};

/* A call of NCCL as one or several collectives. The lock guards it, except
 * fields that the thread owns while it is OPEN. */
struct sw_nccl_request {
	struct sw_nccl_coll *coll;
	enum sw_nccl_request_state state;
	int bytes; /* bytes that it receives */
	uint32_t n, n_started, n_ended;
	struct sw_coll_args *args; /* n of them; root is NCCL's rank */
	uint64_t *handles;         /* 0: ended */
	struct sw_coll_args one;   /* args and handles if n is 1 */
	uint64_t one_handle;
};

struct sw_nccl_coll {
	struct sw_nccl_coll *next;
	/* Set by NCCL's calls. */
	bool is_closing;  /* the thread frees it when no request is open */
	bool is_aborting; /* the thread aborts the group */
	bool is_released; /* libsumwire does not use its buffers */
	uint32_t n_ranks, rank;
	struct sw_nccl_id *processes; /* by NCCL's rank */
	uint32_t *ranks; /* ranks in the job, in the same order; used by the
			    thread */
	char name[40];
	uint32_t next_request; /* requests are used in order */
	/* Used by the thread. */
	uint32_t first_queued, first_open;
	bool is_aborted;
	struct sw_group *group;
	int failure; /* enum nccl_result that calls return; 0: none */
	struct sw_nccl_request requests[NCCL_REQUESTS];
};

/* sw_nccl_progress_start - start the thread, which attaches to the agent,
 * unless it runs. Call it with the lock. Errors: NCCL_SYSTEM. */
int sw_nccl_progress_start(struct sw_nccl_process *p);

/* sw_nccl_progress_wake - tell the thread that there is work. */
void sw_nccl_progress_wake(const struct sw_nccl_process *p);

/* sw_nccl_has_agent - return whether an agent listens where libsumwire would
 * attach. Does not block.
 * @path  set to the socket's path */
bool sw_nccl_has_agent(char path[108]);

/* sw_nccl_attach - attach, and gather the ids of all processes of the job: sets
 * client and ranks of @p. Blocks until all processes have attached or a limit
 * passes. Thread: the plugin's. */
int sw_nccl_attach(struct sw_nccl_process *p, int *event_fd);

struct sw_nccl_memory {
	char *base;
	size_t size;
};

static inline bool sw_nccl_is_inside(
	const struct sw_nccl_memory *m, const void *data, size_t bytes)
{
	const char *at = data;

	return m && at >= m->base && bytes <= m->size &&
	       (size_t)(at - m->base) <= m->size - bytes;
}

/* sw_nccl_put - queue a request of @n collectives; *@request becomes NULL if
 * NCCL_REQUESTS are in use.
 * @args   copied if @n is 1; otherwise from malloc, and owned by the request if
 *         there is one
 * @bytes  bytes that it receives
 * Errors: the communicator's failure; NCCL_SYSTEM no memory. */
int sw_nccl_put(struct sw_nccl_coll *c, struct sw_coll_args *args, uint32_t n,
	size_t bytes, void **request);

/* sw_nccl_find_type - translate NCCL's type and operation; false: not
 * supported. */
bool sw_nccl_find_type(
	int dtype, int op, enum sw_dtype *out_dtype, enum sw_reduce_op *out_op);

/* sw_nccl_request_free - free the request for reuse. */
void sw_nccl_request_free(struct sw_nccl_request *r);

/* sw_nccl_coll_fail - refuse further calls of the communicator; queued calls
 * fail. Call it with the lock. */
void sw_nccl_coll_fail(struct sw_nccl_coll *c, int result);

void sw_nccl_coll_free(struct sw_nccl_coll *c);

/* sw_nccl_result_of - translate libsumwire's @err to an enum nccl_result. */
int sw_nccl_result_of(int err);

#endif
