/* async.pml - one chunk of an asynchronous tensor: A12
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * There are two workers. Round 1 is the first broadcast, from worker 0; each
 * later round is a delta of its worker. The channel is the set of messages ever
 * sent, as in safety.pml: a lost message never arrives, and a duplicate or late
 * one arrives again at any time. A value counts the rounds of each worker that
 * it includes, so a lost, duplicate or early delta shows there.
 *
 * The model has no steps that change nothing, so an execution in which a worker
 * waits for ever ends early, and that violates I6. With STOPS worker 1 takes
 * part in the first broadcast and sends nothing afterwards. With RUNAHEAD
 * worker 1 pushes before it holds the answer to its last push; this must not
 * affect worker 0.
 */
#ifndef V
#define V 3
#endif
#define N 2

#ifdef STOPS
#define LAST(w) (V - (V - 1) * (w))
#else
#define LAST(w) V
#endif

#define HAS(set, i)	 (((set) >> (i)) & 1)
#define OTHER(w)	 (1 - (w))
#define ANSWER(r, other) ((r) * (V + 1) + (other))

/* State of the server. */
byte last[N];	   /* the last round folded */
byte value[N];	   /* rounds of each worker in the value */
byte got;	   /* workers that took part in round 1 */
bit is_ready;
bit mark[N];	   /* the answer is to be sent */
bit is_inflight[N];
byte open[N];	   /* rounds of answers without a fate yet */
byte folded[N];	   /* oracle: rounds folded */
byte half[N];	   /* MUT_BY_REFERENCE: updates at the frame's start */

/* State of the workers. */
byte held[N];	   /* the last round whose answer it holds */
byte others[N];	   /* rounds of the other worker in that answer */
bit is_waiting[N];

/* Messages. */
byte pushed[N];	   /* bit per round */
int answers[N];	   /* bit per round and other worker's rounds in it */

bool delta_is_folded_once = true;
bool no_delta_is_lost = true;
bool all_start_together = true;
bool answer_has_own_deltas = true;
bool answer_is_one_value = true;
bool parameters_never_go_back = true;
bool never_gone = true;

inline check(invariant, condition)
{
	if
	:: condition
	:: else -> invariant = false
	fi;
	assert(invariant)
}

#define UPDATES (value[0] + value[1])

/* --- the server --- */

#ifdef MUT_START_ALONE
#define IS_COMPLETE (value[0] != 0)
#else
#define IS_COMPLETE (got == 3 && value[0] != 0)
#endif

#if defined(MUT_FOLD_NEWER)
#define IS_NEXT(w, r) ((r) > last[w])
#elif defined(MUT_FOLD_AGAIN)
#define IS_NEXT(w, r) ((r) == last[w] || (r) == last[w] + 1)
#elif defined(MUT_ONE_BIT)
#define IS_NEXT(w, r) (((r) & 1) != (last[w] & 1))
#else
#define IS_NEXT(w, r) ((r) == last[w] + 1)
#endif
#ifdef MUT_DELTA_FIRST
#define CAN_FOLD(w, r) IS_NEXT(w, r)
#else
#define CAN_FOLD(w, r) (IS_NEXT(w, r) && ((r) == 1 || is_ready))
#endif
#define CAN_MARK(w, r)                                                         \
	((r) == last[w] && is_ready && !is_inflight[w] && !mark[w])

inline fold_first(w)
{
	got = got | (1 << (w));
	if
	:: (w) == 0 -> value[0] = 1; value[1] = 1
	:: else
	fi;
	is_ready = IS_COMPLETE;
	mark[0] = is_ready && last[0] != 0;
	mark[1] = is_ready && last[1] != 0
}

inline on_push(w, r)
{
	if
	:: CAN_FOLD(w, r) ->
		check(delta_is_folded_once, !HAS(folded[w], r));
		check(no_delta_is_lost, folded[w] == (1 << (r)) - 2);
		folded[w] = folded[w] | (1 << (r));
		last[w] = r;
#ifndef MUT_INFLIGHT_STAYS
		is_inflight[w] = 0;
#endif
		if
		:: (r) == 1 -> fold_first(w)
		:: else -> value[w]++; mark[w] = !is_inflight[w]
		fi
	:: else -> mark[w] = 1
	fi
}

inline build(w)
{
	check(all_start_together, got == 3);
	check(answer_has_own_deltas, value[w] == last[w]);
	answers[w] = answers[w] | (1 << ANSWER(last[w], value[OTHER(w)]));
	open[w] = open[w] | (1 << last[w]);
	is_inflight[w] = 1;
	mark[w] = 0
}

/* The flow reports the fate of an answer once. */
inline on_fate(w, r, is_lost)
{
	open[w] = open[w] & (255 - (1 << (r)));
	if
	:: (r) == last[w] && is_inflight[w] ->
		is_inflight[w] = 0;
		mark[w] = mark[w] | is_lost
	:: else
	fi
}

/* --- a worker --- */

#ifdef MUT_ANY_ANSWER
#define WANTS(w, r) (is_waiting[w] && (r) <= held[w] + 1)
#else
#define WANTS(w, r) (is_waiting[w] && (r) == held[w] + 1)
#endif

inline take(w, x)
{
	check(parameters_never_go_back, (x) >= others[w]);
	others[w] = x;
	held[w]++;
	is_waiting[w] = 0
}

#define PUSH(w, r)                                                             \
	:: d_step { (r) <= V && HAS(pushed[w], r) &&                           \
		(CAN_FOLD(w, r) || CAN_MARK(w, r)) -> on_push(w, r) }          \
	:: d_step { (r) <= V && HAS(open[w], r) -> on_fate(w, r, 0) }          \
	:: d_step { (r) <= V && HAS(open[w], r) -> on_fate(w, r, 1) }
#define RESULT(w, r, x)                                                        \
	:: d_step { (r) <= V && (x) <= V && HAS(answers[w], ANSWER(r, x)) &&   \
		WANTS(w, r) -> take(w, x) }
#define RESULTS(w, r)                                                          \
	RESULT(w, r, 1) RESULT(w, r, 2) RESULT(w, r, 3)

proctype worker(byte w)
{
	do
	:: d_step { !is_waiting[w] && held[w] < LAST(w) ->
		is_waiting[w] = 1;
		pushed[w] = pushed[w] | (1 << (held[w] + 1)) }
	PUSH(w, 1)
	PUSH(w, 2)
	PUSH(w, 3)
	RESULTS(w, 1)
	RESULTS(w, 2)
	RESULTS(w, 3)
#ifdef MUT_BY_REFERENCE
	:: d_step { mark[w] && is_ready && !half[w] -> half[w] = UPDATES }
	:: d_step { half[w] ->
		check(answer_is_one_value, half[w] == UPDATES);
		half[w] = 0;
		build(w) }
#else
	:: d_step { mark[w] && is_ready -> build(w) }
#endif
#ifdef RUNAHEAD
	:: d_step { w == 1 && held[w] + 2 <= V && !HAS(pushed[w], held[w] + 2) ->
		pushed[w] = pushed[w] | (1 << (held[w] + 2)) }
	:: held[0] == V -> break
#else
	/* Here the answer to a QUERY would be GONE. */
	:: d_step { is_waiting[w] && last[w] > held[w] + 1 ->
		check(never_gone, false) }
	:: held[0] == LAST(0) && held[1] == LAST(1) -> break
#endif
	od
}

init {
	atomic {
		run worker(0);
		run worker(1)
	}
}
