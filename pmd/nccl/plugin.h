/* plugin.h - declarations shared by the files of NCCL's plugin.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * NCCL's version 8 passes no context to its calls, and an agent admits a
 * process once. Therefore each process has one struct sw_nccl_process, whose
 * lock guards its state and the state of its communicators.
 *
 * Errors are an enum nccl_result, returned after one line in NCCL's log.
 */
#ifndef SW_PMD_NCCL_PLUGIN_H
#define SW_PMD_NCCL_PLUGIN_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "pmd/nccl/nccl.h"

struct sw_client;
struct sw_nccl_coll;
struct sw_nccl_device;
struct sw_nccl_dial;

/* --- process.c: the process, its log --- */

enum sw_nccl_attachment { SW_NCCL_ALONE, SW_NCCL_JOINING, SW_NCCL_JOINED };

/* A random id: no two are equal, and none can be guessed. */
struct sw_nccl_id {
	uint64_t words[2];
};

struct sw_nccl_process {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	_Atomic(nccl_log) log;
	struct sw_nccl_device *device;
	struct sw_nccl_dial *dials; /* connections that net.c is making */

	/* The thread, which alone uses the client (progress.c). */
	enum sw_nccl_attachment attachment;
	pthread_t thread;
	pid_t pid; /* process that the thread belongs to */
	bool is_stopping;
	int wake_fd; /* eventfd that wakes the thread */
	struct sw_client *client;
	struct sw_nccl_id own;    /* this process's id in its job */
	struct sw_nccl_id *ranks; /* all processes of the job, by rank */
	struct sw_nccl_coll *colls;
};

/* sw_nccl_process - return the state of this process. Thread: any. */
struct sw_nccl_process *sw_nccl_process(void);

/* sw_nccl_say - write a line to NCCL's log, as a warning or as information;
 * does nothing before sw_nccl_init. Thread: any. */
void sw_nccl_say(bool is_warning, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* sw_nccl_fail - log a warning and return @result. */
int sw_nccl_fail(int result, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* sw_nccl_init - store NCCL's @log, for both tables. */
int sw_nccl_init(nccl_log log);

int sw_nccl_random(struct sw_nccl_id *out);

static inline bool sw_nccl_is_same(
	const struct sw_nccl_id *a, const struct sw_nccl_id *b)
{
	return a->words[0] == b->words[0] && a->words[1] == b->words[1];
}

/* --- handle.c: the data that nodes exchange through NCCL --- */

enum sw_nccl_handle_kind { SW_NCCL_NET = 1, SW_NCCL_COLL = 2 };

enum { SW_NCCL_ADDRESS_BYTES = 28 };

struct sw_nccl_handle {
	uint32_t magic, version, kind, sum;     /* sum: FNV-1a of the rest */
	struct sw_nccl_id process;              /* the process that listens */
	struct sw_nccl_id id;                   /* this listen */
	uint8_t address[SW_NCCL_ADDRESS_BYTES]; /* net: the socket's address */
	uint8_t address_bytes;
	uint8_t pad[NCCL_HANDLE_BYTES - 77]; /* 0 */
};

/* sw_nccl_handle_seal - set magic, version, kind and checksum of @h. */
void sw_nccl_handle_seal(
	struct sw_nccl_handle *h, enum sw_nccl_handle_kind kind);

/* sw_nccl_handle_read - copy @from to @out and check it.
 * Errors: NCCL_INTERNAL @from is NULL; NCCL_REMOTE the handle is damaged, or of
 * another version, kind or plugin. */
int sw_nccl_handle_read(const void *from, enum sw_nccl_handle_kind kind,
	struct sw_nccl_handle *out);

/* --- device.c: the one device --- */

/* sw_nccl_net_devices, sw_nccl_properties - report one network device: of the
 * interfaces that are up and that NCCL_SOCKET_IFNAME allows, the one with the
 * best address. */
int sw_nccl_net_devices(int *n);
int sw_nccl_properties_v8(int dev, struct nccl_props_v8 *out);
int sw_nccl_properties_v11(int dev, struct nccl_props_v11 *out);

/* sw_nccl_own_address - write the device's address to @out; return its bytes, 0
 * if unknown. */
uint32_t sw_nccl_own_address(uint8_t out[SW_NCCL_ADDRESS_BYTES]);

/* --- net.c, net_io.c: send and receive over TCP --- */

struct sw_nccl_channel; /* a connection on which one side sends */

int sw_nccl_net_listen(int dev, void *handle, void **listen_comm);
int sw_nccl_net_connect(int dev, void *handle, void **send_comm);
int sw_nccl_net_accept(void *listen_comm, void **recv_comm);
int sw_nccl_net_close_listen(void *listen_comm);

/* sw_nccl_channel_new - make a channel that owns the non-blocking @fd; NULL: no
 * memory, and @fd stays the caller's. */
struct sw_nccl_channel *sw_nccl_channel_new(int fd, bool is_sender);
int sw_nccl_net_close(void *comm);
int sw_nccl_net_reg_mr(
	void *comm, void *data, size_t size, int type, void **mhandle);
int sw_nccl_net_dereg_mr(void *comm, void *mhandle);

/* sw_nccl_net_post - queue a message of up to @size bytes at @data, sent or
 * received in order; *@request becomes NULL if NCCL_REQUESTS are in use. Does
 * not block; sw_nccl_net_test moves the remaining bytes. */
int sw_nccl_net_post(struct sw_nccl_channel *c, bool is_sender, void *data,
	size_t size, void **request);
int sw_nccl_net_test(void *request, int *done, int *size);

/* --- collnet.c: NCCL's collective calls --- */

int sw_nccl_coll_devices(int *n);
int sw_nccl_coll_listen(int dev, void *handle, void **listen_comm);
int sw_nccl_coll_connect(void *handles[], int n_ranks, int rank,
	void *listen_comm, void **coll_comm);
int sw_nccl_coll_close_listen(void *listen_comm);
int sw_nccl_coll_support(int dtype, int op, int *is_supported);
int sw_nccl_coll_reg_mr(
	void *comm, void *data, size_t size, int type, void **mhandle);
int sw_nccl_coll_dereg_mr(void *comm, void *mhandle);
int sw_nccl_coll_reduce(void *comm, void *send, void *recv, size_t count,
	int dtype, int op, void *send_mr, void *recv_mr, void **request);
int sw_nccl_coll_test(void *request, int *done, int *size);
int sw_nccl_coll_close(void *comm);

/* --- window.c: all_gather and reduce_scatter, as of struct nccl_collnet_v8 ---
 */

struct sw_nccl_window {
	bool is_scatter;
	char *own, *all; /* this node's part; the window */
	void *own_mr, *all_mr;
	size_t all_bytes, bytes_per_rank, offset, bytes;
	int dtype, op; /* reduce_scatter only */
};

int sw_nccl_window_start(
	void *comm, const struct sw_nccl_window *w, void **request);

#endif
