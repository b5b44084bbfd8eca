/* proc_nccl_node.c - NCCL's side of the plugin interface, without NCCL.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test/proc/proc_nccl.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "test/proc/proc_say.h"

enum { TRIES_MAX = 60000 };

void nccl_must(bool is_so, const char *fmt, ...)
{
	va_list ap;

	if (is_so)
		return;
	va_start(ap, fmt);
	printf("wrong: ");
	vprintf(fmt, ap);
	printf("\n");
	va_end(ap);
	fflush(stdout);
	exit(EXIT_WRONG);
}

static void log_line(int level, unsigned long flags, const char *file, int line,
	const char *fmt, ...)
{
	char text[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(stderr, "%s %s\n", level == NCCL_LOG_WARN ? "WARN" : "INFO",
		text);
}

void nccl_barrier(struct node *k)
{
	pthread_barrier_wait(&k->shared->barrier);
}

static const void *find(void *library, const char *table, uint32_t version)
{
	char name[40];
	const void *at;

	snprintf(name, sizeof(name), "%s_v%u", table, version);
	at = dlsym(library, name);
	nccl_must(at != NULL, "no %s", name);
	return at;
}

static void init_v8(struct node *k, int *n_net, int *n_coll)
{
	nccl_must(!k->net8->init(log_line) && !k->net8->devices(n_net),
		"init of ncclNet");
	nccl_must(!k->coll8->init(log_line) && !k->coll8->devices(n_coll),
		"init of ncclCollNet");
}

static void init_v11(struct node *k, int *n_net, int *n_coll)
{
	int config = -1;

	nccl_must(!k->net11->init(&k->ctx, 1, &config, log_line, NULL) &&
			  !k->net11->devices(n_net),
		"init of ncclNet");
	nccl_must(!k->coll11->init(&k->coll_ctx, 1, log_line) &&
			  !k->coll11->devices(n_coll),
		"init of ncclCollNet");
}

/* Check for one device, with host memory only, the same in both tables. */
static void check_v8(struct node *k, bool has_coll)
{
	struct nccl_props_v8 net, coll;

	nccl_must(!k->net8->get_properties(0, &net) && net.name && *net.name &&
			  net.ptr_support == NCCL_PTR_HOST &&
			  net.speed_mbit_s > 0 && net.max_comms > 0 &&
			  net.max_recvs == 1 && !net.device_type,
		"properties of ncclNet");
	nccl_must(!has_coll || (!k->coll8->get_properties(0, &coll) &&
				       !strcmp(coll.name, net.name) &&
				       coll.ptr_support == NCCL_PTR_HOST),
		"properties of ncclCollNet");
	nccl_must(k->net8->get_properties(1, &net) != 0, "a second device");
}

static void check_v11(struct node *k, bool has_coll)
{
	struct nccl_props_v11 net, coll;

	nccl_must(!k->net11->get_properties(0, &net) && net.name && *net.name &&
			  net.ptr_support == NCCL_PTR_HOST &&
			  net.speed_mbit_s > 0 && net.max_comms > 0 &&
			  net.max_recvs == 1 && !net.device_type &&
			  net.vdevice.n_devices == 1 &&
			  net.vdevice.devices[0] == 0 && net.max_p2p_bytes &&
			  net.max_coll_bytes && net.max_multi_request == 1,
		"properties of ncclNet");
	nccl_must(!has_coll || (!k->coll11->get_properties(0, &coll) &&
				       !strcmp(coll.name, net.name) &&
				       coll.ptr_support == NCCL_PTR_HOST),
		"properties of ncclCollNet");
	nccl_must(k->net11->get_properties(1, &net) != 0, "a second device");
}

void nccl_load(struct node *k, const char *path, int *n_coll)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	int n_net;

	nccl_must(library != NULL, "dlopen: %s", library ? "" : dlerror());
	if (k->version == 8) {
		k->net8 = find(library, "ncclNetPlugin", 8);
		k->coll8 = find(library, "ncclCollNetPlugin", 8);
		init_v8(k, &n_net, n_coll);
	} else {
		k->net11 = find(library, "ncclNetPlugin", 11);
		k->coll11 = find(library, "ncclCollNetPlugin", 11);
		init_v11(k, &n_net, n_coll);
	}
	nccl_must(n_net == 1, "%d network devices", n_net);
	(k->version == 8 ? check_v8 : check_v11)(k, *n_coll > 0);
}

void nccl_unload(struct node *k)
{
	nccl_must(k->version == 8 || (!k->net11->finalize(k->ctx) &&
					     !k->coll11->finalize(k->coll_ctx)),
		"finalize");
}

void nccl_ask_too_much(struct node *k, void *comm, void *data, void *mhandle)
{
	struct nccl_part_v8 parts8[2] = {
		{mhandle, data, 4}, {mhandle, data, 4}};
	struct nccl_part_v11 parts11[2] = {
		{mhandle, data, 4}, {mhandle, data, 4}};
	void *mr = &mr, *gather = &mr, *scatter = &mr;
	int err[3];

	if (k->version == 8) {
		err[0] = k->coll8->reg_mr(comm, data, 8, NCCL_PTR_CUDA, &mr);
		err[1] = k->coll8->iallgather(
			comm, data, 2, parts8, 4, 0, 8, mhandle, &gather);
		err[2] = k->coll8->ireducescatter(comm, 2, parts8, data, 4, 0,
			8, NCCL_I32, NCCL_SUM, mhandle, &scatter);
	} else {
		err[0] = k->coll11->reg_mr(comm, data, 8, NCCL_PTR_CUDA, &mr);
		err[1] = k->coll11->iallgather(
			comm, data, 2, parts11, 4, 0, 8, mhandle, &gather);
		err[2] = k->coll11->ireducescatter(comm, 2, parts11, data, 4, 0,
			8, NCCL_I32, NCCL_SUM, mhandle, &scatter);
	}
	nccl_must(err[0] && !mr, "memory of a GPU was taken");
	nccl_must(err[1] && !gather, "two parts were gathered");
	nccl_must(err[2] && !scatter, "two parts were reduced");
}

int nccl_listen(struct node *k, void *handle, void **listen_comm)
{
	return k->version == 8
		       ? k->coll8->listen(0, handle, listen_comm)
		       : k->coll11->listen(k->coll_ctx, 0, handle, listen_comm);
}

int nccl_join(struct node *k, void *handles[], void *listen_comm, void **comm)
{
	return k->version == 8 ? k->coll8->connect(handles, (int)k->n,
					 (int)k->rank, listen_comm, comm)
			       : k->coll11->connect(handles, (int)k->n,
					 (int)k->rank, listen_comm, comm);
}

void *nccl_connect(struct node *k)
{
	void *handles[NODES_MAX], *listen_comm, *comm = NULL;
	int err;

	nccl_must(!nccl_listen(k, k->shared->handles[k->rank], &listen_comm),
		"listen");
	nccl_barrier(k);
	for (uint32_t i = 0; i < k->n; i++)
		handles[i] = k->shared->handles[i];
	err = nccl_join(k, handles, listen_comm, &comm);
	if (k->is_refused) {
		nccl_must(err && !comm, "connect: %d", err);
		return NULL;
	}
	nccl_must(!err && comm, "connect: %d", err);
	nccl_barrier(k);
	err = k->version == 8 ? k->coll8->close_listen(listen_comm)
			      : k->coll11->close_listen(listen_comm);
	nccl_must(!err, "closeListen: %d", err);
	return comm;
}

bool nccl_supports(struct node *k, int dtype, int op)
{
	int is = -1, err = k->version == 8
				   ? k->coll8->reduce_support(dtype, op, &is)
				   : k->coll11->reduce_support(dtype, op, &is);

	nccl_must(!err && (is == 0 || is == 1), "reduceSupport: %d", err);
	return is;
}

void nccl_gather(struct node *k, void *comm, void *send, void *recv,
	size_t each, size_t at, size_t n, void *send_mr, void *recv_mr,
	void **request)
{
	struct nccl_part_v8 part8 = {recv_mr, recv, (uint32_t)n};
	struct nccl_part_v11 part11 = {recv_mr, recv, n};
	int err = k->version == 8
			  ? k->coll8->iallgather(comm, send, 1, &part8, each,
				    at, n, send_mr, request)
			  : k->coll11->iallgather(comm, send, 1, &part11, each,
				    at, n, send_mr, request);

	nccl_must(!err && *request, "iallgather: %d", err);
}

void nccl_scatter(struct node *k, void *comm, void *send, void *recv,
	size_t each, size_t at, size_t n, int dtype, void *send_mr,
	void *recv_mr, void **request)
{
	struct nccl_part_v8 part8 = {send_mr, send, (uint32_t)n};
	struct nccl_part_v11 part11 = {send_mr, send, n};
	int err = k->version == 8 ? k->coll8->ireducescatter(comm, 1, &part8,
					    recv, each, at, n, dtype, NCCL_SUM,
					    recv_mr, request)
				  : k->coll11->ireducescatter(comm, 1, &part11,
					    recv, each, at, n, dtype, NCCL_SUM,
					    recv_mr, request);

	nccl_must(!err && *request, "ireducescatter: %d", err);
}

int nccl_all_reduce(struct node *k, void *comm, void *send, void *recv,
	size_t count, int dtype, int op, void *send_mr, void *recv_mr,
	void **request)
{
	return k->version == 8
		       ? k->coll8->iallreduce(comm, send, recv, (int)count,
				 dtype, op, send_mr, recv_mr, request)
		       : k->coll11->iallreduce(comm, send, recv, count, dtype,
				 op, send_mr, recv_mr, request);
}

void *nccl_register(struct node *k, void *comm, void *data, size_t size)
{
	void *mhandle = NULL;
	int err = k->version == 8 ? k->coll8->reg_mr(comm, data, size,
					    NCCL_PTR_HOST, &mhandle)
				  : k->coll11->reg_mr(comm, data, size,
					    NCCL_PTR_HOST, &mhandle);

	nccl_must(!err && mhandle, "regMr: %d", err);
	return mhandle;
}

void nccl_deregister(struct node *k, void *comm, void *mhandle)
{
	nccl_must(!(k->version == 8 ? k->coll8->dereg_mr(comm, mhandle)
				    : k->coll11->dereg_mr(comm, mhandle)),
		"deregMr");
}

int nccl_test(struct node *k, void *request, int *done, int *size)
{
	return k->version == 8 ? k->coll8->test(request, done, size)
			       : k->coll11->test(request, done, size);
}

void nccl_close(struct node *k, void *comm)
{
	nccl_must(!(k->version == 8 ? k->coll8->close_coll(comm)
				    : k->coll11->close_coll(comm)),
		"closeColl");
}

void nccl_later(uint32_t *n_tries)
{
	nccl_must(++*n_tries < TRIES_MAX, "later, for a minute");
	nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

int nccl_await(struct node *k, void *request)
{
	uint32_t n_tries = 0;
	int done = 0, size = 0;

	for (;;) {
		int err = nccl_test(k, request, &done, &size);

		if (err || done)
			return err ? -err : size;
		nccl_later(&n_tries);
	}
}
