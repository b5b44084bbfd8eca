/* params.h - the engine's numbers, with their defaults.
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
	/* A peer that sends nothing for so long is dead. */
	uint64_t dead_after;
	/* A tensor without progress for so long, all alive: a warning with
	 * the name of who is missing, and an error. */
	uint64_t stall_warn, stall_limit;
	/* The longest wait for the servers and for the other members. */
	uint64_t join_timeout;
	/* First and longest interval between two tries of a control request. */
	uint64_t retry_min, retry_max;
	/* Life of a cookie; the one before is still taken. */
	uint64_t cookie_life;
	/* Retransmission: RTO before the first sample, its floor and ceiling;
	 * a frame overtaken by acknowledged ones is lost after 5/4 SRTT and
	 * reorder. */
	uint64_t rto_first, rto_min, rto_max, reorder;
	/* Acknowledge after so many frames, or so long: two SRTTs within these
	 * bounds; late, where what is sent answers them. */
	uint32_t ack_every;
	uint64_t ack_delay, ack_delay_max, ack_delay_late;
	/* Ask for a late result after max(4 SRTT, query_min), then x2 up to
	 * query_max. */
	uint64_t query_min, query_max;
	/* A gap between two polls that is longer stops the engine's clock. */
	uint64_t stop_gap;
	/* Bytes that one flow may have on its way. */
	uint32_t window_bytes;
	/* Room before a receiver, in a switch: what all may have on their way
	 * to it.  Its lcores share it. */
	uint32_t queue_bytes;
	/* Room for what comes to one lcore, in the kernel's receive buffers; 0:
	 * not known. */
	uint32_t buffer_bytes;
	/* Payload class: bytes of a full chunk. */
	uint32_t payload;
	/* Scheduling; the job's, but for the partition.  NULL: bytescheduler;
	 * 0: the policy's. */
	const struct sw_policy *policy;
	uint64_t part_bytes, credit_bytes;
	/* Data payloads carry a CRC32C. */
	bool has_crc;
	/* The job's, enum sw_mode. */
	uint8_t mode;
	/* What members give to streams is added in their order. */
	bool is_by_rank;
};

/* sw_params_init - the defaults. */
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
		.rto_first = 20 * SW_MS,
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
	};
}

/* sw_params_queue - what senders may have on their way to one of @n_lcores. */
static inline uint32_t sw_params_queue(
	const struct sw_params *p, uint32_t n_lcores)
{
	uint32_t queue = p->queue_bytes / n_lcores;

	return p->buffer_bytes && p->buffer_bytes < queue ? p->buffer_bytes
							  : queue;
}

#endif
