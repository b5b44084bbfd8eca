/* knobs.pml - knobs of a running job: every round has the same at all members
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * N workers, T tensors, R rounds of each, S changes of knobs, asked for at any
 * time.  STATUS and KEEPALIVE are sent again until they are answered, and one
 * that is older than the last that came is dropped: so each message ever sent
 * stays, and arrives late, or never before a newer one.  Nothing undoes
 * a step, so every execution ends, and I6 is: with all rounds begun.
 *
 * A worker begins r + 1 of a tensor when all have begun r (a sum), with COPY
 * worker 0 when all have begun r - 1 (it broadcasts).  With ASYNC the job is
 * asynchronous: worker 0 waits for nobody, and worker 1 begins one round.
 */
#ifndef N
#define N 2
#endif
#ifndef T
#define T 2
#endif
#ifndef R
#define R 7
#endif
#ifndef S
#define S 2
#endif
#define AHEAD 2
#define ALL   ((1 << N) - 1)
#define SEQS  (2 * S + 1) /* a proposal and a commit of each, and the start */
#define SAID  (4 * S + 2)

#define HAS(set, i) (((set) >> (i)) & 1)
#define MAX(a, b)   ((a) * ((a) >= (b)) + (b) * ((b) > (a)))
#define AT(w, t)    ((w) * T + (t))
#define KA(w, i)    ((w) * SAID + (i))

#ifdef ASYNC
#define IS_ASYNC  true
#else
#define IS_ASYNC  false
#endif
#define ROUNDS(w) (R - (R - 1) * (IS_ASYNC && (w)))

/* the coordinator */
byte number;	   /* of the knobs committed last */
byte from[S + 1];  /* first round of each */
bit is_open;	   /* number + 1 is proposed */
byte promised, limit;
byte acked[N];	   /* seq of STATUS, as heard */
byte heard[N];	   /* index of the KEEPALIVE that came last */
byte seq;
/* messages: STATUS, by seq */
byte status_number[SEQS], status_from[SEQS];

/* a worker */
byte seen[N], newest[N], used[N], highest[N], proposal[N], bound[N];
byte round[N * T];
/* messages: its KEEPALIVEs, by index, from 1 */
byte n_said[N];
byte said_seq[N * SAID], said_number[N * SAID], said_bound[N * SAID];

byte knobs_of[T * (R + 1)]; /* oracle: 1 + number */

bool one_set_for_a_round = true;
bool every_set_is_heard = true;

hidden byte i, r, set;

inline check(invariant, condition)
{
	if
	:: condition
	:: else -> invariant = false
	fi;
	assert(invariant)
}

/* --- the coordinator --- */

inline announce(n, f)
{
	seq++;
	status_number[seq] = n;
	status_from[seq] = f
}

#ifdef MUT_NUMBER_EARLY
#define ALL_KNOW true
#else
#define ALL_KNOW (acked[0] == seq && acked[1] == seq && acked[N - 1] == seq)
#endif

inline on_tune()
{
	is_open = 1;
	promised = 0;
	limit = from[number];
	announce(number + 1, 0)
}

#ifdef MUT_ANY_PROMISE
#define IS_PROMISE(w) is_open
#else
#define IS_PROMISE(w) (is_open && said_number[KA(w, i)] == number + 1)
#endif
#ifdef MUT_COMMIT_EARLY
#define ALL_PROMISED true
#else
#define ALL_PROMISED (promised == ALL)
#endif

inline on_keepalive(w, index)
{
	i = index;
	heard[w] = i;
	acked[w] = said_seq[KA(w, i)];
	if
	:: IS_PROMISE(w) && !HAS(promised, w) ->
		promised = promised | (1 << (w));
		limit = MAX(limit, said_bound[KA(w, i)]);
		if
		:: ALL_PROMISED ->
			number++;
			from[number] = limit + 1;
			is_open = 0;
			announce(number, from[number])
		:: else
		fi
	:: else
	fi
}

/* --- a worker --- */

inline say(w)
{
	n_said[w]++;
	said_seq[KA(w, n_said[w])] = seen[w];
	said_number[KA(w, n_said[w])] = (bound[w] != 0) * proposal[w];
	said_bound[KA(w, n_said[w])] = bound[w]
}

inline promise(w)
{
	if
	:: proposal[w] && !bound[w] && used[w] == newest[w] ->
		bound[w] = highest[w] + AHEAD
	:: else
	fi
}

inline on_status(w, s)
{
	seen[w] = s;
	if
	:: status_number[s] > newest[w] && status_from[s] ->
		check(every_set_is_heard, status_number[s] == newest[w] + 1);
		newest[w] = status_number[s];
#ifndef MUT_ASYNC_HELD
		if
		:: IS_ASYNC -> used[w] = newest[w]
		:: else
		fi;
#endif
		proposal[w] = 0;
#ifndef MUT_NO_RELEASE
		bound[w] = 0
#endif
	:: status_number[s] > newest[w] && !status_from[s] &&
		status_number[s] != proposal[w] ->
		proposal[w] = status_number[s];
		promise(w)
	:: else
	fi;
	say(w)
}

#ifdef MUT_ASYNC_HELD
#define IS_FREE false
#else
#define IS_FREE IS_ASYNC
#endif
#ifdef MUT_NOT_HELD
#define MAY_BEGIN(w, t) true
#else
#define MAY_BEGIN(w, t)                                                        \
	(IS_FREE || !bound[w] || round[AT(w, t)] + 1 <= bound[w])
#endif

/* All have begun the round before, or the root is one further. */
#define LAG(w) (IS_COPY && (w) == 0)
#ifdef COPY
#define IS_COPY true
#else
#define IS_COPY false
#endif
#define HOLDS(w, t)                                                            \
	(IS_ASYNC ||                                                           \
		(round[AT(0, t)] + LAG(w) >= round[AT(w, t)] &&                \
			round[AT(1, t)] + LAG(w) >= round[AT(w, t)] &&         \
			round[AT(N - 1, t)] + LAG(w) >= round[AT(w, t)]))
#define CAN_BEGIN(w, t)                                                        \
	(round[AT(w, t)] < ROUNDS(w) && HOLDS(w, t) && MAY_BEGIN(w, t))

/* The newest set that is for round r. */
inline find_set(w)
{
	set = newest[w];
	do
	:: from[set] > r && !IS_FREE -> set--
	:: else -> break
	od
}

inline begin(w, t)
{
	round[AT(w, t)]++;
	r = round[AT(w, t)];
#ifdef MUT_HIGHEST
	highest[w] = r;
#else
	highest[w] = MAX(highest[w], r);
#endif
	find_set(w);
	if
	:: IS_ASYNC
	:: else ->
		check(one_set_for_a_round, !knobs_of[(t) * (R + 1) + r] ||
			knobs_of[(t) * (R + 1) + r] == set + 1);
		knobs_of[(t) * (R + 1) + r] = set + 1
	fi;
	if
	:: set > used[w] ->
		used[w] = set;
		if
		:: proposal[w] -> promise(w); say(w)
		:: else
		fi
	:: else
	fi
}

#define DONE(w) (round[AT(w, 0)] == ROUNDS(w) &&                            \
	round[AT(w, T - 1)] == ROUNDS(w))
#define STATUS(w, s)                                                           \
	:: d_step { (s) <= seq && (s) > seen[w] -> on_status(w, s) }

/* The next that it said, or one that overtakes others. */
#define KEEPALIVE(w, n)                                                        \
	:: d_step { heard[w] + (n) <= n_said[w] ->                             \
		on_keepalive(w, heard[w] + (n)) }

proctype worker(byte w)
{
	do
	:: d_step { CAN_BEGIN(w, 0) -> begin(w, 0) }
#if T == 2
	:: d_step { CAN_BEGIN(w, 1) -> begin(w, 1) }
#endif
	STATUS(w, 1)
	STATUS(w, 2)
#if S == 2
	STATUS(w, 3)
	STATUS(w, 4)
#endif
	KEEPALIVE(w, 1)
	KEEPALIVE(w, 2)
	KEEPALIVE(w, 3)
	KEEPALIVE(w, 4)
	:: DONE(0) && DONE(1) && DONE(N - 1) -> break
	od
}

proctype tuner()
{
	do
	:: d_step { number + is_open < S && !is_open && ALL_KNOW -> on_tune() }
	:: DONE(0) && DONE(1) && DONE(N - 1) -> break
	od
}

init {
	atomic {
		run tuner();
		run worker(0);
		run worker(1);
#if N == 3
		run worker(2)
#endif
	}
}
