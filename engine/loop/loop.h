/* loop.h - one turn of an lcore: receive, fire timers, send.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_LOOP_LOOP_H
#define SW_ENGINE_LOOP_LOOP_H

#include "engine/loop/engine.h"
#include "engine/loop/pace.h"

enum { SW_LOOP_ENGINES = 64 };

/* A gap in polling of @stop_gap or more (a stopped process, a paused machine)
 * counts as a fifth of that for the engine's clock: nobody is declared dead for
 * the time in which we did not listen, and no limit is out of reach where every
 * turn comes that late. */
struct sw_loop {
	struct sw_engine *engines[SW_LOOP_ENGINES]; /* by endpoint, or NULL */
	uint32_t n_engines;           /* no endpoint has one from here on */
	uint32_t first[SW_MAX_PORTS]; /* the endpoint that sends first */
	struct sw_port *const *ports;
	uint32_t n_ports;
	struct sw_stats stats; /* of the ports and the turns */
	uint64_t stop_gap_ns;
	uint64_t last_ns;    /* of the caller's clock, at the last turn */
	uint64_t rest_ns;    /* that the caller chose to wait since */
	uint64_t skipped_ns; /* by which the engine's clock lags */
	uint64_t tick_at_ns; /* engine's clock */
	uint32_t n_drain;    /* turns for what waits before a timer fires */
	uint64_t gap_ns[2];  /* longest gap of this second and of the last */
	uint64_t gap_from_ns;
	uint64_t tx_at_ns; /* pacing lets the next data frame go */
	struct sw_pace pace[SW_MAX_PORTS];
};

/* sw_loop_init - a loop without engines over @ports, which are borrowed. */
void sw_loop_init(struct sw_loop *l, struct sw_port *const *ports,
	uint32_t n_ports, uint64_t stop_gap_ns, uint64_t now_ns);

/* sw_loop_stats - of the ports and the turns. */
static inline const struct sw_stats *sw_loop_stats(const struct sw_loop *l)
{
	return &l->stats;
}

/* sw_loop_set - @engine has endpoint @endpoint of every port from now on; NULL:
 * nobody has, and its frames are dropped. */
void sw_loop_set(
	struct sw_loop *l, uint32_t endpoint, struct sw_engine *engine);

/* sw_loop_set_rate - pace a port to @rate_bit_s of payload from its next frame
 * on; 0: to what its link carries. */
void sw_loop_set_rate(struct sw_loop *l, uint32_t port_i, uint64_t rate_bit_s);

/* sw_loop_turn - one turn at @now_ns.  Returns the number of frames that came
 * or went: 0 = idle. */
uint32_t sw_loop_turn(struct sw_loop *l, uint64_t now_ns);

/* sw_loop_wait - how long the next turn may wait if nothing comes, at most
 * @max_ns. */
uint64_t sw_loop_wait(
	const struct sw_loop *l, uint64_t now_ns, uint64_t max_ns);

/* sw_loop_rest - the caller sleeps for @ns before the next turn, because it
 * chose to: peers are told of gaps in polling, so that they are patient, but
 * not of this one. */
static inline void sw_loop_rest(struct sw_loop *l, uint64_t ns)
{
	l->rest_ns = ns;
}

/* sw_loop_look - a timer may have been set since the last turn: the next one
 * looks. */
static inline void sw_loop_look(struct sw_loop *l)
{
	l->tick_at_ns = 0;
}

/* sw_loop_is_busy - is anything outstanding at any engine? */
bool sw_loop_is_busy(const struct sw_loop *l);

/* sw_loop_now - the engine's clock at the caller's @now_ns. */
static inline uint64_t sw_loop_now(const struct sw_loop *l, uint64_t now_ns)
{
	return now_ns - l->skipped_ns;
}

/* sw_loop_then - the engine's clock at the last turn: never ahead of the next
 * one, whatever the gap. */
static inline uint64_t sw_loop_then(const struct sw_loop *l)
{
	return l->last_ns - l->skipped_ns;
}

#endif
