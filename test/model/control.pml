/* control.pml - the control stream of a session: V messages, a window, 2 ends
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The sender builds messages 1 to V and keeps each in a slot of its window
 * until it is acknowledged. Frames and acknowledgements carry numbers modulo
 * MOD. The network makes ODD disturbances: it loses a frame, delivers it twice
 * or before an older one, or fires the timer early. A frame that is AGE
 * messages late is ignored, because its packet number is old. Otherwise the
 * timer fires when nothing is in transit, once for each frame that was lost or
 * overtaken. So every step uses up a disturbance or moves the stream forward,
 * and every execution ends. The stream is live if and only if each execution
 * ends with all messages taken, applied and acknowledged.
 *
 * Message DECL is a DECLARE that waits for a later CLOSE (message DECL +
 * WINDOW): the receiver takes it at once and applies it when the CLOSE arrives.
 */
#ifndef V
#define V 7 /* must match the list of messages at the end */
#endif
#ifndef ODD
#define ODD 2
#endif
#ifndef MOD
#define MOD 6
#endif
#define WINDOW 2
#define AGE    4
#define DECL   2

byte built, acked, taken, applied; /* numbers without modulus */
byte slot[WINDOW];  /* the message in each slot */
byte frames[V + 1]; /* frames in transit, by message */
byte acks[V + 1];   /* acknowledgements in transit, by number */
byte odd = ODD;
byte fires; /* times the timer may fire: one per loss */

/* The name in a violated assertion tells the rule. */
bool taken_once_in_order = true;
bool acknowledged_was_taken = true;
bool sent_again_unchanged = true;

hidden byte i, d;

inline check(rule, condition)
{
	if
	:: condition
	:: else -> rule = false
	fi;
	assert(rule)
}

#ifdef MUT_WINDOW
#define LIMIT (WINDOW + 1)
#else
#define LIMIT WINDOW
#endif

#define AHEAD(n, of) (((n) + 4 * MOD - (of)) % MOD)
#define IS_RECENT(n, newest) ((n) + AGE > (newest))

inline send(n)
{
	check(sent_again_unchanged, slot[(n) % WINDOW] == n);
	frames[n]++;
	n_air++
}

inline build()
{
	built++;
	slot[built % WINDOW] = built;
	send(built)
}

/* The timer retransmits all messages in the window. */
inline send_again()
{
	i = acked + 1;
	do
	:: i <= built -> send(i); i++
	:: else -> break
	od;
	i = 0
}

inline take_frame(n)
{
	frames[n]--;
	n_air--
}

inline take_ack(n)
{
	acks[n]--;
	n_air--
}

inline say(n)
{
	acks[n]++;
	n_air++
}

/* The receiver acknowledges every frame. */
inline on_frame(n)
{
	d = AHEAD((n) % MOD, taken % MOD);
	if
#ifdef MUT_TAKE_GAP
	:: d >= 1 && d <= WINDOW ->
#else
	:: d == 1 ->
#endif
#ifdef MUT_STALL
		/* a waiting message is not taken before it can be applied */
		if
		:: n == DECL && built < DECL + WINDOW -> skip
		:: else ->
#else
		if
		:: true ->
#endif
			check(taken_once_in_order, n == taken + 1);
			taken = n;
			say(taken)
		fi
#ifdef MUT_TAKE_AGAIN
	:: d == 0 && taken ->
		check(taken_once_in_order, n == taken + 1)
#endif
	:: else ->
#ifdef MUT_ACK_GAP
		say(n)
#else
#ifdef MUT_NO_ACK_AGAIN
		skip
#else
		say(taken)
#endif
#endif
	fi
}

inline on_ack(n)
{
	d = AHEAD((n) % MOD, acked % MOD);
	if
	:: d >= 1 && d <= built - acked ->
		check(acknowledged_was_taken, acked + d <= taken);
		acked = acked + d
	:: else
	fi
}

byte n_air; /* frames and acknowledgements in transit */

/* Is a frame older than message n in transit? */
#define B1 false
#define B2 frames[1]
#define B3 (B2 || frames[2])
#define B4 (B3 || frames[3])
#define B5 (B4 || frames[4])
#define B6 (B5 || frames[5])
#define B7 (B6 || frames[6])
#define FRAME(n, is_overtaking)                                                \
	:: d_step { frames[n] && !(is_overtaking) -> take_frame(n);            \
		if :: IS_RECENT(n, built) -> on_frame(n) :: else fi }          \
	:: d_step { odd && frames[n] && (is_overtaking) -> odd--; fires++;     \
		take_frame(n); on_frame(n) }                                   \
	:: d_step { odd && frames[n] && IS_RECENT(n, built) -> odd--;          \
		on_frame(n) }                                                  \
	:: d_step { odd && frames[n] -> odd--; fires++; take_frame(n) }
#define ACK(n)                                                                 \
	:: d_step { acks[n] -> take_ack(n);                                    \
		if :: IS_RECENT(n, taken) -> on_ack(n) :: else fi }            \
	:: d_step { odd && acks[n] -> odd--; fires++; take_ack(n) }

#if V != 7
#error there are seven messages below
#endif

active proctype session()
{
	do
	:: d_step { built < V && built - acked < LIMIT -> build() }
	:: d_step { fires && acked < built && !n_air -> fires--;
		send_again() }
	/* the timer fires early */
	:: d_step { odd && acked < built -> odd--; send_again() }
	/* a deferred message is applied when the CLOSE was taken */
	:: d_step { applied < taken &&
		(applied + 1 != DECL || taken >= DECL + WINDOW) -> applied++ }
	FRAME(1, B1) FRAME(2, B2) FRAME(3, B3) FRAME(4, B4) FRAME(5, B5)
	FRAME(6, B6) FRAME(7, B7)
	ACK(0) ACK(1) ACK(2) ACK(3) ACK(4) ACK(5) ACK(6) ACK(7)
	:: applied == V && acked == V -> break
	od
}
