/* fault.h - the reason why rounds, a group or a job ended, and its text.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Servers and workers send facts (PROTOCOL.md 2.5).  sw_fault_text turns the
 * facts into a sentence where a person reads it. */
#ifndef SW_ENGINE_WIRE_FAULT_H
#define SW_ENGINE_WIRE_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/base/limits.h"

enum sw_fault_kind {
	SW_FAULT_SAID, /* text is the whole reason */
	/* The calls of ranks one and other differ: */
	SW_FAULT_DECLARED, /* n_elems, dtype, number: priority, op: sw_manner */
	SW_FAULT_OPENED,   /* a stream's ranks, window or priority */
	SW_FAULT_ROUND,    /* op: sw_round_kind, root */
	SW_FAULT_STEPS,    /* step: the caller's tag of the round */
	/* number: in the group; op; dtype; if known n_elems, and root: a rank
	 * of the root's node */
	SW_FAULT_CALLED,
	SW_FAULT_KINDS, /* text: the kind of one; number; op: of other */
	/* Rank one waits for rank other, which has closed the group. */
	SW_FAULT_CLOSED,
	SW_FAULT_UNDONE, /* rank one closed the group with work open */
	/* Ranks one to other of the node are gone; op: sw_gone, number: the
	 * round that lacks the ranks, 0: any. */
	SW_FAULT_GONE,
	SW_FAULT_SILENT, /* likewise, silent; op: sw_silence, number: seconds */
	/* The process of rank one ended; number: the process, step: 1 + the
	 * local rank, 0: only one local rank; text: how it ended. */
	SW_FAULT_DIED,
	SW_FAULT_WAITED, /* number: seconds; text: the missing ranks */
	SW_N_FAULT_KINDS,
};

enum sw_manner { SW_DECLARED_SYNC, SW_DECLARED_ASYNC, SW_DECLARED_DEVICE };
enum sw_gone { SW_IS_GONE, SW_HAS_LEFT, SW_HAS_DIED };
enum sw_silence { SW_IS_HEARD, SW_SAYS_NOTHING, SW_ACKS_NOTHING };

enum { SW_FAULT_NODE = 40 };

/* One rank's call or declaration. */
struct sw_fault_call {
	uint64_t n_elems;
	uint32_t number;
	uint16_t rank, root, step;
	uint8_t op, dtype, pad[4];
};

struct sw_fault { /* ERROR, LEAVE, END; CLOSE: err 0, or why the group ended */
	uint64_t nonce; /* nonce of a refused JOIN, else 0 */
	int16_t err;
	uint8_t kind, pad;
	uint32_t key; /* or SW_KEY_NONE */
	struct sw_fault_call one, other;
	char text[SW_TEXT_MAX];
	char node[SW_FAULT_NODE]; /* cut to fit, terminated */
};

/* sw_fault_read - copy a fault from a payload and clean its text.  Returns
 * false if its kind is unknown. */
bool sw_fault_read(struct sw_fault *out, const uint8_t *payload);

/* sw_fault_death - return the error that an END with @err causes: @err, if it
 * may end a group, else SW_EMISMATCH, because the members' calls differ. */
int sw_fault_death(int err);

/* sw_fault_rounds - return how two calls of a round differ: SW_FAULT_ROUND or
 * SW_FAULT_STEPS. */
enum sw_fault_kind sw_fault_rounds(
	const struct sw_fault_call *a, const struct sw_fault_call *b);

/* sw_silence_text - return the text for a peer's silence. */
const char *sw_silence_text(enum sw_silence how);

/* sw_fault_conflict - return the kind of contradiction between calls one and
 * other. */
enum sw_conflict sw_fault_conflict(const struct sw_fault *f);

/* sw_fault_text - write the sentence about tensor @name, or about the group of
 * stream @name; NULL: about the job.  Returns @out. */
const char *sw_fault_text(const struct sw_fault *f, bool is_stream,
	const char *name, char out[SW_TEXT_MAX]);

/* sw_fault_said - return a fault with @err and the reason @text, cut to fit. */
struct sw_fault sw_fault_said(int err, const char *text);

/* sw_fault_at - note that a fault happened at node @name. */
void sw_fault_at(struct sw_fault *f, const char *name);

#endif
