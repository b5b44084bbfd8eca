/* proc_forge.h - a peer on a memif link that sends malformed frames.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_PROC_PROC_FORGE_H
#define SW_TEST_PROC_PROC_FORGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/loop/port.h"
#include "test/support/peer.h"

struct forge {
	struct test_peer peer;
	struct sw_port *port;
	uint64_t rng;
	struct test_frame frame; /* first good, then spoiled */
};

/* One kind of malformed frame. */
struct forge_kind {
	const char *name;
	const char *counter; /* victim's counter that must grow; "": any */
	bool needs_session;
	void (*make)(struct forge *f); /* sets f->frame */
};

extern const struct forge_kind forge_kinds[];
extern const uint32_t forge_n_kinds;

/* forge_random - return a number below @n. */
uint32_t forge_random(struct forge *f, uint32_t n);

/* forge_control - set f->frame to a good control frame with @n bytes of
 * @payload. */
void forge_control(struct forge *f, enum sw_frame_type type,
	const void *payload, size_t n);

/* forge_push - set f->frame to a good push of chunk 0 of our tensor. */
void forge_push(struct forge *f);

/* forge_fields - set f->frame to a good header over arbitrary fields; this
 * spoils our own session. */
void forge_fields(struct forge *f);

#endif
