/* limits.h - the limits of the wire format.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_BASE_LIMITS_H
#define SW_ENGINE_BASE_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

enum {
	/* A job's payload is a multiple of the unit.  The smallest payload,
	 * with headers and a tag of 16 bytes, fits an MTU of 1280, the minimum
	 * of IPv6. */
	SW_PAYLOAD_UNIT = 64,
	SW_PAYLOAD_MIN = 1152,
	SW_PAYLOAD_MAX = 8192,
	SW_N_CLASSES = 8, /* priority classes of data frames, 0 most urgent */
	SW_CLASS_CTL = 8, /* packet number space of control frames */
	SW_N_SPACES = 9,
	SW_MAX_MEMBERS = 64,   /* members of a job, bits in a cell */
	SW_LOCAL_RANKS = 1023, /* local ranks of one member, so that all ranks
				  fit 16 bits */
	SW_MAX_SERVERS = 128,  /* polling cores of servers */
	SW_MAX_SESSIONS = 256, /* sessions per polling core */
	SW_GROUP_STREAMS = 16, /* streams per group: a few for each kind */
	SW_NAME_MAX = 128,     /* a name and its NUL */
	SW_TEXT_MAX = 160,     /* an error's text and its NUL */
	/* Bytes of a growing tensor whose results are reported together. */
	SW_GRANULE = 256 << 10,
};

/* sw_payload_is_good - return whether a job may have chunks of @bytes.
 * sw_payload_within - return the largest such size within @bytes; 0: none. */
static inline bool sw_payload_is_good(uint32_t bytes)
{
	return bytes >= SW_PAYLOAD_MIN && bytes <= SW_PAYLOAD_MAX &&
	       bytes % SW_PAYLOAD_UNIT == 0;
}

static inline uint32_t sw_payload_within(uint32_t bytes)
{
	if (bytes < SW_PAYLOAD_MIN)
		return 0;
	if (bytes > SW_PAYLOAD_MAX)
		return SW_PAYLOAD_MAX;
	return bytes / SW_PAYLOAD_UNIT * SW_PAYLOAD_UNIT;
}

#endif
