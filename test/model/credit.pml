/* credit.pml - two tensors, any order of submission, credit and loss: I6
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A message is in transit until it is received. The network may make ODD
 * disturbances: lose a message, deliver one twice, forge an ACK, or let a timer
 * fire early. Other timers fire only when no message is in transit that could
 * make them needless. So every step is a disturbance or moves the job forward,
 * and every execution ends. I6 says that no execution ends before all results
 * are held.
 *
 * Messages about a version that the worker holds are forgotten (safety.pml
 * replays them for ever), so there is at most one of each kind per worker and
 * chunk. Credit is counted in frames. A message's value is its content: the
 * sender's count of consumed credit (PUSH, QUERY) or a grant (ACK, RESULT,
 * NEED); 0: not in transit.
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
#define AHEAD 1 /* versions of a tensor submitted ahead of the one held */
#endif
#define C 2

#define ID(w, c)       ((w) * C + (c))
#define HOLDS(w, c, v) (held[ID(w, c)] >= (v))
mtype = {IDLE, QUEUED, SENT, ACKED};
mtype state[N * C];    /* of version held + 1 */
byte held[N * C];      /* newest result held */
byte sub[N * C];       /* newest version submitted */
chan queue[N] = [C * AHEAD] of {byte}; /* chunks, in sending order */
byte consumed[N];      /* data frames sent, retransmissions included */
byte grant[N];	       /* the grant that the worker knows */
byte seen[N];	       /* highest consumed count that the server has seen */
byte odd = ODD;	       /* disturbances left */
byte left = N * C * V; /* results not yet held */

/* Messages about version held + 1. */
byte pushes[N * C], queries[N * C], acks[N * C], needs[N * C], results[N * C];

#include "server.pml"

#ifdef ASKS
byte asks[N], told[N]; /* KEEPALIVE and its answer in transit, as above */
bool asked[N];         /* a KEEPALIVE was sent, and no data afterwards */
#endif

bool I6_credit_is_bounded = true;
bool I6_never_gone = true;

/* The grant counts folded frames as free, even if their sum is incomplete. */
#define MAX(a, b) ((a) * ((a) >= (b)) + (b) * ((b) > (a))) /* spin nests no ?: */
#ifdef MUT_CREDIT_DONE
#define OPEN(k, w)   (!cell[k].done && HAS(cell[k].got, w))
#define HELD_BACK(w) (OPEN(0, w) + OPEN(1, w) + OPEN(2, w) + OPEN(3, w))
#else
#define HELD_BACK(w) 0
#endif
#ifdef MUT_GRANT_RECEIVED
byte received[N];
#define GRANT(w, news) (received[w] + WINDOW)
#else
#define GRANT(w, news) (MAX(seen[w], news) + WINDOW - HELD_BACK(w))
#endif

#define ME    ID(w, c)
#define NEXT  (held[ME] + 1)
#define WAITS(id) (state[id] == SENT || state[id] == ACKED)
#define IN_TRANSIT                                                             \
	(pushes[ME] || queries[ME] || acks[ME] || needs[ME] || results[ME])

/* A version enters the queue when the worker holds the previous version. */
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
	pushes[ME] = consumed[w];
#ifdef ASKS
	asked[w] = false;
#endif
	state[ME] = SENT
}

/* TX: every mark becomes a RESULT for a worker that waits for it. */
inline send_results(v)
{
	j = 0;
	do
	:: j < N ->
		if
		:: TX_READY(CELL(c, v), j) ->
			on_tx(j, CELL(c, v));
			if
			:: held[ID(j, c)] + 1 == v && WAITS(ID(j, c)) ->
				results[ID(j, c)] = GRANT(j, 0)
			:: else
			fi
		:: else
		fi;
		j++
	:: else -> break
	od
}

inline at_server_push()
{
	seen[w] = MAX(seen[w], pushes[ME]);
#ifdef MUT_GRANT_RECEIVED
	received[w]++;
#endif
	on_push(w, c, NEXT);
	if
	:: answer == ACK -> acks[ME] = GRANT(w, 0)
	:: else -> send_results(NEXT) /* RESULT is the ACK of PUSH */
	fi
}

inline at_server_query()
{
	seen[w] = MAX(seen[w], queries[ME]);
	on_query(w, c, NEXT);
	check(I6_never_gone, answer != GONE);
	if
	:: answer == NEED -> needs[ME] = GRANT(w, 0)
	:: answer == WAIT -> grant[w] = MAX(grant[w], GRANT(w, 0))
	:: else -> send_results(NEXT)
	fi
}

inline at_worker_ack()
{
	grant[w] = MAX(grant[w], acks[ME]);
	state[ME] = ACKED
}

inline at_worker_need()
{
	grant[w] = MAX(grant[w], needs[ME]);
	send()
}

inline at_worker_result()
{
	grant[w] = MAX(grant[w], results[ME]);
	pushes[ME] = 0;
	queries[ME] = 0;
	acks[ME] = 0;
	needs[ME] = 0;
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
}

/* A message arrives or is lost; or it arrives and will arrive again. */
#define MESSAGE(set, receive)                                                  \
	:: d_step { set[ME] -> receive(); set[ME] = 0 }                        \
	:: d_step { odd && set[ME] -> odd--; set[ME] = 0 }
#define AGAIN(set, receive)                                                    \
	:: d_step { odd && set[ME] -> odd--; receive() }

/* A QUERY whose answer would be WAIT without new credit changes nothing, so the
 * model has no such step. */
#define QUERY_HELPS                                                             \
	((cell[CELL(c, NEXT)].ver == NEXT && READY(CELL(c, NEXT))) ||          \
		IS_NEEDED(w, c, NEXT) || GRANT(w, consumed[w]) > grant[w])
#define AT_HEAD (state[ME] == QUEUED && queue[w]?[eval(c)])
/* A worker has a frame to send, no credit, and no frame in flight. */
#define STUCK                                                                  \
	(AT_HEAD && consumed[w] >= grant[w] && state[ID(w, 0)] != SENT &&      \
		state[ID(w, 1)] != SENT)

proctype chunk(byte w; byte c)
{
	do
	:: d_step { sub[ME] < LAST && sub[ME] - held[ME] < AHEAD -> submit() }
	:: d_step { AT_HEAD && consumed[w] < grant[w] -> queue[w]?eval(c); send() }
	/* timeout: a retransmission may exceed the grant */
	:: d_step { state[ME] == SENT && !IN_TRANSIT -> send() }
	:: d_step { odd && state[ME] == SENT -> odd--; send() }
	/* a forged ACK */
	:: d_step { odd && state[ME] == SENT -> odd--; state[ME] = ACKED }
	:: d_step { WAITS(ME) && !IN_TRANSIT && QUERY_HELPS ->
		queries[ME] = consumed[w] }
	:: d_step { odd && WAITS(ME) && !queries[ME] -> odd--;
		queries[ME] = consumed[w] }
#ifdef ASKS
	/* The worker reports its consumed count once by KEEPALIVE, and the
	 * answer has a grant.  If neither is in transit, the worker sends a
	 * frame without credit. */
	:: d_step { STUCK && !asked[w] -> asked[w] = true;
		asks[w] = consumed[w] }
	:: d_step { asks[w] -> seen[w] = MAX(seen[w], asks[w]);
		told[w] = GRANT(w, 0); asks[w] = 0 }
	:: d_step { odd && asks[w] -> odd--; asks[w] = 0 }
	:: d_step { told[w] -> grant[w] = MAX(grant[w], told[w]); told[w] = 0 }
	:: d_step { odd && told[w] -> odd--; told[w] = 0 }
#ifndef MUT_ASK_ONCE
	:: d_step { STUCK && asked[w] && !asks[w] && !told[w] ->
		queue[w]?eval(c); send() }
#endif
#elif !defined(MUT_NO_QUESTION)
	/* A worker without credit reports its consumed count in a header, and
	 * the answer has a grant.  If either is lost or late, it asks again. */
	:: d_step { AT_HEAD && consumed[w] >= grant[w] &&
		GRANT(w, consumed[w]) > grant[w] ->
		seen[w] = MAX(seen[w], consumed[w]);
		grant[w] = GRANT(w, 0) }
#endif
	MESSAGE(pushes, at_server_push)
	MESSAGE(queries, at_server_query)
	MESSAGE(acks, at_worker_ack)
	MESSAGE(needs, at_worker_need)
	MESSAGE(results, at_worker_result)
	AGAIN(pushes, at_server_push)
	AGAIN(queries, at_server_query)
	AGAIN(acks, at_worker_ack)
	AGAIN(needs, at_worker_need)
	:: left == 0 -> break
	od
}

init {
	d_step {
		cells_init();
		i = 0;
		do
		:: i < N * C ->
			held[i] = FIRST - 1;
			sub[i] = FIRST - 1;
			state[i] = IDLE;
			i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < N -> grant[i] = WINDOW; i++
		:: else -> break
		od
	};
	atomic {
		run chunk(0, 0);
		run chunk(0, 1);
		run chunk(1, 0);
		run chunk(1, 1);
#if N == 3
		run chunk(2, 0);
		run chunk(2, 1);
#endif
	}
}
