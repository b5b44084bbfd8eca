/* agent.h - the agent's two threads and what they say to each other.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_AGENT_H
#define SW_AGENT_H

#include "apps/serve.h"
#include "engine/worker.h"
#include "pmd/host/attach.h"

enum { AGENT_RING = 64 };

enum agent_order_kind {
	AGENT_JOIN,    /* open a worker */
	AGENT_SERVE,   /* take submits from port */
	AGENT_DECLARE, /* declare n tensors */
	AGENT_LEAVE, /* let go of port and tensors; err: what to tell others */
};

struct agent_order {
	enum agent_order_kind kind;
	int err;
	struct sw_host_port *port;
	const struct sw_host_tensor *tensors; /* the host's, until release */
	uint32_t n;
	char text[SW_TEXT_MAX];
};

enum agent_news_kind {
	AGENT_STATUS,   /* a line for people */
	AGENT_RUNNING,  /* the job runs */
	AGENT_DECLARED, /* the batch is admitted, or err */
	AGENT_FAILED,   /* the job failed */
	AGENT_LEFT,     /* nothing of the client is used any more */
};

struct agent_news {
	enum agent_news_kind kind;
	int err;
	uint32_t size, first;
	char text[SW_TEXT_MAX + SW_NAME_MAX];
};

struct agent_rings {
	_Alignas(64) unsigned char orders[SW_SPSC_BYTES(
		AGENT_RING, sizeof(struct agent_order))];
	_Alignas(64) unsigned char news[SW_SPSC_BYTES(
		AGENT_RING, sizeof(struct agent_news))];
};

struct agent {
	struct sw_daemon daemon;
	struct sw_poller poller;
	struct agent_rings *rings;

	/* control thread */
	struct sw_spsc orders_in, news_out;
	struct sw_host *host;
	bool is_stopping;
	bool is_attached; /* the id below is in use */
	bool is_admitted; /* it was told so */
	bool is_ended;    /* it is gone, or was told so */
	uint32_t id, pid, batch;
	bool has_next; /* waits until the one above has been let go of */
	uint32_t next_id, next_pid;

	/* both */
	bool is_serving;       /* role = both: this node sums, too */
	struct sw_serve serve; /* then */

	/* lcore */
	struct sw_spsc orders_out, news_in;
	struct sw_worker worker;
	bool has_worker, is_leaving;
	struct sw_host_port *port; /* NULL: no submits */
	uint32_t n_batch; /* tensors of the batch that is being declared */

	/* both */
	_Atomic uint32_t n_open; /* push_pulls, written by the lcore */
	struct sw_stats stats;   /* of all workers so far; lcore writes */
};

/* Functions of the lcore, for struct sw_poller; @ctx is the agent. */
uint32_t sw_agent_work(void *ctx, uint64_t now_ns);
void sw_agent_rest(void *ctx, uint64_t max_ns);

/* sw_agent_close - what the lcore left, after it was joined. */
void sw_agent_close(struct agent *a);

#endif
