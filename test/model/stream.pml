/* stream.pml - a stream of collectives at one server: window, base, wrap-around
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The rules of engine/sums/stream.h and engine/worker/stream.c. Members go
 * through V chunks in the same order. The senders and receivers of each chunk
 * are chosen nondeterministically. Chunks count from 1 here; in frames, and
 * where frames are judged, their numbers wrap at M. Chunk j uses slot j mod
 * SLOTS.
 *
 * The channel is the set of messages ever sent, as in safety.pml: a lost
 * message never arrives, and a duplicate or late one arrives again at any time.
 * The sets follow from the senders' state. A member has pushed all chunks that
 * it entered. RESULTs were sent to all members that had pushed; those of past
 * chunks to all members, which includes more messages than were sent. Every
 * base was sent. An ACK of PUSH exists once the push was folded, an ACK of
 * RESULT once the member holds the result.
 *
 * A WANT for several chunks is judged chunk by chunk, as if each chunk had its
 * own push; here these pushes follow one another.
 *
 * I6: at any time the network may become calm. Then all messages in transit are
 * lost, and so is every base that no member asks for; retransmissions arrive.
 * The model has no steps that change nothing, so each step moves the stream
 * forward, and every execution ends. If a member waits for ever, the execution
 * ends before all members have all results.
 *
 * The model leaves out:
 * - marks and the fate of RESULTs: safety.pml has marks, and a RESULT is
 *   retransmitted until it is acknowledged;
 * - receivers' ACKs of PUSH: a receiver that stopped pushing asks, and NEED
 *   makes it push;
 * - the base in RESULTs: without it fewer messages arrive;
 * - calls that differ in kind: they make the stream dead.
 */
#ifndef N
#define N 2
#endif
#ifndef V
#define V 6
#endif
#define SLOTS 3
#ifdef MUT_MODULUS
#define M MUT_MODULUS
#else
/* a multiple of SLOTS; no message is late by more than V chunks */
#define M ((2 * V + 2) / SLOTS * SLOTS)
#endif
#ifdef MUT_WINDOW
#define WINDOW (SLOTS + 1)
#else
#define WINDOW SLOTS
#endif
#define ALL ((1 << N) - 1)

#define HAS(set, i)    (((set) >> (i)) & 1)
#define BIT(i)	       (1 << (i))
/* In a frame chunk 3 has number 0. */
#define NUMBER(j)      (((j) + M - 3) % M)
#define SLOT(j)	       (NUMBER(j) % SLOTS)
#define DISTANCE(a, b) ((NUMBER(a) + M - NUMBER(b)) % M)
#define BEFORE(a, b)   (DISTANCE(a, b) >= (M + 1) / 2)
#define AFTER(a, b)    (DISTANCE(a, b) != 0 && !BEFORE(a, b))

/* The chosen senders and receivers, as masks of members; 0: not chosen yet, or
 * forgotten. */
byte from[V + 1];
byte to[V + 1];

/* State of the server. */
typedef slot_t {
	byte chunk; /* 0: none yet */
	byte got;   /* members whose push is folded */
	byte held;  /* members that acknowledged the result */
	byte sum;   /* oracle: members whose bytes are in it */
};
slot_t slot[SLOTS];
byte base = 1;
short folded[N]; /* oracle: bit per chunk */

/* State of the members. */
byte next[N];	/* the next chunk to enter */
byte known[N];	/* the base that it knows */
short ended[N]; /* bit per chunk: the member has finished it */

bit is_calm;

bool folded_once = true;
bool folded_into_its_chunk = true;
bool result_is_the_full_sum = true;
bool result_is_of_its_chunk = true;
bool slot_is_reused_when_done = true;
bool base_passes_what_all_hold = true;
bool other_keys_are_ignored = true;

hidden byte i, o, p, s; /* scratch, not part of the state */

inline check(invariant, condition)
{
	if
	:: condition
	:: else -> invariant = false
	fi;
	assert(invariant)
}

/* Of a chunk that all have finished, only this fact is kept: fewer states. */
#define IS_OVER(j)                                                             \
	(from[j] && base > (j) && HAS(ended[0], j) && HAS(ended[1], j) &&      \
		HAS(ended[N - 1], j))
inline forget()
{
	o = 1;
	do
	:: o <= V && IS_OVER(o) ->
		from[o] = 0;
		to[o] = 0;
		if
		:: slot[SLOT(o)].chunk == o ->
			slot[SLOT(o)].held = 0;
			slot[SLOT(o)].sum = 0
		:: else
		fi;
		o++
	:: o <= V && !IS_OVER(o) -> o++
	:: o > V -> break
	od;
	o = 0 /* no d_step may end with a loop */
}

/* --- the server --- */

#define FROM(s)	 from[slot[s].chunk]
#define TO(s)	 to[slot[s].chunk]
#ifdef MUT_READY_EARLY
#define READY(s) ((slot[s].got & FROM(s)) != 0)
#elif defined(MUT_WANT_COUNTS)
/* as many pushes as there are senders, from any members */
#define N_IN(m)	 (HAS(m, 0) + HAS(m, 1) + HAS(m, 2))
#define READY(s) (N_IN(slot[s].got) >= N_IN(FROM(s)))
#else
#define READY(s) ((slot[s].got & FROM(s)) == FROM(s))
#endif
#ifdef MUT_READY_IS_DONE
#define DONE(s) READY(s)
#else
#define DONE(s) (READY(s) && (slot[s].held & TO(s)) == TO(s))
#endif
#define IS(s, j) (NUMBER(slot[s].chunk) == NUMBER(j))
/* The server sends the result to a receiver that has pushed. */
#define GETS(w, s) (READY(s) && HAS(slot[s].got & TO(s), w))
/* A receiver that has not pushed, and does not wait, would acknowledge it. */
#ifdef MUT_UNASKED
#define IS_UNASKED(w, s) (READY(s) && HAS(TO(s) & ~slot[s].got, w))
#else
#define IS_UNASKED(w, s) false
#endif

#ifdef MUT_REUSE
#define IS_AHEAD(j) false
#else
#define IS_AHEAD(j) (!BEFORE(j, base) && DISTANCE(j, base) >= WINDOW)
#endif
#ifdef MUT_FOLD_AGAIN
#define HAS_GOT(w, s) false
#else
#define HAS_GOT(w, s) HAS(slot[s].got, w)
#endif
#define IS_NEW(w, j)                                                           \
	(!BEFORE(j, base) && !IS_AHEAD(j) &&                                   \
		!(IS(SLOT(j), j) && HAS_GOT(w, SLOT(j))))
#ifdef MUT_NO_BEGIN
#define BEGINS(s, j) (slot[s].chunk == 0)
#else
#define BEGINS(s, j) (!IS(s, j))
#endif

/* Do all receivers of chunk j hold its result? */
inline all_hold(invariant, j)
{
	i = 0;
	do
	:: i < N ->
		check(invariant, !HAS(to[j], i) || HAS(ended[i], j));
		i++
	:: else -> break
	od
}

inline begin(j)
{
	all_hold(slot_is_reused_when_done, slot[s].chunk);
	slot[s].chunk = j;
	slot[s].got = 0;
	slot[s].held = 0;
	slot[s].sum = 0
}

inline fold(w, j)
{
	s = SLOT(j);
	if
	:: BEGINS(s, j) -> begin(j)
	:: else
	fi;
	check(folded_once, !HAS(folded[w], j));
	check(folded_into_its_chunk, slot[s].chunk == (j));
	folded[w] = folded[w] | BIT(j);
	slot[s].got = slot[s].got | BIT(w);
	slot[s].sum = slot[s].sum | (BIT(w) & from[j])
}

/* Member w has acknowledged the result of slot k. */
inline on_held(w, k)
{
	slot[k].held = slot[k].held | BIT(w);
	do
	:: IS(SLOT(base), base) && DONE(SLOT(base)) ->
		all_hold(base_passes_what_all_hold, base);
		base++
	:: else -> break
	od;
	forget()
}

/* --- a member --- */

#define OPEN(w, j)  ((j) < next[w] && !HAS(ended[w], j))
/* The chunk that is now in the slot of chunk j, which the member entered. */
#define PIECE(w, j) (next[w] - 1 - (next[w] - 1 - (j)) % SLOTS)

#ifdef MUT_REUSE
/* The member only looks at its own slots. */
#define IN_WINDOW(w) (next[w] <= SLOTS || HAS(ended[w], next[w] - SLOTS))
#else
#define IN_WINDOW(w) (DISTANCE(next[w], known[w]) < WINDOW)
#endif

/* A member outside the window asks for the base. */
#ifdef MUT_NO_QUESTION
#define ASKS(w) false
#else
#define ASKS(w) (next[w] <= V && !IN_WINDOW(w))
#endif

#ifdef MUT_BY_SLOT
#define IS_WAITED_FOR(w, j) true
#else
#define IS_WAITED_FOR(w, j) (NUMBER(PIECE(w, j)) == NUMBER(j))
#endif
#define WANTS(w, j)                                                            \
	((j) < next[w] && IS_WAITED_FOR(w, j) && OPEN(w, PIECE(w, j)) &&       \
		HAS(to[PIECE(w, j)], w))

inline enter(w, f, t)
{
	check(slot_is_reused_when_done,
		next[w] <= SLOTS || HAS(ended[w], next[w] - SLOTS));
	from[next[w]] = f;
	to[next[w]] = t;
	next[w]++
}

inline end(w, j)
{
	ended[w] = ended[w] | BIT(j);
	forget()
}

inline on_result(w, j)
{
	p = PIECE(w, j);
	check(result_is_of_its_chunk, p == (j));
	check(result_is_the_full_sum,
		slot[SLOT(j)].chunk == (j) && slot[SLOT(j)].sum == from[j]);
	end(w, p)
}

inline on_base(w, b)
{
	do
	:: NUMBER(known[w]) != NUMBER(b) ->
		p = known[w];
		check(base_passes_what_all_hold,
			p < next[w] && HAS(folded[w], p) &&
				(HAS(ended[w], p) || !HAS(to[p], w)));
		ended[w] = ended[w] | BIT(p);
		known[w]++
	:: else -> break
	od;
	forget()
}

/* --- an older group --- */

/* An older group had all its V chunks and was closed. Any of its frames may
 * still arrive, and none has an effect here, because no key is used twice. */
#define KEY 1
#ifdef MUT_SAME_KEY
#define OLD_KEY KEY
#else
#define OLD_KEY (KEY - 1)
#endif
#define OLD_CHUNK(j)                                                           \
	:: d_step { OLD_KEY == KEY && !is_calm &&                              \
		(IS_NEW(w, j) || WANTS(w, j) || AFTER((j) + 1, known[w])) ->   \
		check(other_keys_are_ignored, false) }

/* --- all steps --- */

#define ENTER(f, t)                                                            \
	:: d_step { next[w] <= V && IN_WINDOW(w) &&                            \
		(!from[next[w]] || (from[next[w]] == (f) && to[next[w]] == (t))) -> \
		enter(w, f, t) }
/* From all members to the root, and from the root to all others. */
#define ENTER_WITH(root) ENTER(ALL, BIT(root)) ENTER(BIT(root), ALL - BIT(root))

/* The mutant acknowledges a damaged push. */
#ifdef MUT_ACK_UNFOLDED
#define IS_ACKED(w, j) true
#else
#define IS_ACKED(w, j) HAS(folded[w], j)
#endif

/* Messages about chunk j: PUSH, its ACK, RESULT, its ACK, the base after j. */
#define CHUNK(j)                                                               \
	:: d_step { (j) < next[w] && (!is_calm || OPEN(w, j)) &&               \
		IS_NEW(w, j) -> fold(w, j) }                                   \
	:: d_step { OPEN(w, j) && !HAS(to[j], w) && IS_ACKED(w, j) ->          \
		end(w, j) }                                                    \
	:: d_step { (slot[SLOT(j)].chunk == (j) && GETS(w, SLOT(j)) ||         \
			    (j) < base && !is_calm) && WANTS(w, j) ->          \
		on_result(w, j) }                                              \
	:: d_step { slot[SLOT(j)].chunk == (j) && GETS(w, SLOT(j)) &&          \
		HAS(ended[w], j) && !HAS(slot[SLOT(j)].held, w) ->             \
		on_held(w, SLOT(j)) }                                          \
	:: d_step { slot[SLOT(j)].chunk == (j) && (j) >= next[w] &&            \
		IS_UNASKED(w, SLOT(j)) && !HAS(slot[SLOT(j)].held, w) ->       \
		on_held(w, SLOT(j)) }                                          \
	:: d_step { (j) < base && !is_calm && AFTER((j) + 1, known[w]) ->      \
		on_base(w, (j) + 1) }

#define EVERY (BIT(V + 1) - 2)
#define ALL_HAVE_ALL                                                           \
	(base == V + 1 && ended[0] == EVERY && ended[1] == EVERY &&            \
		ended[N - 1] == EVERY)

proctype member(byte w)
{
	do
	ENTER(ALL, ALL)
	ENTER_WITH(0)
	ENTER_WITH(1)
#if N == 3
	ENTER_WITH(2)
#endif
	CHUNK(1)
	CHUNK(2)
	CHUNK(3)
	CHUNK(4)
	CHUNK(5)
	CHUNK(6)
#if V == 9
	CHUNK(7)
	CHUNK(8)
	CHUNK(9)
#endif
	OLD_CHUNK(1)
	OLD_CHUNK(V)
	:: d_step { ASKS(w) && AFTER(base, known[w]) -> on_base(w, base) }
	:: d_step { !is_calm -> is_calm = 1 }
	:: ALL_HAVE_ALL -> break
	od
}

init {
	atomic {
		i = 0;
		do
		:: i < N -> next[i] = 1; known[i] = 1; i++
		:: else -> break
		od;
		run member(0);
		run member(1);
#if N == 3
		run member(2);
#endif
	}
}
