/* close.pml - two members end and close groups, and the index is reused
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * One index has G groups of one stream, one after another; a group's identifier
 * is its generation. A member has two lanes: lane 0 at the coordinator, lane 1
 * at another server. Sessions deliver in order and lose nothing (control.pml).
 * A group is live or has ended, and each server keeps the set of members that
 * have closed it.
 *
 * A member may end a group at the other server, which tells the other member's
 * lane 1. Lane 0 proposes that end to the coordinator, unless it has closed the
 * group. A member sends CLOSE to the coordinator last, when lane 1 has
 * forgotten the group. The coordinator gives the index to the next group when
 * both members have closed the previous one.
 */
#ifndef G
#define G 3
#endif
#define DECLARE 1
#define CLOSE	2
#define END	3
#define ALL	3 /* both members */

chan coordinator[2] = [3] of { byte, byte }; /* by member: kind, generation */
chan keyed[2] = [1] of { byte };	     /* generation */
chan lane[2] = [4] of { byte, byte };	     /* lane 0 to lane 1 */
chan server[2] = [4] of { byte, byte };	     /* lane 1 to its server */
chan answer[2] = [5] of { byte, byte };
byte key[2];				     /* generation at lane 1 */
byte forgot[2], admitted[2], proposed[2];    /* generations, from lane 1 */
byte at_first, at_other;		     /* generation at each server */
byte closed_first = ALL, closed_other = ALL; /* members that closed it */
bool ended_first, ended_other;
byte said;				     /* generations that were ended */

/* The name in a violated assertion tells the rule. */
bool index_is_free = true, end_is_meant = true;

inline note_end(generation)
{
	end_is_meant = said >> generation & 1;
	assert(end_is_meant)
}

/* Lane 0 proposes the end that lane 1 has reported.  With LATE it does so even
 * after closing the group, as a member that breaks the rule would. */
#define PROPOSE(m)                                                             \
	if                                                                     \
	:: proposed[m] > told -> told = proposed[m];                           \
		coordinator[m]!END, told                                       \
	:: else                                                                \
	fi

active [2] proctype member()
{
	byte m = _pid, g = 0, told = 0;

	do
	:: g == G -> break
	:: else ->
		coordinator[m]!DECLARE, 0;
		keyed[m]?g;
		lane[m]!DECLARE, g;
		admitted[m] == g;
		if
		:: said = said | 1 << g; lane[m]!END, g
		:: true
		fi;
		PROPOSE(m);
		lane[m]!CLOSE, g;
#ifndef MUT_CLOSE_EARLY
		forgot[m] == g;
#endif
#ifdef LATE
		coordinator[m]!CLOSE, g;
		PROPOSE(m)
#else
		coordinator[m]!CLOSE, g
#endif
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
	:: lane[m]?END, g -> server[m]!END, g
	:: lane[m]?CLOSE, g -> server[m]!CLOSE, g
	:: answer[m]?DECLARE, g -> admitted[m] = g
	:: answer[m]?END, g ->
		if
		:: key[m] == g -> note_end(g); proposed[m] = g
		:: else
		fi
	:: answer[m]?CLOSE, g -> key[m] = 0; forgot[m] = g
	od
}

/* A server ignores END of another group, or of one that its sender closed. */
#ifdef MUT_ANY_GROUP
#define IS_MEANT(at, closed, m) true
#else
#define IS_MEANT(at, closed, m) (g == at && !(closed >> m & 1))
#endif

/* A DECLARE waits until all members have closed the index's previous group. */
#define FIRST(m)                                                               \
	:: atomic { coordinator[m]?[DECLARE, 0] && (closed_first == ALL ||     \
		!(closed_first >> m & 1)) -> coordinator[m]?DECLARE, 0;        \
		if                                                             \
		:: closed_first == ALL -> at_first++; closed_first = 0;        \
			ended_first = false                                    \
		:: else                                                        \
		fi;                                                            \
		keyed[m]!at_first }                                            \
	:: atomic { coordinator[m]?END, g ->                                   \
		if                                                             \
		:: IS_MEANT(at_first, closed_first, m) ->                      \
			note_end(at_first); ended_first = true                 \
		:: else                                                        \
		fi }                                                           \
	:: atomic { coordinator[m]?CLOSE, g ->                                 \
		closed_first = closed_first | 1 << m }
#define OTHER(m)                                                               \
	:: atomic { server[m]?[DECLARE, eval(at_other)] ->                     \
		server[m]?DECLARE, g; answer[m]!DECLARE, g;                    \
		if                                                             \
		:: ended_other -> answer[m]!END, g                             \
		:: else                                                        \
		fi }                                                           \
	:: atomic { server[m]?[DECLARE, eval(at_other + 1)] &&                 \
		closed_other == ALL -> server[m]?DECLARE, g;                   \
		at_other = g; closed_other = 0; ended_other = false;           \
		answer[m]!DECLARE, g }                                         \
	:: atomic { server[m]?END, g ->                                        \
		if                                                             \
		:: IS_MEANT(at_other, closed_other, m) && !ended_other ->      \
			note_end(at_other); ended_other = true;                \
			if                                                     \
			:: !(closed_other >> (1 - m) & 1) ->                   \
				answer[1 - m]!END, g                           \
			:: else                                                \
			fi                                                     \
		:: else                                                        \
		fi }                                                           \
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
