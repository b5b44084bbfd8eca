/* control.h - the ordered control stream of a session, one in each direction.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * It delivers the control messages that sw_type_is_ordered names exactly once
 * and in the order in which they were built.  Other control frames bypass it.
 *
 * Sender.  A message gets the next number when it is built, leaves at once, and
 * is kept until it is acknowledged.  The window holds eight.  While it is full
 * the owner builds nothing: its messages wait as state (a bit that is owed, the
 * newest status, a set of tensors), never as a queue.  One timer covers the
 * window: when it fires, all messages in it leave again, and the next pause is
 * twice as long, from retry_min up to retry_max.  An acknowledgement of
 * something new resets it.  A peer that acknowledges nothing for dead_after is
 * dead, even if it sends other frames.
 *
 * Receiver.  It takes the message with the next number.  It drops an older one,
 * and acknowledges it again; it drops one behind a gap, which the sender
 * retransmits with the missing ones.  It acknowledges a message as soon as it
 * has applied it or put it aside, so a message that must wait never blocks the
 * messages behind it.
 *
 * Numbers.  The first message is 1.  A frame carries the low 16 bits of its
 * number in `ctl.number`. Every control frame of a session carries in
 * `ctl.taken` the low bits of the last message that its sender took: the
 * acknowledgement is cumulative.  A frame whose packet number is more than
 * SW_PSN_SKIP behind the newest one is dropped (sw_peer_is_past), so 16 bits
 * are never ambiguous.
 *
 * Cost.  A frame costs O(1), a timer or an acknowledgement O(window).  Nothing
 * here allocates, reads a clock or sends.  PROTOCOL.md, section 4, has the
 * rules, test/model/control.pml checks them. */
#ifndef SW_ENGINE_PEER_CONTROL_H
#define SW_ENGINE_PEER_CONTROL_H

#include "engine/base/params.h"
#include "engine/wire/wire.h"

enum { SW_CONTROL_WINDOW = 8 };

struct sw_message {
	struct sw_header head;
	uint8_t payload[SW_ORDERED_MAX];
};

/* A count of messages is the number of the last one. */
struct sw_control {
	uint32_t n_built;
	uint32_t n_acked; /* by the peer: the window begins behind it */
	uint32_t n_sent;  /* the last to leave since the timer fired */
	uint32_t n_taken; /* the peer's */
	uint64_t again_at_ns, again_wait_ns;
	/* When the peer acknowledged something last, or when the first message
	 * entered an empty window. */
	uint64_t progress_ns;
	struct sw_message window[SW_CONTROL_WINDOW];
};

/* sw_control_reset - begin a new session, with nothing built or taken. */
static inline void sw_control_reset(struct sw_control *c)
{
	c->n_built = c->n_acked = c->n_sent = c->n_taken = 0;
}

/* sw_control_is_idle - has the peer acknowledged all messages?
 * sw_control_has_acked - has it acknowledged message @number, which was built?
 */
static inline bool sw_control_is_idle(const struct sw_control *c)
{
	return c->n_acked == c->n_built;
}

static inline bool sw_control_has_acked(
	const struct sw_control *c, uint32_t number)
{
	return (int32_t)(number - c->n_acked) <= 0;
}

/* sw_control_n_acked - how many messages has the peer acknowledged so far?
 * sw_control_next - the number that the next message will get. */
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

/* sw_control_put - keep a message that leaves now, and write its number into
 * @h.  The window is not full, and nothing waits to be sent again.
 * @payload  h->payload_len bytes, at most SW_ORDERED_MAX; copied */
void sw_control_put(struct sw_control *c, struct sw_header *h,
	const void *payload, const struct sw_params *params, uint64_t now_ns);

/* sw_control_has_again - are there messages to retransmit?
 * sw_control_again - return the next one. */
static inline bool sw_control_has_again(const struct sw_control *c)
{
	return c->n_sent != c->n_built;
}

static inline const struct sw_message *sw_control_again(struct sw_control *c)
{
	return &c->window[++c->n_sent % SW_CONTROL_WINDOW];
}

/* sw_control_take - take the message in @h, of an ordered type and not past, if
 * it is the next one.  Else returns false: it is a duplicate or behind a gap;
 * drop it.  Either way an acknowledgement is due.  Counts a number beyond the
 * window. */
bool sw_control_take(
	struct sw_control *c, const struct sw_header *h, struct sw_stats *st);

/* sw_control_on_ack - take the acknowledgement in @h, a control frame.
 * Returns whether it acknowledges something new.  An acknowledgement of a
 * message that was never built is counted and ignored. */
bool sw_control_on_ack(struct sw_control *c, const struct sw_header *h,
	const struct sw_params *params, uint64_t now_ns, struct sw_stats *st);

/* sw_control_tick - if the timer is due, let all messages in the window leave
 * again.  Returns when to call again; UINT64_MAX: the window is empty. */
uint64_t sw_control_tick(
	struct sw_control *c, const struct sw_params *params, uint64_t now_ns);

/* sw_control_is_stuck - has the peer acknowledged nothing for dead_after, with
 * messages in the window? */
static inline bool sw_control_is_stuck(const struct sw_control *c,
	const struct sw_params *params, uint64_t now_ns)
{
	return !sw_control_is_idle(c) &&
	       now_ns - c->progress_ns >= params->dead_after;
}

#endif
