/* proc_forge.h - a peer on a memif link that sends malformed frames.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROC_FORGE_H
#define PROC_FORGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/loop/port.h"
#include "engine/wire/wire.h"

/* A frame that is being made: first right, then spoiled. */
struct forged {
	struct sw_header h;
	uint8_t head[SW_HEAD_BYTES]; /* h encoded */
	uint8_t payload[SW_PAYLOAD_MAX];
	uint32_t bytes; /* of payload that are sent */
};

struct forge {
	struct sw_port *port;
	struct sw_path to;
	uint64_t random; /* state of forge_random */
	uint64_t nonce, cookie;
	uint32_t id, peer; /* of the session: ours, the server's */
	uint32_t key;      /* of our tensor */
	uint64_t psn[SW_N_SPACES];
	struct forged frame;
};

/* One way to be wrong. */
struct forge_kind {
	const char *name;
	const char *counter; /* of the victim that must grow; "" any */
	bool needs_session;
	void (*make)(struct forge *f, struct forged *x);
};

extern const struct forge_kind forge_kinds[];
extern const uint32_t forge_n_kinds;

uint64_t forge_random(struct forge *f);

/* A header of @type with our session and the next packet number. */
void forge_begin(struct forge *f, struct forged *x, enum sw_frame_type type);

/* Set length, CRCs and encoded header for what h and payload say. */
void forge_seal(struct forged *x, uint32_t bytes);

/* A good push of chunk 0 of our tensor. */
void forge_push(struct forge *f, struct forged *x);

/* A good header over arbitrary fields; spoils our own session. */
void forge_fields(struct forge *f, struct forged *x);

#endif
