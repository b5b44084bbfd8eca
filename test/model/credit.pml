/* credit.pml - two tensors, any order of submission, credit and loss: I6
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A message is in transit until it is received.  The network may disturb ODD
 * times: lose a message, deliver one twice, forge an ACK, or let a timer fire
 * early.  Other timers fire only when nothing is in transit that could make
 * them needless.  So every step is either one of ODD or moves the job forward,
 * every execution ends, and I6 is: none ends before all results are held.
 * (pan -l on a model built with NP confirms that there is no cycle.)
 *
 * Credit is counted in frames.  Messages carry the sender's count of consumed
 * credit (PUSH, PULL) or a grant (ACK, RESULT, NEED), as their value; 0 = not in
 * transit.
 */
#ifndef N
#define N 2
#endif
#ifndef V
#define V 2
#endif
#ifndef ODD
#define ODD 1
#endif
#ifndef WINDOW
#define WINDOW 1
#endif
#ifndef AHEAD
#define AHEAD 2 /* versions of a tensor that may be submitted and not held */
#endif
#define C 2

#define HOLDS(w, c, v) (held[(w) * C + (c)] >= (v))
mtype = {IDLE, QUEUED, SENT, ACKED};
mtype state[N * C]; /* of version held + 1 of the chunk */
byte held[N * C];   /* newest result held */
byte sub[N * C];    /* newest version submitted */
chan queue[N] = [C * AHEAD] of {byte}; /* chunks, in sending order */
byte consumed[N];   /* data frames sent, again or first */
byte grant[N];	    /* as the worker knows it */
byte seen[N];	    /* highest consumed that the server has seen */
byte odd = ODD;	    /* disturbances left */
byte left = N * C * V; /* results not yet held */

/* messages, by worker, chunk and version */
#define AT(w, c, v) (((w) * C + (c)) * V + (v) - FIRST)
byte pushes[N * C * V];
byte acks[N * C * V];
byte results[N * C * V];
byte pulls[N * C * V];
byte needs[N * C * V];

#include "server.pml"

bool I6_credit_is_bounded = true;
bool I6_never_gone = true;

/* The grant: what is folded is not held, complete or not. */
#define MAX(a, b) ((a) * ((a) >= (b)) + (b) * ((b) > (a))) /* spin nests no ?: */
#ifdef MUT_CREDIT_DONE
#define OPEN(k, w) (!cell[k].done && HAS(cell[k].got, w))
#define HELD_BACK(w) (OPEN(0, w) + OPEN(1, w) + OPEN(2, w) + OPEN(3, w))
#else
#define HELD_BACK(w) 0
#endif
#ifdef MUT_GRANT_RECEIVED
byte received[N];
#define GRANT(w, consumed) (received[w] + WINDOW)
#else
#define GRANT(w, consumed) (MAX(seen[w], consumed) + WINDOW - HELD_BACK(w))
#endif

#define ME ((w) * C + (c))
#define NEXT (held[ME] + 1)
#define WAITS (state[ME] == SENT || state[ME] == ACKED)
#define NOW AT(w, c, NEXT)
#define IN_TRANSIT                                                             \
	(pushes[NOW] || acks[NOW] || results[NOW] || pulls[NOW] ||             \
		needs[NOW] || (cell[CELL(c, NEXT)].ver == NEXT &&              \
			HAS(cell[CELL(c, NEXT)].unsent, w)))

/* An item enters the queue when the version before it is held. */
inline submit()
{
	sub[ME]++;
	if
	:: state[ME] == IDLE -> state[ME] = QUEUED; queue[w]!c
	:: else ->
#ifdef MUT_HEAD_BLOCKED
		queue[w]!c
#else
		skip
#endif
	fi
}

inline send()
{
	consumed[w]++;
	check(I6_credit_is_bounded, consumed[w] <= C * V + 2 * ODD);
	pushes[NOW] = consumed[w];
	state[ME] = SENT
}

inline note_grant(g)
{
	grant[w] = MAX(grant[w], g)
}

inline at_server_push(v)
{
	seen[w] = MAX(seen[w], pushes[AT(w, c, v)]);
#ifdef MUT_GRANT_RECEIVED
	received[w]++;
#endif
	on_push(w, c, v);
	if
	:: answer == ACK -> acks[AT(w, c, v)] = GRANT(w, 0)
	:: else /* RESULT is the ACK of PUSH */
	fi
}

inline at_server_pull(v)
{
	seen[w] = MAX(seen[w], pulls[AT(w, c, v)]);
	on_pull(w, c, v);
	check(I6_never_gone, answer != GONE || HOLDS(w, c, v));
	if
	:: answer == NEED -> needs[AT(w, c, v)] = GRANT(w, 0)
	:: answer == WAIT -> note_grant(GRANT(w, 0))
	:: else
	fi
}

inline at_worker_ack(v)
{
	note_grant(acks[AT(w, c, v)]);
	if
	:: NEXT == v && state[ME] == SENT -> state[ME] = ACKED
	:: else
	fi
}

inline at_worker_need(v)
{
	note_grant(needs[AT(w, c, v)]);
	if
	:: NEXT == v && WAITS -> send()
	:: else
	fi
}

inline at_worker_result(v)
{
	note_grant(results[AT(w, c, v)]);
	if
	:: NEXT == v && WAITS ->
		held[ME]++;
		left--;
		if
		:: sub[ME] > held[ME] ->
			state[ME] = QUEUED;
#ifndef MUT_HEAD_BLOCKED
			queue[w]!c
#endif
		:: else -> state[ME] = IDLE
		fi
	:: else
	fi
}

/* TX reaches a mark; the RESULT carries a grant like every frame. */
inline at_server_tx(k)
{
	results[AT(w, c, cell[k].ver)] = GRANT(w, 0);
	on_tx(w, k)
}

/* A message arrives; or arrives and will again; or is lost. */
#define MESSAGE(set, receive, v)                                               \
	:: d_step { left && set[AT(w, c, v)] -> receive(v); set[AT(w, c, v)] = 0 } \
	:: d_step { left && odd && set[AT(w, c, v)] -> receive(v); odd-- }     \
	:: d_step { left && odd && set[AT(w, c, v)] -> set[AT(w, c, v)] = 0; odd-- }
#define MESSAGES(v)                                                            \
	MESSAGE(pushes, at_server_push, v)                                     \
	MESSAGE(pulls, at_server_pull, v)                                      \
	MESSAGE(acks, at_worker_ack, v)                                        \
	MESSAGE(needs, at_worker_need, v)                                      \
	MESSAGE(results, at_worker_result, v)

/* A PULL whose answer would be WAIT, with no more credit than before, changes
 * nothing: such steps are left out. */
#define PULL_HELPS                                                             \
	((cell[CELL(c, NEXT)].ver == NEXT && cell[CELL(c, NEXT)].done) ||      \
		IS_NEEDED(w, c, NEXT) || GRANT(w, consumed[w]) > grant[w])
#define AT_HEAD (state[ME] == QUEUED && queue[w]?[eval(c)])

proctype chunk(byte w; byte c)
{
	do
	:: d_step { left && sub[ME] < LAST && sub[ME] - held[ME] < AHEAD -> submit() }
	:: d_step { left && AT_HEAD && consumed[w] < grant[w] ->
		queue[w]?eval(c); send() }
	/* timeout: the one frame per timeout that may exceed the grant */
	:: d_step { left && state[ME] == SENT && !IN_TRANSIT -> send() }
	:: d_step { left && odd && state[ME] == SENT -> odd--; send() }
	:: d_step { left && odd && state[ME] == SENT -> odd--; state[ME] = ACKED }
	:: d_step { left && WAITS && !IN_TRANSIT && PULL_HELPS ->
		pulls[NOW] = consumed[w] }
	:: d_step { left && odd && WAITS && !pulls[NOW] -> odd--;
		pulls[NOW] = consumed[w] }
#ifndef MUT_NO_ASK
	/* Nothing to pull, no credit, something to send: a header says what was
	 * consumed, and its answer grants (both lost or late: asked again). */
	:: d_step { left && AT_HEAD && consumed[w] >= grant[w] &&
		GRANT(w, consumed[w]) > grant[w] ->
		seen[w] = MAX(seen[w], consumed[w]); note_grant(GRANT(w, 0)) }
#endif
	:: d_step { left && TX_READY(c * 2, w) -> at_server_tx(c * 2) }
	:: d_step { left && TX_READY(c * 2 + 1, w) -> at_server_tx(c * 2 + 1) }
	MESSAGES(2)
#if V > 1
	MESSAGES(3)
#endif
#if V > 2
	MESSAGES(4)
#endif
	:: left == 0 -> break
	od
}

init {
	d_step {
		cells_init();
		i = 0;
		do
		:: i < N * C -> held[i] = FIRST - 1; sub[i] = FIRST - 1; state[i] = IDLE; i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < N -> grant[i] = WINDOW; i++
		:: else -> break
		od
	};
	atomic {
		run chunk(0, 0); run chunk(0, 1);
		run chunk(1, 0); run chunk(1, 1);
#if N == 3
		run chunk(2, 0); run chunk(2, 1);
#endif
	}
}
