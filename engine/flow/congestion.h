/* congestion.h - the sender's window of a flow, which follows loss and delay.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The receiver's grants govern the last hop. This window governs the rest of
 * the path, which only the sender observes: acknowledgements tell it which
 * frames were lost. A sender exceeds neither by more than a frame.
 *
 * Rounds. All arithmetic happens once per round trip: a round ends when the
 * frames in flight at its start are acknowledged or lost. The window starts at
 * SW_CONGESTION_START and doubles per round. If no frame is lost before the
 * window reaches 3/16 of the largest grant, or grants are the tighter limit,
 * the window opens: it costs nothing until a frame is lost. After the first
 * decrease it follows a cubic curve, which is flat at the window that lost
 * frames. While the queue is about as long as the longest recent one, the
 * window grows little beyond the curve.
 *
 * Decrease. A round that lost frames shrinks the window by 1/8 to 1/2, which
 * depends on the lost part and the time spent in queues. Until the round ends,
 * no frames replace the lost ones, except that four frames may be in flight.
 * The next round reports on frames sent before the decrease, so it does not
 * count. Random loss is not congestion: a lost part below SW_CONGESTION_RANDOM
 * causes no decrease unless the queue is about as long as the longest recent
 * one.
 *
 * Marks. Where switches mark frames (ECN), a round with marks shrinks the
 * window by half of the average marked part (RFC 8257), and a round without
 * marks lets it grow along the curve. Frames are lost only where marks come too
 * late.
 *
 * Pace. After the first decrease, frames leave a little faster than the window
 * per smoothed round-trip time, up to 5/4 of that rate if the queue absorbs it.
 * A window below a frame sends single frames, spaced at random around that
 * pace.
 */
#ifndef SW_ENGINE_FLOW_CONGESTION_H
#define SW_ENGINE_FLOW_CONGESTION_H

#include <stdbool.h>
#include <stdint.h>

enum {
	SW_CONGESTION_START = 252,  /* quanta: 16 KiB with headers */
	SW_CONGESTION_UNIT = 256,   /* window units per quantum */
	SW_CONGESTION_RANDOM = 512, /* lost part of 2^16 */
};

struct sw_congestion {
	uint64_t limit;       /* the sender's consumed stays below */
	uint64_t ask_at;      /* consumed at which a frame asks for an ACK */
	uint64_t turn;        /* a second limit (fanout.h); UINT64_MAX: none */
	uint64_t settled;     /* quanta acknowledged or lost */
	uint64_t from, end;   /* settled when the round begins and ends */
	uint64_t paced;       /* quanta that may have left by now */
	uint64_t paced_ns;    /* time of the last release */
	uint64_t release_ns;  /* time of the next release; UINT64_MAX: none */
	uint64_t min_ns;      /* least round-trip time; UINT64_MAX: unknown */
	uint64_t round_ns;    /* least one in this round; UINT64_MAX: unknown */
	uint64_t queue_ns;    /* longest recent time in queues */
	uint64_t rate;        /* quanta in 2^20 ns; 0: no pace */
	uint64_t gap_ns;      /* time between releases */
	uint64_t all_lost;    /* quanta lost since the flow began */
	uint64_t all_queued;  /* part of all_lost, while a queue was long */
	uint32_t window;      /* units */
	uint32_t half;        /* half of the window, in quanta */
	uint32_t before;      /* units, before the last decrease; 0: unknown */
	uint32_t top;         /* units at which frames were lost */
	uint32_t step;        /* units of the last decrease */
	uint32_t n_rounds;    /* since the last decrease */
	uint32_t n_flat;      /* rounds after which the window is at the top */
	uint32_t frame;       /* quanta of a full frame */
	uint32_t full;        /* quanta at which the window is open */
	uint32_t peak;        /* most quanta in flight in this round */
	uint32_t n_lost;      /* quanta lost in this round */
	uint32_t n_marked;    /* quanta marked in this round */
	uint32_t lost_part;   /* average lost part of 2^16 */
	uint32_t marked_part; /* average marked part of 2^16 */
	bool is_open;         /* no window limits the flow */
	bool is_off;          /* and no window ever will */
	bool is_slow;         /* slow start: the window doubles per round */
	bool is_calm;         /* slow start, with nothing lost or marked */
	bool was_slow;        /* is_slow before the last decrease */
	bool is_used;         /* the window was the limit in this round */
	bool is_cut;          /* the last round ended with a decrease */
};

/* sw_congestion_init - begin with a small window.
 * @frame   quanta of a full frame
 * @full    quanta of the largest grant
 * @is_far  frames leave the machine; else the window is open */
void sw_congestion_init(
	struct sw_congestion *c, uint32_t frame, uint32_t full, bool is_far);

/* sw_congestion_disable - let no window limit the flow from now on. */
void sw_congestion_disable(struct sw_congestion *c);

/* sw_congestion_refit - set the quanta of a full frame anew. */
static inline void sw_congestion_refit(struct sw_congestion *c, uint32_t frame)
{
	c->frame = frame;
}

/* sw_congestion_skip - count quanta that were consumed and never sent. */
void sw_congestion_skip(struct sw_congestion *c, uint64_t quanta);

/* sw_congestion_ask - return whether the frame that raised consumed to
 * @consumed asks for an ACK at once: about four frames per window do, unless
 * @granted is the tighter limit. */
bool sw_congestion_ask(
	struct sw_congestion *c, uint64_t consumed, uint64_t granted);

/* sw_congestion_is_open - return whether no window limits the flow. */
static inline bool sw_congestion_is_open(const struct sw_congestion *c)
{
	return c->is_open;
}

/* sw_congestion_count - note that @quanta were acknowledged, if that changes
 * nothing else: the window is open, or less than half of it was in flight and
 * nothing was lost so far. Returns false and notes nothing in all other cases.
 * sw_congestion_settle - note it in these other cases; call it once per ACK.
 * @consumed  quanta sent
 * @granted   quanta that may be sent
 * @srtt_ns   smoothed round-trip time */
static inline bool sw_congestion_count(
	struct sw_congestion *c, uint64_t consumed, uint32_t quanta)
{
	if (c->is_open) {
		c->settled += quanta;
		return true;
	}
	if (!c->is_calm || c->is_used || consumed - c->settled >= c->half)
		return false;
	c->settled += quanta;
	c->limit += quanta;
	return true;
}

void sw_congestion_settle(struct sw_congestion *c, uint64_t consumed,
	uint64_t granted, uint32_t quanta, uint64_t srtt_ns);

/* sw_congestion_has_room - return whether less than the window is in flight. */
static inline bool sw_congestion_has_room(
	const struct sw_congestion *c, uint64_t consumed)
{
	return consumed - c->settled < c->window / SW_CONGESTION_UNIT;
}

/* sw_congestion_lose - note that @quanta were lost. */
void sw_congestion_lose(struct sw_congestion *c, uint64_t consumed,
	uint64_t granted, uint32_t quanta, uint64_t srtt_ns);

/* sw_congestion_mark - note that @quanta of the frames in flight were marked.
 */
void sw_congestion_mark(
	struct sw_congestion *c, uint64_t consumed, uint32_t quanta);

/* sw_congestion_undo - restore the window from before the last decrease,
 * because a frame that was declared lost was only late. */
void sw_congestion_undo(struct sw_congestion *c);

/* sw_congestion_sample - take a round-trip time. */
static inline void sw_congestion_sample(struct sw_congestion *c, uint64_t ns)
{
	if (ns < c->round_ns)
		c->round_ns = ns;
}

/* sw_congestion_delays - find the least and the longest recent round-trip time;
 * 0: unknown. */
void sw_congestion_delays(
	const struct sw_congestion *c, uint64_t *least_ns, uint64_t *most_ns);

/* sw_congestion_start - if the flow is paced, make sure that the next release
 * is due, because a frame was sent with none in flight. Returns its time. */
static inline uint64_t sw_congestion_start(
	struct sw_congestion *c, uint64_t now_ns)
{
	if (c->rate && c->release_ns == UINT64_MAX)
		c->release_ns = now_ns + c->gap_ns;
	return c->release_ns;
}

/* sw_congestion_tick - release the quanta that the pace allows. Returns when to
 * call again; UINT64_MAX: never.
 * @is_busy  frames are in flight */
uint64_t sw_congestion_tick(struct sw_congestion *c, uint64_t consumed,
	bool is_busy, uint64_t now_ns);

/* sw_congestion_turn - also keep consumed below @turn, and let every frame ask
 * for an ACK. UINT64_MAX removes this second limit.
 * sw_congestion_limit - return the limit without a turn. */
void sw_congestion_turn(struct sw_congestion *c, uint64_t turn);
uint64_t sw_congestion_limit(const struct sw_congestion *c);

/* sw_congestion_release_at - return the time of the next release. */
static inline uint64_t sw_congestion_release_at(const struct sw_congestion *c)
{
	return c->release_ns;
}

#endif
