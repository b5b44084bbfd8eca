/* tcp.h - a model of a TCP sender: window, loss, marks, timeouts.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The model has SACK, fast retransmission after three later segments, and the
 * windows of Reno (RFC 5681) or CUBIC (RFC 9438), with one decrease per round
 * trip. It detects a lost retransmission when a segment sent later arrives
 * (RACK, RFC 8985). As in Linux, a retransmission timeout is 200 ms or more. It
 * lacks the handshake, delayed ACKs, pacing and HyStart. A marked segment
 * (RFC 3168) decreases the window as a loss does. If nothing disturbed the
 * rhythm of ACKs, some flows would lock others out of a full queue (Floyd and
 * Jacobson, phase effects). So traffic.c sends up to 16 frames' time late, at
 * random, a number chosen, not measured; plain.c does not.
 */
#ifndef SW_APPS_LAB_SIM_TCP_H
#define SW_APPS_LAB_SIM_TCP_H

#include <stdbool.h>
#include <stdint.h>

enum { SW_SIM_TCP_RING = 8192, SW_SIM_TCP_UNIT = 1000 };

enum sw_sim_tcp_state {
	SW_SIM_FREE,
	SW_SIM_SENT,
	SW_SIM_AGAIN,
	SW_SIM_LOST,
	SW_SIM_SACKED
};

struct sw_sim_tcp {
	bool is_cubic;
	uint8_t state[SW_SIM_TCP_RING]; /* by segment */
	/* highest: highest acknowledged segment */
	uint64_t oldest, next, highest;
	uint64_t recover; /* no second decrease below this segment */
	uint32_t n_open, n_lost, n_repeats; /* repeats: in flight again */
	uint64_t sent_ns[SW_SIM_TCP_RING];  /* of those */
	uint64_t window, threshold;         /* thousandths of a segment */
	uint64_t top, epoch_ns, origin_ms;  /* CUBIC */
	uint64_t reno;                      /* its window, for CUBIC's floor */
	uint64_t srtt_ns, var_ns, timer_ns;
	uint32_t backoff;
	uint64_t n_again, n_timeouts;
	uint8_t came[SW_SIM_TCP_RING]; /* received segments, at the receiver */
	uint64_t received;             /* all segments below have arrived */
};

void sw_sim_tcp_init(struct sw_sim_tcp *t, bool is_cubic);

/* sw_sim_tcp_send - return whether a segment may leave.  Sets *@number to
 * it. */
bool sw_sim_tcp_send(struct sw_sim_tcp *t, uint64_t now_ns, uint64_t *number);

/* sw_sim_tcp_ack - handle the ACK of @number: all segments below @next have
 * arrived.
 * @sent_ns  time at which the segment left */
void sw_sim_tcp_ack(struct sw_sim_tcp *t, uint64_t number, uint64_t next,
	bool has_echo, uint64_t sent_ns, uint64_t now_ns);

/* sw_sim_tcp_tick - if the timer has expired, declare all segments lost. */
void sw_sim_tcp_tick(struct sw_sim_tcp *t, uint64_t now_ns);

/* sw_sim_tcp_receive - receive segment @number.  Returns the next missing
 * one. */
uint64_t sw_sim_tcp_receive(struct sw_sim_tcp *t, uint64_t number);

#endif
