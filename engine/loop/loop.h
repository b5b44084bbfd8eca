/* loop.h - one turn of an lcore: receive, fire timers, send.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_LOOP_LOOP_H
#define SW_ENGINE_LOOP_LOOP_H

#include "engine/loop/engine.h"
#include "engine/loop/pace.h"

enum { SW_LOOP_ENGINES = 64 };

/* If a gap in polling is @stop_gap or longer (a stopped process, a paused
 * machine), the engine's clock advances by only a fifth of @stop_gap.  So the
 * engine declares no peer dead for time in which it did not listen, but
 * timeouts still expire if every turn is that late. */
struct sw_loop {
	struct sw_engine *engines[SW_LOOP_ENGINES]; /* by endpoint, or NULL */
	uint32_t n_engines;           /* 1 + highest endpoint with an engine */
	uint32_t first[SW_MAX_PORTS]; /* the endpoint that sends first */
	struct sw_port *const *ports;
	uint32_t n_ports;
	struct sw_stats stats; /* counters of ports and turns */
	uint64_t stop_gap_ns;
	uint64_t last_ns;    /* caller's clock at the last turn */
	uint64_t rest_ns;    /* sleep that the caller has announced since */
	uint64_t skipped_ns; /* lag of the engine's clock */
	uint64_t tick_at_ns; /* engine's clock */
	bool is_tick_early;  /* tick_at_ns is a lower bound: frames passed */
	uint32_t n_drain;    /* turns that only receive before a timer fires */
	uint64_t gap_ns[2];  /* longest gap of this and of the last second */
	uint64_t gap_from_ns;
	uint64_t tx_at_ns; /* time at which pacing allows the next data frame */
	struct sw_pace pace[SW_MAX_PORTS];
};

/* sw_loop_init - init a loop without engines over @ports, which are borrowed.
 */
void sw_loop_init(struct sw_loop *l, struct sw_port *const *ports,
	uint32_t n_ports, uint64_t stop_gap_ns, uint64_t now_ns);

/* sw_loop_stats - return the counters of ports and turns. */
static inline const struct sw_stats *sw_loop_stats(const struct sw_loop *l)
{
	return &l->stats;
}

/* sw_loop_set - give endpoint @endpoint of every port to @engine; NULL: drop
 * the endpoint's frames. */
void sw_loop_set(
	struct sw_loop *l, uint32_t endpoint, struct sw_engine *engine);

/* sw_loop_engine - return the engine of @endpoint, or NULL. */
static inline struct sw_engine *sw_loop_engine(
	const struct sw_loop *l, uint32_t endpoint)
{
	return endpoint < l->n_engines ? l->engines[endpoint] : NULL;
}

/* sw_loop_set_rate - pace a port to @rate_bit_s of payload from its next frame
 * on; 0: pace to its link's rate. */
void sw_loop_set_rate(struct sw_loop *l, uint32_t port_i, uint64_t rate_bit_s);

/* sw_loop_turn - run one turn at @now_ns.  Returns the number of frames
 * received and sent; 0: idle. */
uint32_t sw_loop_turn(struct sw_loop *l, uint64_t now_ns);

/* sw_loop_wait - return how long the next turn may wait if no frame arrives, at
 * most @max_ns. */
uint64_t sw_loop_wait(
	const struct sw_loop *l, uint64_t now_ns, uint64_t max_ns);

/* sw_loop_foresee - find the time of the next timer, before a sleep.  Returns
 * false if sw_loop_wait knew it; otherwise run another turn, because the
 * engines may have frames to send now. */
bool sw_loop_foresee(struct sw_loop *l, uint64_t now_ns);

/* sw_loop_rest - note that the caller will sleep for @ns before the next turn.
 * The engines report gaps in polling to their peers, so that peers wait longer,
 * but they do not report this sleep. */
static inline void sw_loop_rest(struct sw_loop *l, uint64_t ns)
{
	l->rest_ns = ns;
}

/* sw_loop_look - check the timers in the next turn, because one may have been
 * set. */
static inline void sw_loop_look(struct sw_loop *l)
{
	l->tick_at_ns = 0;
}

/* sw_loop_is_busy - return whether any engine has outstanding work. */
bool sw_loop_is_busy(const struct sw_loop *l);

/* sw_loop_now - return the engine's clock at the caller's @now_ns. */
static inline uint64_t sw_loop_now(const struct sw_loop *l, uint64_t now_ns)
{
	return now_ns - l->skipped_ns;
}

/* sw_loop_then - return the engine's clock at the last turn.  It is never ahead
 * of the next turn's clock, for any gap. */
static inline uint64_t sw_loop_then(const struct sw_loop *l)
{
	return l->last_ns - l->skipped_ns;
}

#endif
