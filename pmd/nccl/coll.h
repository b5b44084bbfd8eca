/* coll.h - a communicator of NCCL as a group of libsumwire.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * NCCL's calls (collnet.c) put requests into a communicator and ask how they
 * are; the thread (progress.c) alone calls libsumwire, without the lock.  Only
 * closeColl and deregMr call it, too: sw_group_release, after which no buffer
 * of a communicator is used, whatever is still under way at the agent.
 */
#ifndef SW_PMD_NCCL_COLL_H
#define SW_PMD_NCCL_COLL_H

#include <sumwire/coll.h>

#include "pmd/nccl/plugin.h"

enum sw_nccl_request_state {
	SW_NCCL_FREE,
	SW_NCCL_QUEUED, /* libsumwire does not know its buffers */
	SW_NCCL_OPEN,   /* libsumwire reads and writes them */
	SW_NCCL_DONE,
	SW_NCCL_FAILED,
};

/* One call of NCCL's, as several collectives; guarded by the lock, except
 * fields that the thread owns while it is OPEN. */
struct sw_nccl_request {
	struct sw_nccl_coll *coll;
	enum sw_nccl_request_state state;
	int bytes; /* that it receives */
	uint32_t n, n_started, n_ended;
	struct sw_coll_args *args; /* n of them; root is a rank of NCCL's */
	uint64_t *handles;         /* 0: ended */
	struct sw_coll_args one;   /* args and handles, where n is 1 */
	uint64_t one_handle;
};

struct sw_nccl_coll {
	struct sw_nccl_coll *next;
	/* Set by NCCL's calls. */
	bool is_closing;  /* the thread frees it when nothing is under way */
	bool is_aborting; /* the thread tells the others */
	bool is_released; /* its buffers are free */
	uint32_t n_ranks, rank;
	struct sw_nccl_id *processes; /* by NCCL's rank */
	uint32_t *ranks; /* the job's, in the same order; the thread's */
	char name[40];
	uint32_t next_request; /* requests are used in their turn */
	/* The thread's. */
	uint32_t first_queued, first_open;
	bool is_aborted;
	struct sw_group *group;
	int failure; /* enum nccl_result: it refuses calls */
	struct sw_nccl_request requests[NCCL_REQUESTS];
};

/* sw_nccl_progress_start - where there is no thread, start one, which attaches
 * to the agent.  With the lock.  Errors: NCCL_SYSTEM. */
int sw_nccl_progress_start(struct sw_nccl_process *p);

/* sw_nccl_progress_wake - there is something to do. */
void sw_nccl_progress_wake(const struct sw_nccl_process *p);

/* sw_nccl_has_agent - does somebody listen where libsumwire would attach?  Does
 * not wait.
 * @path  where that is */
bool sw_nccl_has_agent(char path[108]);

/* sw_nccl_attach - attach, and let all processes of the job know each other:
 * client and ranks of @p.  Waits, also for the others; the thread's. */
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

/* sw_nccl_put - a request of @n collectives; *@request NULL: NCCL_REQUESTS are
 * under way.
 * @args   where @n is more than 1 of malloc; the request's where there is one
 * @bytes  that it receives
 * Errors: why the communicator has failed. */
int sw_nccl_put(struct sw_nccl_coll *c, struct sw_coll_args *args, uint32_t n,
	size_t bytes, void **request);

/* sw_nccl_find_type - translate NCCL's type and operation; false: not
 * supported. */
bool sw_nccl_find_type(
	int dtype, int op, enum sw_dtype *out_dtype, enum sw_reduce_op *out_op);

/* sw_nccl_request_free - it may be used again. */
void sw_nccl_request_free(struct sw_nccl_request *r);

/* sw_nccl_coll_fail - refuse further calls of the communicator; queued calls
 * have failed. With the lock. */
void sw_nccl_coll_fail(struct sw_nccl_coll *c, int result);

void sw_nccl_coll_free(struct sw_nccl_coll *c);

/* sw_nccl_result_of - @err of libsumwire. */
int sw_nccl_result_of(int err);

#endif
