/* params.h - the engine's parameters, with their defaults.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_BASE_PARAMS_H
#define SW_ENGINE_BASE_PARAMS_H

#include <stdbool.h>
#include <stdint.h>

#define SW_US 1000ULL       /* in nanoseconds */
#define SW_MS 1000000ULL    /* in nanoseconds */
#define SW_S  1000000000ULL /* in nanoseconds */

struct sw_policy; /* engine/sched/policy.h */

/* Times in nanoseconds unless the name says otherwise. */
struct sw_params {
	/* A peer without traffic for this long is dead. */
	uint64_t dead_after;
	/* If a tensor makes no progress while all members are alive: time until
	 * a warning that names the missing members, and until an error. */
	uint64_t stall_warn, stall_limit;
	/* Longest wait for the servers and for the other members. */
	uint64_t join_timeout;
	/* First and longest interval between retransmissions of a control
	 * request. */
	uint64_t retry_min, retry_max;
	/* Life of a cookie; the previous cookie remains valid. */
	uint64_t cookie_life;
	/* Retransmission: RTO before the first sample, its floor and ceiling. A
	 * frame is lost 5/4 SRTT and reorder after sending if later frames were
	 * acknowledged. */
	uint64_t rto_first, rto_min, rto_max, reorder;
	/* Acknowledge after ack_every frames, or after two SRTTs within
	 * ack_delay … ack_delay_max, or an eighth of an SRTT if longer; if
	 * answers acknowledge the frames, after ack_delay_late, or a quarter of
	 * an SRTT if longer. */
	uint32_t ack_every;
	uint64_t ack_delay, ack_delay_max, ack_delay_late;
	/* Query a late result after max(4 SRTT, query_min), then double the
	 * interval up to query_max. */
	uint64_t query_min, query_max;
	/* A gap of this length between two polls stops the engine's clock
	 * (loop.h). */
	uint64_t stop_gap;
	/* Bytes that one flow may have in flight. */
	uint32_t window_bytes;
	/* Queue in the switch before a receiver: bytes that all senders
	 * together may have in flight to the receiver.  Its lcores share the
	 * queue. */
	uint32_t queue_bytes;
	/* Kernel receive buffers for one lcore; 0: unknown. */
	uint32_t buffer_bytes;
	/* Bytes of a full chunk. */
	uint32_t payload;
	/* Scheduling of the job; the partition size is this node's own.  NULL:
	 * bytescheduler; 0: the policy's default. */
	const struct sw_policy *policy;
	uint64_t part_bytes, credit_bytes;
	/* Data payloads carry a CRC32C. */
	bool has_crc;
	/* Payloads of a keyed job are encrypted. */
	bool is_encrypted;
	/* A server core takes the next key of results after this many
	 * contributions, which is fewer than a tensor needs until its round
	 * numbers wrap. */
	uint32_t era_folds;
	/* Mode of the job, enum sw_mode. */
	uint8_t mode;
	/* Sum contributions to streams in the order of members. */
	bool is_by_rank;
	/* Only grants limit a flow; losses and marks do not.  For experiments.
	 */
	bool is_unlimited;
};

/* sw_params_init - set the defaults. */
static inline void sw_params_init(struct sw_params *p)
{
	*p = (struct sw_params){
		.dead_after = 10 * SW_S,
		.stall_warn = 30 * SW_S,
		.stall_limit = 600 * SW_S,
		.join_timeout = 60 * SW_S,
		.retry_min = 5 * SW_MS,
		.retry_max = 500 * SW_MS,
		.cookie_life = 2500 * SW_MS,
		.rto_first = 4 * SW_MS,
		.rto_min = 1 * SW_MS,
		.rto_max = 100 * SW_MS,
		.reorder = 20 * SW_US,
		.ack_every = 16,
		.ack_delay = 50 * SW_US,
		.ack_delay_max = 200 * SW_US,
		.ack_delay_late = 500 * SW_US,
		.query_min = 1 * SW_MS,
		.query_max = 100 * SW_MS,
		.stop_gap = 500 * SW_MS,
		.window_bytes = 512 * 1024,
		.queue_bytes = 1041 * 1024, /* 1 MiB, and headers */
		.payload = 8192,
		.has_crc = true,
		.era_folds = 1u << 30,
	};
}

/* sw_params_queue - return the bytes that senders may have in flight to one of
 * @n_lcores. */
static inline uint32_t sw_params_queue(
	const struct sw_params *p, uint32_t n_lcores)
{
	uint32_t queue = p->queue_bytes / n_lcores;

	return p->buffer_bytes && p->buffer_bytes < queue ? p->buffer_bytes
							  : queue;
}

#endif
