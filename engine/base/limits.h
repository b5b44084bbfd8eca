/* limits.h - limits of everything that the wire can name.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_BASE_LIMITS_H
#define SW_ENGINE_BASE_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

enum {
	SW_PAYLOAD_MAX = 8192, /* largest payload of any class */
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

/* sw_port_is_class - return whether @payload_bytes is a payload class, which
 * fits an MTU of 1500, one page, or two pages. */
static inline bool sw_port_is_class(uint32_t payload_bytes)
{
	return payload_bytes == 1344 || payload_bytes == 3328 ||
	       payload_bytes == SW_PAYLOAD_MAX;
}

#endif
