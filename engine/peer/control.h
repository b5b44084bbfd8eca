/* control.h - the ordered control stream of a session, one in each direction.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The stream delivers control messages (sw_type_is_ordered) exactly once, in
 * the order in which they were built.  Other control frames bypass the stream.
 *
 * Sender.  When the owner builds a message, the sender gives it the next
 * number, sends it at once, and keeps it until the peer acknowledges it.  The
 * window holds eight messages.  While the window is full, the owner builds
 * none: its messages wait as state (an owed bit, the newest status, a set of
 * tensors), never as a queue.  One timer covers the window: when it fires, the
 * sender retransmits all messages in the window, and doubles the pause, from
 * retry_min up to retry_max.  A new acknowledgement resets the timer.  A peer
 * that acknowledges nothing for dead_after is dead, even if it sends other
 * frames.
 *
 * Receiver.  The receiver takes the message with the next number.  It drops a
 * duplicate and acknowledges it again.  It drops a message after a gap: the
 * sender retransmits it with the missing messages.  It acknowledges a message
 * as soon as it has applied it or put it aside, so a message that must wait
 * never blocks later messages.
 *
 * Numbers.  The first message is 1.  A frame carries the low 16 bits of its
 * number in `ctl.number`.  Every control frame of a session acknowledges:
 * `ctl.taken` carries the low bits of the last message that its sender took,
 * and all before it.  The receiver drops a frame whose packet number is more
 * than SW_PSN_SKIP behind the newest (sw_peer_is_past), so 16 bits are never
 * ambiguous.
 *
 * Cost.  A frame costs O(1), a timer or an acknowledgement O(window).  No
 * function here allocates, reads a clock or sends.  PROTOCOL.md, section 4, has
 * the rules; test/model/control.pml checks the rules. */
#ifndef SW_ENGINE_PEER_CONTROL_H
#define SW_ENGINE_PEER_CONTROL_H

#include "engine/base/params.h"
#include "engine/wire/wire.h"

enum { SW_CONTROL_WINDOW = 8 };

struct sw_message {
	struct sw_header head;
	uint8_t payload[SW_ORDERED_MAX];
};

/* Each count of messages is the number of the last such message. */
struct sw_control {
	uint32_t n_built;
	uint32_t n_acked; /* by the peer; the window starts after it */
	uint32_t n_sent;  /* the last one sent since the timer fired */
	uint32_t n_taken; /* messages taken from the peer */
	uint64_t again_at_ns, again_wait_ns;
	/* When the last new acknowledgement arrived, or when the first message
	 * entered an empty window. */
	uint64_t progress_ns;
	struct sw_message window[SW_CONTROL_WINDOW];
};

/* sw_control_reset - begin a new session, with nothing built or taken. */
static inline void sw_control_reset(struct sw_control *c)
{
	c->n_built = c->n_acked = c->n_sent = c->n_taken = 0;
}

/* sw_control_is_idle - return whether the peer has acknowledged all messages.
 * sw_control_has_acked - return whether the peer has acknowledged message
 * @number, which must have been built. */
static inline bool sw_control_is_idle(const struct sw_control *c)
{
	return c->n_acked == c->n_built;
}

static inline bool sw_control_has_acked(
	const struct sw_control *c, uint32_t number)
{
	return (int32_t)(number - c->n_acked) <= 0;
}

/* sw_control_n_acked - return how many messages the peer has acknowledged.
 * sw_control_next - return the number of the next message to build. */
static inline uint32_t sw_control_n_acked(const struct sw_control *c)
{
	return c->n_acked;
}

static inline uint32_t sw_control_next(const struct sw_control *c)
{
	return c->n_built + 1;
}

static inline bool sw_control_is_full(const struct sw_control *c)
{
	return c->n_built - c->n_acked == SW_CONTROL_WINDOW;
}

/* sw_control_put - store a message that the caller sends now, and write its
 * number into @h.  The window must not be full, and no message may wait to be
 * retransmitted.
 * @payload  h->payload_len bytes, at most SW_ORDERED_MAX; copied */
void sw_control_put(struct sw_control *c, struct sw_header *h,
	const void *payload, const struct sw_params *params, uint64_t now_ns);

/* sw_control_has_again - return whether messages wait to be retransmitted.
 * sw_control_again - return the next message to retransmit. */
static inline bool sw_control_has_again(const struct sw_control *c)
{
	return c->n_sent != c->n_built;
}

static inline const struct sw_message *sw_control_again(struct sw_control *c)
{
	return &c->window[++c->n_sent % SW_CONTROL_WINDOW];
}

/* sw_control_take - take the message in @h, of an ordered type and not past, if
 * its number is the next one.  Returns false if the caller must drop it: a
 * duplicate, or after a gap.  Either way the caller owes an acknowledgement.
 * Counts a number beyond the window. */
bool sw_control_take(
	struct sw_control *c, const struct sw_header *h, struct sw_stats *st);

/* sw_control_on_ack - take the acknowledgement in @h, a control frame.  Returns
 * whether it acknowledges a further message.  Counts and ignores an
 * acknowledgement of a message that was never built. */
bool sw_control_on_ack(struct sw_control *c, const struct sw_header *h,
	const struct sw_params *params, uint64_t now_ns, struct sw_stats *st);

/* sw_control_tick - if the timer is due, mark all messages in the window for
 * retransmission.  Returns when to call again; UINT64_MAX: the window is empty.
 */
uint64_t sw_control_tick(
	struct sw_control *c, const struct sw_params *params, uint64_t now_ns);

/* sw_control_is_stuck - return whether the window has held messages for
 * dead_after without a new acknowledgement. */
static inline bool sw_control_is_stuck(const struct sw_control *c,
	const struct sw_params *params, uint64_t now_ns)
{
	return !sw_control_is_idle(c) &&
	       now_ns - c->progress_ns >= params->dead_after;
}

#endif
