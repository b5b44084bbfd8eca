/* collnet.c - NCCL's collective calls; only connect waits for other processes.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * NCCL frees its buffers when deregMr and closeColl have returned. If NCCL
 * calls them during a sum, they wait for a copy in progress and prevent further
 * copies. The thread then ends the open requests and frees our memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmd/client/release.h"
#include "pmd/nccl/coll.h"

enum { RANKS_MAX = 4096 };

/* The result of listen. */
struct coll_listener {
	struct sw_nccl_handle handle;
};

/* --- devices and types --- */

int sw_nccl_coll_devices(int *n)
{
	struct sw_nccl_process *p = sw_nccl_process();
	char path[108];
	bool is_joined;

	pthread_mutex_lock(&p->lock);
	is_joined = p->attachment == SW_NCCL_JOINED;
	pthread_mutex_unlock(&p->lock);
	*n = is_joined || sw_nccl_has_agent(path);
	if (!*n)
		sw_nccl_say(true,
			"no agent listens at %s, so nothing is summed by "
			"sumwire; start one, or set SUMWIRE_AGENT",
			path);
	return NCCL_OK;
}

/* Translate NCCL's type; returns false if sumwire lacks it. Sums and products
 * of unsigned integers have the same bits as those of signed integers. */
static bool find_dtype(int dtype, int op, enum sw_dtype *out)
{
	static const int8_t dtypes[NCCL_N_DTYPES] = {SW_I8, SW_U8, SW_I32,
		SW_I32, SW_I64, SW_I64, SW_F16, SW_F32, SW_F64, SW_BF16, -1,
		-1};
	bool is_ordered = op == NCCL_MIN || op == NCCL_MAX;

	if (dtype < 0 || dtype >= NCCL_N_DTYPES || dtypes[dtype] < 0 ||
		(is_ordered && (dtype == NCCL_U32 || dtype == NCCL_U64)))
		return false;
	*out = (enum sw_dtype)dtypes[dtype];
	return true;
}

static bool find_op(int op, enum sw_reduce_op *out)
{
	static const enum sw_reduce_op ops[NCCL_N_OPS] = {
		SW_SUM, SW_PROD, SW_MAX, SW_MIN};

	if (op < 0 || op >= NCCL_N_OPS)
		return false;
	*out = ops[op];
	return true;
}

bool sw_nccl_find_type(
	int dtype, int op, enum sw_dtype *out_dtype, enum sw_reduce_op *out_op)
{
	return find_op(op, out_op) && find_dtype(dtype, op, out_dtype);
}

int sw_nccl_coll_support(int dtype, int op, int *is_supported)
{
	enum sw_dtype d;
	enum sw_reduce_op o;

	*is_supported = sw_nccl_find_type(dtype, op, &d, &o);
	return NCCL_OK;
}

/* --- communicators --- */

int sw_nccl_coll_listen(int dev, void *handle, void **listen_comm)
{
	struct sw_nccl_process *p = sw_nccl_process();
	struct coll_listener *l = calloc(1, sizeof(*l));
	int err;

	*listen_comm = NULL;
	if (!l || !handle || dev != 0) {
		free(l);
		return sw_nccl_fail(
			NCCL_INTERNAL, "cannot listen on device %d", dev);
	}
	pthread_mutex_lock(&p->lock);
	err = sw_nccl_progress_start(p);
	l->handle.process = p->own;
	pthread_mutex_unlock(&p->lock);
	if (!err)
		err = sw_nccl_random(&l->handle.id);
	if (err) {
		free(l);
		return err;
	}
	sw_nccl_handle_seal(&l->handle, SW_NCCL_COLL);
	memcpy(handle, &l->handle, sizeof(l->handle));
	*listen_comm = l;
	return NCCL_OK;
}

int sw_nccl_coll_close_listen(void *listen_comm)
{
	free(listen_comm);
	return NCCL_OK;
}

static int read_handles(
	struct sw_nccl_coll *c, void *handles[], const struct coll_listener *l)
{
	struct sw_nccl_handle h;

	for (uint32_t i = 0; i < c->n_ranks; i++) {
		int err = sw_nccl_handle_read(handles[i], SW_NCCL_COLL, &h);

		if (err)
			return err;
		if (i == c->rank && memcmp(&h, &l->handle, sizeof(h)) != 0)
			return sw_nccl_fail(NCCL_INTERNAL,
				"connect: the handle of rank %u is not that of "
				"this listen",
				i);
		if (i == 0)
			snprintf(c->name, sizeof(c->name),
				"nccl-%016llx%016llx",
				(unsigned long long)h.id.words[0],
				(unsigned long long)h.id.words[1]);
		c->processes[i] = h.process;
	}
	return NCCL_OK;
}

static int make(void *handles[], int n_ranks, int rank,
	const struct coll_listener *l, struct sw_nccl_coll **out)
{
	struct sw_nccl_coll *c;
	int err;

	if (!l) /* NCCL connects once to send and once to receive */
		return sw_nccl_fail(
			NCCL_SYSTEM, "connect: it has failed before");
	if (!handles || n_ranks < 1 || n_ranks > RANKS_MAX || rank < 0 ||
		rank >= n_ranks)
		return sw_nccl_fail(NCCL_INTERNAL,
			"connect: rank %d of %d, at most %d", rank, n_ranks,
			RANKS_MAX);
	c = calloc(1, sizeof(*c));
	if (!c)
		return sw_nccl_fail(NCCL_SYSTEM, "no memory");
	c->n_ranks = (uint32_t)n_ranks;
	c->rank = (uint32_t)rank;
	c->processes = calloc(c->n_ranks, sizeof(*c->processes));
	c->ranks = calloc(c->n_ranks, sizeof(*c->ranks));
	err = c->processes && c->ranks ? read_handles(c, handles, l)
				       : sw_nccl_fail(NCCL_SYSTEM, "no memory");
	if (err)
		sw_nccl_coll_free(c);
	else
		*out = c;
	return err;
}

/* Wait until this process is attached or cannot attach, such as when another
 * process has its place at the agent. The thread limits the wait. NCCL calls
 * connect once, and only here can fall back to its rings. Called with the lock.
 */
static int await_attachment(struct sw_nccl_process *p)
{
	int err = sw_nccl_progress_start(p);

	while (!err && p->attachment == SW_NCCL_JOINING)
		pthread_cond_wait(&p->changed, &p->lock);
	if (!err && p->attachment != SW_NCCL_JOINED)
		err = sw_nccl_fail(NCCL_SYSTEM,
			"connect: this process is not attached to the agent");
	return err;
}

/* Open a communicator. If this fails, NCCL continues without the plugin and
 * does not close @listen_comm, so free it here. */
int sw_nccl_coll_connect(void *handles[], int n_ranks, int rank,
	void *listen_comm, void **coll_comm)
{
	struct sw_nccl_process *p = sw_nccl_process();
	struct sw_nccl_coll *c = NULL;
	int err = make(handles, n_ranks, rank, listen_comm, &c);

	*coll_comm = NULL;
	pthread_mutex_lock(&p->lock);
	if (!err)
		err = await_attachment(p);
	if (!err) {
		c->next = p->colls;
		p->colls = c;
	}
	pthread_mutex_unlock(&p->lock);
	if (err) {
		if (c)
			sw_nccl_coll_free(c);
		free(listen_comm);
		return err;
	}
	sw_nccl_progress_wake(p);
	*coll_comm = c;
	return NCCL_OK;
}

/* --- buffers that NCCL is about to free --- */

static bool is_using(
	const struct sw_coll_args *a, const struct sw_nccl_memory *m)
{
	const char *send = a->send, *recv = a->recv;

	return !m || (send >= m->base && send < m->base + m->size) ||
	       (recv >= m->base && recv < m->base + m->size);
}

/* Return whether an unfinished request uses @m or, if @m is NULL, any
 * memory. */
static bool is_busy(
	const struct sw_nccl_coll *c, const struct sw_nccl_memory *m)
{
	for (uint32_t i = 0; i < NCCL_REQUESTS; i++) {
		const struct sw_nccl_request *r = &c->requests[i];

		for (uint32_t k = 0; k < r->n; k++)
			if ((r->state == SW_NCCL_OPEN ||
				    r->state == SW_NCCL_QUEUED) &&
				is_using(&r->args[k], m))
				return true;
	}
	return false;
}

/* Abort the communicator if an unfinished request uses @m. Called with the
 * lock, so the group stays valid. */
static void release_buffers(
	struct sw_nccl_coll *c, const struct sw_nccl_memory *m)
{
	if (c->is_released || !is_busy(c, m))
		return;
	sw_nccl_say(
		true, "a communicator is closed while it sums: aborting it");
	sw_nccl_coll_fail(c, NCCL_INTERNAL);
	c->is_released = c->is_aborting = true;
	if (c->group)
		sw_group_release(c->group);
}

int sw_nccl_coll_close(void *comm)
{
	struct sw_nccl_process *p = sw_nccl_process();
	struct sw_nccl_coll *c = comm;

	if (!c)
		return NCCL_OK;
	pthread_mutex_lock(&p->lock);
	release_buffers(c, NULL);
	c->is_closing = true;
	pthread_mutex_unlock(&p->lock);
	sw_nccl_progress_wake(p);
	return NCCL_OK;
}

/* --- memory --- */

int sw_nccl_coll_reg_mr(
	void *comm, void *data, size_t size, int type, void **mhandle)
{
	struct sw_nccl_memory *m;

	*mhandle = NULL;
	if (!comm || !data || type != NCCL_PTR_HOST)
		return sw_nccl_fail(NCCL_INTERNAL,
			"memory of kind %d: only the host's is used", type);
	m = malloc(sizeof(*m));
	if (!m)
		return sw_nccl_fail(NCCL_SYSTEM, "no memory");
	*m = (struct sw_nccl_memory){data, size};
	*mhandle = m;
	return NCCL_OK;
}

int sw_nccl_coll_dereg_mr(void *comm, void *mhandle)
{
	struct sw_nccl_process *p = sw_nccl_process();
	struct sw_nccl_coll *c = comm;

	if (!c || !mhandle)
		return sw_nccl_fail(NCCL_INTERNAL, "deregMr: no such memory");
	pthread_mutex_lock(&p->lock);
	release_buffers(c, mhandle);
	pthread_mutex_unlock(&p->lock);
	sw_nccl_progress_wake(p);
	free(mhandle);
	return NCCL_OK;
}

/* --- requests --- */

/* Queue a request; returns NULL if there is no memory. Called with the lock. */
static struct sw_nccl_request *queue(
	struct sw_nccl_coll *c, struct sw_coll_args *args, uint32_t n)
{
	struct sw_nccl_request *r =
		&c->requests[c->next_request % NCCL_REQUESTS];

	*r = (struct sw_nccl_request){.coll = c, .n = n};
	r->one = args[0];
	r->args = n > 1 ? args : &r->one;
	r->handles = n > 1 ? calloc(n, sizeof(*r->handles)) : &r->one_handle;
	if (!r->handles)
		return NULL;
	r->state = SW_NCCL_QUEUED;
	c->next_request++;
	return r;
}

static bool has_room(const struct sw_nccl_coll *c)
{
	return c->requests[c->next_request % NCCL_REQUESTS].state ==
	       SW_NCCL_FREE;
}

int sw_nccl_put(struct sw_nccl_coll *c, struct sw_coll_args *args, uint32_t n,
	size_t bytes, void **request)
{
	struct sw_nccl_process *p = sw_nccl_process();
	struct sw_nccl_request *r = NULL;
	int err;

	*request = NULL;
	pthread_mutex_lock(&p->lock);
	err = c->failure;
	if (!err && has_room(c)) {
		r = queue(c, args, n);
		err = r ? NCCL_OK : NCCL_SYSTEM;
	}
	if (r)
		r->bytes = (int)bytes;
	*request = r;
	pthread_mutex_unlock(&p->lock);
	if (r)
		sw_nccl_progress_wake(p);
	return err;
}

int sw_nccl_coll_reduce(void *comm, void *send, void *recv, size_t count,
	int dtype, int op, void *send_mr, void *recv_mr, void **request)
{
	struct sw_coll_args a = SW_COLL_ARGS_INIT;
	size_t bytes;

	*request = NULL;
	if (!comm || !sw_nccl_find_type(dtype, op, &a.dtype, &a.op))
		return sw_nccl_fail(NCCL_INTERNAL,
			"iallreduce: operation %d of type %d is not supported",
			op, dtype);
	bytes = count * sw_dtype_bytes(a.dtype);
	if (!count || count > SIZE_MAX / 8 ||
		!sw_nccl_is_inside(send_mr, send, bytes) ||
		!sw_nccl_is_inside(recv_mr, recv, bytes))
		return sw_nccl_fail(NCCL_INTERNAL,
			"iallreduce: %zu elements that are not within "
			"registered memory",
			count);
	a.kind = SW_ALL_REDUCE;
	a.count = count;
	a.send = send;
	a.recv = recv;
	return sw_nccl_put(comm, &a, 1, bytes, request);
}

int sw_nccl_coll_test(void *request, int *done, int *size)
{
	struct sw_nccl_process *p = sw_nccl_process();
	struct sw_nccl_request *r = request;
	int err = NCCL_OK;

	*done = 0;
	if (!r)
		return sw_nccl_fail(NCCL_INTERNAL, "test: no request");
	pthread_mutex_lock(&p->lock);
	if (r->state == SW_NCCL_DONE) {
		*done = 1;
		if (size)
			*size = r->bytes;
		sw_nccl_request_free(r);
	} else if (r->state == SW_NCCL_FAILED ||
		   (r->state == SW_NCCL_OPEN && r->coll->is_released)) {
		err = r->coll->failure;
	} else if (r->state == SW_NCCL_FREE) {
		err = sw_nccl_fail(NCCL_INTERNAL, "test: no such request");
	}
	pthread_mutex_unlock(&p->lock);
	return err;
}
