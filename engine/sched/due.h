/* due.h - sets of the sessions with frames to send on a port, by class.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * One set of sessions for control frames, and one set per class for data, so
 * that finding the next frame takes O(1) with any number of sessions.  Within a
 * set, the sessions take turns, or the session with the least key goes first.
 *
 * Starvation is bounded: every SW_DUE_TURN-th data frame of a port goes to the
 * next session in a round over all sessions with data, of any class.  That
 * session takes its next tensor in turn, of any priority. */
#ifndef SW_ENGINE_SCHED_DUE_H
#define SW_ENGINE_SCHED_DUE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/bits.h"
#include "engine/base/limits.h"

enum {
	SW_DUE_WORDS = SW_MAX_SESSIONS / 64,
	SW_DUE_TURN = 32,
};

struct sw_due_set {
	uint64_t words[SW_DUE_WORDS];
	uint32_t turn; /* session after the one that sent last */
};

/* Set 0…7: data by class; set SW_CLASS_CTL: control. */
struct sw_due {
	struct sw_due_set set[SW_N_SPACES];
	uint32_t n_data; /* data frames sent */
	uint32_t turn;   /* session after the last one that had its turn */
	uint32_t filled; /* nonempty sets, as bits */
};

static inline void sw_due_put(
	struct sw_due *d, uint32_t class, uint32_t session_i, bool is_due)
{
	uint64_t *words = d->set[class].words, any = 0;
	uint64_t bit = 1ULL << (session_i % 64);

	if (is_due) {
		words[session_i / 64] |= bit;
		d->filled |= 1u << class;
		return;
	}
	words[session_i / 64] &= ~bit;
	for (uint32_t i = 0; i < SW_DUE_WORDS; i++)
		any |= words[i];
	if (!any)
		d->filled &= ~(1u << class);
}

/* sw_due_has - return whether any set has a session. */
static inline bool sw_due_has(const struct sw_due *d)
{
	return d->filled != 0;
}

/* sw_due_set_put - add a session to a set, or remove it. */
static inline void sw_due_set_put(
	struct sw_due_set *s, uint32_t session_i, bool is_in)
{
	sw_bits_put(s->words, session_i, is_in);
}

/* sw_due_set_size - count the sessions in a set. */
static inline uint32_t sw_due_set_size(const struct sw_due_set *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < SW_DUE_WORDS; i++)
		n += (uint32_t)__builtin_popcountll(s->words[i]);
	return n;
}

/* sw_due_set_take - return the next session, in turn, of a nonempty set.  The
 * session stays in the set. */
static inline uint32_t sw_due_set_take(struct sw_due_set *s)
{
	uint32_t w = s->turn / 64, found;
	uint64_t word = s->words[w] & ~0ULL << (s->turn % 64);

	while (!word) {
		w = (w + 1) % SW_DUE_WORDS;
		word = s->words[w];
	}
	found = w * 64 + (uint32_t)__builtin_ctzll(word);
	s->turn = (found + 1) % SW_MAX_SESSIONS;
	return found;
}

/* sw_due_take_turn - return the next session of a set; SW_MAX_SESSIONS: empty.
 * The session stays in the set. */
static inline uint32_t sw_due_take_turn(struct sw_due *d, uint32_t class)
{
	return d->filled >> class & 1 ? sw_due_set_take(&d->set[class])
				      : SW_MAX_SESSIONS;
}

/* Return the next session with data of any class. */
static inline uint32_t sw_due_take_any(struct sw_due *d)
{
	struct sw_due_set any = {.turn = d->turn};
	uint32_t i;

	for (uint32_t class = 0; class < SW_N_CLASSES; class ++)
		for (uint32_t w = 0; w < SW_DUE_WORDS; w++)
			any.words[w] |= d->set[class].words[w];
	i = sw_due_set_take(&any);
	d->turn = any.turn;
	return i;
}

/* Return the session with the least key in a nonempty set. */
static inline uint32_t sw_due_set_least(
	const struct sw_due_set *s, const uint64_t *keys)
{
	uint32_t best = SW_MAX_SESSIONS;

	for (uint32_t w = 0; w < SW_DUE_WORDS; w++)
		for (uint64_t word = s->words[w]; word; word &= word - 1) {
			uint32_t i = w * 64 + (uint32_t)__builtin_ctzll(word);

			if (best == SW_MAX_SESSIONS || keys[i] < keys[best])
				best = i;
		}
	return best;
}

/* sw_due_run - return how many of @max more frames the session may send that
 * was taken by class, before a frame in turn is due.
 * sw_due_note_run - count @n more frames that this session has sent. */
static inline uint32_t sw_due_run(const struct sw_due *d, uint32_t max)
{
	uint32_t left = SW_DUE_TURN - 1 - d->n_data % SW_DUE_TURN;

	return left < max ? left : max;
}

static inline void sw_due_note_run(struct sw_due *d, uint32_t n)
{
	d->n_data += n;
}

/* sw_due_take_data - return the session that sends the next data frame, by
 * class or in its turn; SW_MAX_SESSIONS: no data.  The session stays in its
 * set.
 * @keys  by session: within a class the least key goes first, among equal keys
 *        the lowest session; O(sessions of the class).  NULL: take turns */
static inline uint32_t sw_due_take_data(
	struct sw_due *d, const uint64_t *keys, bool *is_turn)
{
	uint32_t classes = d->filled & ((1u << SW_N_CLASSES) - 1), class;

	*is_turn = d->n_data % SW_DUE_TURN == SW_DUE_TURN - 1;
	if (!classes)
		return SW_MAX_SESSIONS;
	d->n_data++;
	if (*is_turn)
		return sw_due_take_any(d);
	class = (uint32_t)__builtin_ctz(classes);
	return keys ? sw_due_set_least(&d->set[class], keys)
		    : sw_due_take_turn(d, class);
}

#endif
