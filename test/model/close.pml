/* close.pml - a group is closed and its index used again, by 2 members
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * One index has G streams, one after another.  A member has two lanes: lane 0 at
 * the coordinator, lane 1 at another server.  Sessions deliver in order and lose
 * nothing (control.pml).  A member tells the coordinator last that it has closed
 * a stream: when lane 1 has forgotten it.  The coordinator gives the index to the
 * next stream when both members have closed the last one.
 */
#ifndef G
#define G 3
#endif
#define DECLARE 1
#define CLOSE   2
#define ALL	3 /* both members */

chan coordinator[2] = [2] of { byte };	    /* by member: DECLARE or CLOSE */
chan keyed[2] = [1] of { byte };	    /* generation */
chan lane[2] = [4] of { byte, byte };	    /* lane 0 to lane 1 */
chan server[2] = [4] of { byte, byte };	    /* lane 1 to its server */
chan answer[2] = [4] of { byte, byte };
byte key[2];				    /* generation that lane 1 has */
byte forgot[2], admitted[2];		    /* as lane 1 reports */
byte at_first, at_other;		    /* generation at each server */
byte closed_first = ALL, closed_other = ALL; /* members that have closed it */

/* Named so that a violated assertion says which rule it was. */
bool index_is_free = true;

active [2] proctype member()
{
	byte m = _pid, g = 0;

	do
	:: g == G -> break
	:: else ->
		coordinator[m]!DECLARE;
		keyed[m]?g;
		lane[m]!DECLARE, g;
		admitted[m] == g;
		lane[m]!CLOSE, g;
#ifndef MUT_CLOSE_EARLY
		forgot[m] == g;
#endif
		coordinator[m]!CLOSE
	od
}

active [2] proctype other_lane()
{
	byte m = _pid - 2, g;

end:
	do
	:: lane[m]?DECLARE, g ->
		index_is_free = !key[m];
		assert(index_is_free);
		key[m] = g;
		server[m]!DECLARE, g
	:: lane[m]?CLOSE, g -> server[m]!CLOSE, g
	:: answer[m]?DECLARE, g -> admitted[m] = g
	:: answer[m]?CLOSE, g -> key[m] = 0; forgot[m] = g
	od
}

/* A DECLARE waits while its index has a stream that somebody has not closed. */
#define FIRST(m)                                                               \
	:: atomic { coordinator[m]?[DECLARE] && (closed_first == ALL ||        \
		!(closed_first >> m & 1)) -> coordinator[m]?DECLARE;           \
		if                                                             \
		:: closed_first == ALL -> at_first++; closed_first = 0         \
		:: else                                                        \
		fi;                                                            \
		keyed[m]!at_first }                                            \
	:: atomic { coordinator[m]?CLOSE ->                                    \
		closed_first = closed_first | 1 << m }
#define OTHER(m)                                                               \
	:: atomic { server[m]?[DECLARE, eval(at_other)] ->                     \
		server[m]?DECLARE, g; answer[m]!DECLARE, g }                   \
	:: atomic { server[m]?[DECLARE, eval(at_other + 1)] &&                 \
		closed_other == ALL -> server[m]?DECLARE, g;                   \
		at_other = g; closed_other = 0; answer[m]!DECLARE, g }         \
	:: atomic { server[m]?CLOSE, g ->                                      \
		closed_other = closed_other | 1 << m; answer[m]!CLOSE, g }

active proctype servers()
{
	byte g;

end:
	do
	FIRST(0) FIRST(1) OTHER(0) OTHER(1)
	od
}
