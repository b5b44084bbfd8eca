/* client.h - inside of libsumwire.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_CLIENT_H
#define SW_CLIENT_H

#include <stdbool.h>

#include "conf/launch.h"
#include "pmd/client/edge.h"
#include "pmd/client/folder.h"
#include "pmd/client/segment.h"
#include <sumwire/coll_kind.h>
#include <sumwire/sumwire.h>

enum { SW_GROUP_NAME_MAX = 100 }; /* bytes; the kind comes behind it */

struct sw_group {
	struct sw_client *client;
	struct sw_group *next;
	uint64_t ranks; /* a bit each */
	uint32_t n;
	struct sw_tensor *streams[SW_N_COLL_KINDS]; /* NULL: not opened yet */
	char name[SW_GROUP_NAME_MAX + 1];
};

/* A collective that is open. */
struct sw_open_coll {
	uint64_t handle;
	uint32_t state; /* enum sw_tensor_state */
	int status;
	const char *name; /* of its stream */
};

enum sw_tensor_state {
	SW_TENSOR_IDLE,
	SW_TENSOR_OPEN,  /* pushed */
	SW_TENSOR_ENDED, /* completed, not yet reported to the caller */
};

struct sw_tensor {
	struct sw_client *client;
	void *data;
	const void *result;
	const char *name;
	uint64_t handle; /* the last one */
	enum sw_tensor_state state;
	int status;            /* of SW_TENSOR_ENDED */
	bool needs_value;      /* asynchronous, and none was broadcast yet */
	uint32_t i;            /* counted in the order of declaration */
	uint64_t memory_bytes; /* of sw_alloc; 0: it is a tensor */
};

/* What one sw_declare allocates. */
struct sw_client_batch {
	struct sw_segment data;
	struct sw_tensor *tensors;
	char (*names)[SW_EDGE_NAME_BYTES];
};

struct sw_client {
	struct sw_settings settings; /* its texts are ours: */
	char *agent, *agent_user;
	char agent_path[SW_FOLDER_BYTES]; /* where agent is a name alone */
	int sock, bell;
	struct sw_segment control_segment;
	struct sw_edge_control *control;
	struct sw_spsc submits, colls, completions;
	uint32_t rank, size, local_rank, local_size;
	struct sw_launch launch;   /* what the environment says of those */
	struct sw_segment results; /* shared by several local ranks, to read */

	uint64_t n_pushes;     /* handles so far; they start at 1 */
	uint32_t n_idle_polls; /* sw_poll without a completion */
	/* One page that reads as zeros in a forked child: there the attachment
	 * is not ours. */
	bool *is_ours;
	int closed; /* error that every call returns from now on, or 0 */

	uint32_t n_tensors, n_batches;
	uint32_t next_batch; /* counts declares, as the agent does */
	struct sw_tensor *tensors[SW_EDGE_TENSORS];
	struct sw_client_batch batches[SW_EDGE_TENSORS];

	struct sw_open_coll open_colls[SW_EDGE_COLLS];
	uint32_t n_allocs;
	uint64_t n_colls;        /* handles so far */
	struct sw_group *groups; /* the newest first */

	char status[SW_EDGE_TEXT_BYTES]; /* last progress line of the agent */
	char closed_text[SW_EDGE_TEXT_BYTES];
	char error[2 * SW_EDGE_TEXT_BYTES]; /* sw_last_error */
};

/* sw_client_fail - note the sentence of an error and return @err. */
int sw_client_fail(struct sw_client *c, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* sw_client_close - the attachment is over: every call returns @err and @text
 * from now on.  Only the first reason counts. */
void sw_client_close(struct sw_client *c, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* sw_client_check - 0, or why the attachment cannot be used any more. */
int sw_client_check(struct sw_client *c);

/* sw_client_log - one line to the caller's log. */
void sw_client_log(const struct sw_settings *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* sw_client_rx - one message of the agent, if there is one; never blocks.
 * Progress lines and hang-ups are handled inside.
 * Returns its kind and fills @m and @fds[2] (owned by the caller), 0 when there
 * is none for the caller, or the error that closed the attachment. */
int sw_client_rx(struct sw_client *c, union sw_edge_msg *m, int *fds);

/* sw_client_sleep - sleep until the agent has written a message or rung the
 * bell, or until @until_ns. */
void sw_client_sleep(struct sw_client *c, uint64_t until_ns);

/* sw_client_declare - as sw_declare; is_async of @descs is enum sw_edge_item.
 */
int sw_client_declare(struct sw_client *c, const struct sw_tensor_desc *descs,
	uint32_t n, struct sw_tensor **out);

/* sw_client_coll - the open collective of @handle, NULL: there is none; close
 * all groups. */
struct sw_open_coll *sw_client_coll(struct sw_client *c, uint64_t handle);
void sw_client_close_groups(struct sw_client *c);

/* sw_client_ring - wake the agent, if it has said so in @flag. */
void sw_client_ring(const struct sw_client *c, _Atomic uint32_t *flag);

/* sw_client_await - sleep until a message of the agent comes.
 * Returns like sw_client_rx, and SW_ETIMEDOUT at @until_ns. */
int sw_client_await(
	struct sw_client *c, uint64_t until_ns, union sw_edge_msg *m, int *fds);

#endif
