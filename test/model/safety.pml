/* safety.pml - one chunk, every loss, duplicate and delay: I1, I2, I3
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The channel is the set of messages ever sent, and receiving removes nothing.
 * So a message may never arrive (loss), arrive again at any time (duplicate,
 * replay), and arrive after any other (delay, reordering). ACK needs no message
 * here: a worker may stop retransmitting at any time (a false ACK) and start
 * again (NEED), and neither changes the set.
 *
 * Chunks interact only in credit and in the queue (credit.pml), so one chunk is
 * enough.
 */
#ifndef N
#define N 2
#endif
#ifndef V
#define V 4
#endif
#define C 1

/* With RUNAHEAD the last worker breaks the client's rule: it pushes a version
 * before it holds the previous one.  This must not affect other workers. */
#ifdef RUNAHEAD
#define HOLDS(w, c, v) (held[w] >= (v) || (w) == N - 1)
#else
#define HOLDS(w, c, v) (held[w] >= (v))
#endif

mtype = {IDLE, GRAD, HELD};
mtype state[N];	   /* state of the chunk at each worker */
byte held[N];	   /* the newest result that it holds */
bit is_result[N];  /* the buffer has a byte of the result */
byte ring[N];	   /* version awaiting an ACK, 0 = none */
byte pushed[N];	   /* messages: bit per version of PUSH(w, v) */
byte queried[N];	   /* messages: bit per version of QUERY(w, v) */
byte results[N];   /* messages: bit per version of RESULT(v) to w */

#include "server.pml"

/* The application submits the next gradient in place, in the buffer of the last
 * result. */
#define CAN_SUBMIT(w) (state[w] == IDLE && held[w] < LAST)
inline submit(w)
{
	state[w] = GRAD;
	is_result[w] = 0;
	ring[w] = held[w] + 1
}

/* First push, timeout and NEED build the same frame from the buffer. A frame
 * that is already in the set changes nothing, unless its bytes differ. */
#ifdef MUT_REBUILD
#define CAN_PUSH(w) (ring[w] != 0)
#else
#define CAN_PUSH(w) (ring[w] != 0 && state[w] == GRAD)
#endif
#define CHANGES_SET(w) (!HAS(pushed[w], ring[w]) || is_result[w])
inline push(w)
{
	/* An empty push of a broadcast takes nothing from the buffer. */
	check(push_is_a_gradient, !is_result[w] || !GIVES(w, ring[w]));
	pushed[w] = pushed[w] | (1 << ring[w])
}

/* A QUERY is sent while the worker waits for the result. */
#define CAN_QUERY(w)                                                            \
	(state[w] == GRAD && HAS(pushed[w], held[w] + 1) &&                    \
		!HAS(queried[w], held[w] + 1))

/* The results that a worker takes, and the order of its flip and its write. */
#ifdef MUT_ACCEPT_ANY
#define WANTS(w, v) (HAS(pushed[w], held[w] + 1))
#else
#define WANTS(w, v) (held[w] + 1 == (v) && HAS(pushed[w], v))
#endif
#define CAN_TAKE(w, v) (state[w] == GRAD && !is_result[w] && HAS(results[w], v) && WANTS(w, v))
inline take(w, v)
{
	check(I2_result_is_the_full_sum, held[w] + 1 == (v));
#ifdef MUT_FLIP_LATE
	is_result[w] = 1
#else
	state[w] = HELD
#endif
}
#ifdef MUT_FLIP_LATE
#define CAN_WRITE(w) (is_result[w] && state[w] == GRAD)
#else
#define CAN_WRITE(w) (state[w] == HELD)
#endif
inline write(w)
{
	is_result[w] = 1;
	held[w]++;
	state[w] = IDLE;
#ifndef MUT_REBUILD
	ring[w] = 0 /* RESULT is the ACK of PUSH */
#endif
}

/* Receive any message ever sent, if it changes the state. */
#define AT_SERVER(w, v)                                                        \
	:: d_step { (v) <= LAST && HAS(pushed[w], v) -> on_push(w, 0, v) }     \
	:: d_step { (v) <= LAST && HAS(queried[w], v) -> on_query(w, 0, v) }     \
	:: d_step { (v) <= LAST && CAN_TAKE(w, v) -> take(w, v) }

proctype worker(byte w)
{
	do
	:: d_step { CAN_SUBMIT(w) -> submit(w) }
	:: d_step { CAN_PUSH(w) && CHANGES_SET(w) -> push(w) }
	:: d_step { CAN_QUERY(w) -> queried[w] = queried[w] | (1 << (held[w] + 1)) }
	:: d_step { CAN_WRITE(w) -> write(w) }
	AT_SERVER(w, 2)
	AT_SERVER(w, 3)
	AT_SERVER(w, 4)
	AT_SERVER(w, 5)
	:: d_step { TX_READY(0, w) -> results[w] = results[w] | (1 << cell[0].ver); on_tx(w, 0) }
	:: d_step { TX_READY(1, w) -> results[w] = results[w] | (1 << cell[1].ver); on_tx(w, 1) }
#ifdef RUNAHEAD
	:: d_step { w == N - 1 && !HAS(pushed[w], held[w] + 2) && held[w] + 2 <= LAST ->
		pushed[w] = pushed[w] | (1 << (held[w] + 2)) }
#endif
	od
}

init {
	d_step {
		cells_init();
		i = 0;
		do
		:: i < N -> held[i] = FIRST - 1; state[i] = IDLE; i++
		:: else -> break
		od
	};
	atomic {
		run worker(0);
		run worker(1);
#if N == 3
		run worker(2);
#endif
	}
}
