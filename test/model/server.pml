/* server.pml - the server's cells: PUSH, QUERY and the marks of results
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * safety.pml and credit.pml share this file. They define N (workers), C
 * (chunks), V (versions) and, before they include this file, HOLDS(w, c, v):
 * worker w holds result (c, v). Versions count from FIRST; all workers hold
 * FIRST - 1 at the start. A MUT_x macro breaks one rule; the run script lists
 * them all.
 *
 * With COPIES every second version, starting with the first, is a broadcast of
 * the root's bytes. Like a sum it is done when all workers have pushed.
 */
#define FIRST 2
#define LAST  (FIRST + V - 1)
#define ALL   ((1 << N) - 1)

#define FULL_SUM  (((1 << (2 * N)) - 1) / 3) /* 1 in each base-4 digit */
#define SUM_OF(v) (FULL_SUM * !IS_COPY(v) + (1 << (2 * ROOT(v))) * IS_COPY(v))
#define HAS(set, i)     (((set) >> (i)) & 1)
#define CELL(c, v)    ((c) * 2 + ((v) & 1))
#define OTHER(c, v)   ((c) * 2 + 1 - ((v) & 1))
#define GHOST(w, c)   ((w) * C + (c))
#ifdef COPIES
#define IS_COPY(v)    (((v) & 1) == (FIRST & 1))
#else
#define IS_COPY(v)    false
#endif
#define ROOT(v)	      (((v) >> 1) % N) /* each worker in turn */
#define GIVES(w, v)   (!IS_COPY(v) || (w) == ROOT(v))

typedef cell_t {
	byte ver;	/* version in this generation */
	bit done;	/* DONE, else ACCUM */
	bit root;	/* a copy has the root's bytes */
	byte got;	/* bit per worker whose push is folded */
	byte unsent;	/* bit per worker whose RESULT is to be sent */
	byte n;		/* number of folds; used only by MUT_COUNT */
	/* Oracle: worker w adds 4^w to sum, and its version to tag. */
	byte sum;
	byte tag[N];
};
cell_t cell[C * 2];
byte folded[N * C]; /* oracle: bit per version folded */

/* The name in a violated assertion tells the invariant. */
bool I1_folded_once = true;
bool I2_result_is_the_full_sum = true;
bool I3_finished_is_immutable = true;
bool push_is_a_gradient = true;

hidden byte i, j, k, o, ok; /* scratch, not part of the state */
/* The answer of on_push and on_query. */
mtype = {ACK, RESULT, WAIT, NEED, GONE, VIOLATION};
hidden mtype answer;

inline check(invariant, condition)
{
	if
	:: condition
	:: else -> invariant = false
	fi;
	assert(invariant)
}

#ifdef MUT_COUNT
#define IS_FULL(k)    (cell[k].n >= N)
#define IS_NEW(k, w)  (!cell[k].done)
#else
#define IS_FULL(k)    (cell[k].got == ALL)
#define IS_NEW(k, w)  (!cell[k].done && !HAS(cell[k].got, w))
#endif
#ifdef MUT_FOLD_DONE
#undef IS_NEW
#define IS_NEW(k, w)  (!HAS(cell[k].got, w))
#endif

#ifdef MUT_COPY_READY
#define READY(k) (cell[k].done || cell[k].root)
#else
#define READY(k) cell[k].done
#endif

#ifdef MUT_RECYCLE
#define MAY_RECYCLE(c, v) (cell[CELL(c, v)].ver + 2 == v)
#else
#define MAY_RECYCLE(c, v)                                                      \
	(cell[CELL(c, v)].ver + 2 == v && cell[OTHER(c, v)].ver + 1 == v &&    \
		cell[OTHER(c, v)].done)
#endif

inline recycle(c, v)
{
	k = CELL(c, v);
	/* workers that keep the rules hold the overwritten result */
	ok = cell[k].done;
	i = 0;
	do
	:: i < N -> ok = ok && HOLDS(i, c, cell[k].ver); i++
	:: else -> break
	od;
	check(I3_finished_is_immutable, ok);
	cell[k].ver = v;
	cell[k].done = 0;
	cell[k].root = 0;
	cell[k].got = 0;
	cell[k].n = 0;
	cell[k].sum = 0;
#ifndef MUT_MARKS
	cell[k].unsent = 0;
#endif
	i = 0;
	do
	:: i < N -> cell[k].tag[i] = 0; i++
	:: else -> break
	od
}

inline fold(w, c, v)
{
	k = CELL(c, v);
	check(I1_folded_once, !HAS(folded[GHOST(w, c)], v));
	check(I3_finished_is_immutable, !cell[k].done);
	folded[GHOST(w, c)] = folded[GHOST(w, c)] | (1 << (v));
	cell[k].got = cell[k].got | (1 << (w));
	cell[k].n++;
	if
	:: GIVES(w, v) ->
		check(I3_finished_is_immutable, !cell[k].root);
		cell[k].sum = cell[k].sum + (1 << (2 * (w)));
		cell[k].tag[w] = v;
		cell[k].root = IS_COPY(v)
	:: else
	fi;
	if
	:: IS_FULL(k) ->
		cell[k].done = 1;
#ifdef MUT_FOLD_DONE
		cell[k].got = 0 /* falsely assumes the next version */
#endif
	:: else
	fi;
	if
	:: READY(k) -> cell[k].unsent = ALL; answer = RESULT
	:: else -> answer = ACK
	fi
}

#ifdef MUT_ONE_BIT
/* The frame carries only v & 1, and a push clears the same worker's bit in the
 * other generation.  Only the oracle knows v. */
inline on_push(w, c, v)
{
	k = CELL(c, v);
	o = OTHER(c, v);
	if
	:: HAS(cell[k].got, w) -> answer = ACK
	:: else ->
		if
		:: cell[k].done || cell[k].ver < FIRST -> recycle(c, v)
		:: else
		fi;
		cell[o].got = cell[o].got & (ALL - (1 << (w)));
		fold(w, c, v)
	fi
}
#else
inline on_push(w, c, v)
{
	k = CELL(c, v);
	if
	:: cell[k].ver == v ->
		if
		:: IS_NEW(k, w) -> fold(w, c, v)
		:: else ->
			if
			:: READY(k) ->
				cell[k].unsent = cell[k].unsent | (1 << (w));
				answer = RESULT
			:: else -> answer = ACK
			fi
		fi
	:: cell[k].ver > v -> answer = ACK /* already done */
	:: cell[k].ver < v && MAY_RECYCLE(c, v) ->
		recycle(c, v);
		fold(w, c, v)
	:: else -> answer = VIOLATION
	fi
}
#endif

/* Is NEED the answer to a QUERY?  The condition of on_query's second branch. */
#ifdef MUT_NO_NEED
#define IS_NEEDED(w, c, v) false
#else
#define IS_NEEDED(w, c, v)                                                     \
	(cell[CELL(c, v)].ver < v ||                                           \
		(cell[CELL(c, v)].ver == v && !cell[CELL(c, v)].done &&        \
			!HAS(cell[CELL(c, v)].got, w)))
#endif

inline on_query(w, c, v)
{
	k = CELL(c, v);
	if
	:: cell[k].ver == v && READY(k) && !IS_NEEDED(w, c, v) ->
		cell[k].unsent = cell[k].unsent | (1 << (w));
		answer = RESULT
	:: IS_NEEDED(w, c, v) -> answer = NEED
	:: cell[k].ver > v -> answer = GONE
	:: else -> answer = WAIT
	fi
}

/* TX has reached worker w's mark in cell k: is there a RESULT to build? */
#ifdef MUT_MARKS
#define TX_READY(k, w) HAS(cell[k].unsent, w)
#else
#define TX_READY(k, w) (HAS(cell[k].unsent, w) && READY(k))
#endif

/* The header is built from the cell, so it has the cell's version. */
inline on_tx(w, kk)
{
	ok = cell[kk].got == ALL && cell[kk].sum == SUM_OF(cell[kk].ver);
	i = 0;
	do
	:: i < N ->
		ok = ok && (!GIVES(i, cell[kk].ver) ||
			cell[kk].tag[i] == cell[kk].ver);
		i++
	:: else -> break
	od;
	check(I2_result_is_the_full_sum, ok);
	cell[kk].unsent = cell[kk].unsent & (ALL - (1 << (w)))
}

inline cells_init()
{
	i = 0;
	do
	:: i < C * 2 ->
		cell[i].ver = i & 1;
		cell[i].done = 1;
		i++
	:: else -> break
	od
}
