/* stall.c - report tensors without progress, and the ranks that they wait for.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/worker/stall.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/bits.h"
#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/worker/faults.h"
#include "engine/worker/group.h"
#include "engine/worker/probe.h"
#include "engine/worker/stream.h"

/* --- the ranks that tensors wait for --- */

enum {
	FRAME_BYTES = sizeof("ranks  of 65535") - 1, /* text around a list */
	LOOK_NS = 100000000, /* pause between looks for stalls */
	LOOK_BURST = 16,     /* tensors that a tick looks at */
	GROUPS_BURST = 512,  /* places in the table of groups */
};

/* The ranks that a tensor or stream waits for: all ranks of other members, and
 * this member's local ranks that have not called. */
struct missing {
	uint64_t members, locals[SW_LOCAL_WORDS];
};

struct ranks {
	uint64_t bits[SW_GROUP_RANKS / 64 + 1];
};

static uint64_t named_since(const struct sw_wtensor *t, uint64_t since_ns)
{
	return sw_word(&t->awaited_ns) >= since_ns ? sw_word(&t->awaited) : 0;
}

/* Return the members that servers have named in WAITs since @since_ns, to any
 * lane. */
static uint64_t named(const struct sw_worker *w, const struct sw_wtensor *t,
	uint64_t since_ns)
{
	uint64_t all = named_since(t, since_ns);

	for (uint32_t i = 0; i < w->n_others && w->lanes[i].theirs; i++)
		all |= named_since(&w->lanes[i].theirs[t->index], since_ns);
	return all;
}

/* Add the ranks from @from up to @end, exclusive; if @set is not NULL, only
 * ranks in @set. */
static void add_range(
	const uint64_t *set, uint32_t from, uint32_t end, struct ranks *out)
{
	for (uint32_t i = from / 64; i * 64 < end; i++) {
		uint64_t word = set ? set[i] : ~0ULL;

		if (i == from / 64)
			word &= ~0ULL << from % 64;
		if (end - i * 64 < 64)
			word &= (1ULL << end % 64) - 1;
		out->bits[i] |= word;
	}
}

static void list_ranks(const struct sw_worker *w, const uint64_t *set,
	const struct missing *m, struct ranks *out)
{
	uint64_t members = m->members & (~0ULL >> (64 - w->n_members));

	for (; members; members &= members - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(members);

		add_range(set, w->firsts[i], w->firsts[i + 1], out);
	}
	for (uint32_t i = 0; i < SW_LOCAL_WORDS; i++)
		for (uint64_t l = m->locals[i]; l; l &= l - 1)
			sw_bits_add(out->bits,
				w->first + 64 * i +
					(uint32_t)__builtin_ctzll(l));
}

const char *sw_missing_text(const struct sw_worker *w,
	const struct sw_wtensor *of, bool of_kin, uint32_t room,
	char out[SW_MISSING_TEXT])
{
	const struct sw_wtensor *t = of_kin ? sw_wtensor_next(of, NULL) : of;
	const struct sw_wgroup *g = sw_group_of(of);
	struct missing m = {0};
	struct ranks ranks = {0};
	char list[SW_MISSING_TEXT];
	uint32_t n;

	for (; t; t = of_kin ? sw_wtensor_next(of, t) : NULL) {
		if (!t->is_open)
			continue;
		m.members |= named(w, t, 0) & ~(1ULL << w->member);
		/* Lane 0 begins each round before the other lanes do. */
		for (uint32_t i = 0; !w->lane_i && 64 * i < w->n_local; i++)
			m.locals[i] |= t->kind->lagging(w, t, i, ~m.locals[i]);
	}
	list_ranks(w, g ? g->bits : NULL, &m, &ranks);
	n = sw_text_runs(list, room - FRAME_BYTES, ranks.bits, w->size);
	snprintf(out, room, "rank%s %.*s of %u", n > 1 ? "s" : "",
		(int)(room - FRAME_BYTES - 1), list, w->size);
	if (!n) /* no rank is known */
		snprintf(out, room, "a server");
	return out;
}

/* --- tensors without progress --- */

static uint64_t every_ns(const struct sw_worker *w)
{
	return sw_min64(w->params.stall_warn, w->params.stall_limit);
}

/* Does a chunk that the scheduler was given lack its result? */
static bool lacks_results(const struct sw_wtensor *t)
{
	return t->n_missing > t->own.n_local - t->n_given;
}

/* Has the tensor made no progress for @least_ns?  Each lane looks at its own
 * results; lane 0 also looks at local ranks. */
static bool is_stalled(const struct sw_worker *w, const struct sw_wtensor *t,
	uint64_t least_ns)
{
	bool lacks = lacks_results(t);

	if (!t->is_open || w->now_ns - t->progress_ns < least_ns)
		return false;
	for (uint32_t i = 0; !lacks && !w->lane_i && 64 * i < w->n_local; i++)
		lacks = t->kind->lagging(w, t, i, ~0ULL);
	return lacks;
}

/* Warn in one line, since most stalled tensors wait for the same rank; or give
 * up, which ends the stream's group, or the job for a tensor. */
static void warn(struct sw_worker *w, struct sw_wtensor *t, uint32_t n)
{
	char who[SW_MISSING_TEXT], text[SW_TEXT_MAX + SW_NAME_MAX];
	char more[40] = "";
	uint64_t still_ns = w->now_ns - t->progress_ns;

	sw_missing_text(w, t, false, sizeof(who), who);
	if (still_ns >= w->params.stall_limit) {
		struct sw_fault f = sw_fault_said(SW_ESTALL, who);

		f.kind = SW_FAULT_WAITED;
		f.one.number = (uint32_t)(still_ns / SW_S);
		if (t->kind->is_group) {
			sw_stream_propose(w, t, &f);
			return;
		}
		/* Name the tensor for members that have not declared it. */
		sw_text_add(f.text, sizeof(f.text), ", tensor %.40s", t->name);
		sw_worker_fail_for(w, &f);
		return;
	}
	if (n > 1)
		snprintf(more, sizeof(more), "; %u more tensor%s", n - 1,
			n > 2 ? "s wait" : " waits");
	snprintf(text, sizeof(text), "waiting %llu s for %s, tensor %s%s",
		(unsigned long long)(still_ns / SW_S), who, t->name, more);
	sw_lane_say(w, 0, text);
	if (!w->stalled_ns)
		w->stalled_ns = t->progress_ns;
}

/* Report once that a stall has ended after its warning. */
static void all_clear(struct sw_worker *w)
{
	char text[64];

	if (!w->stalled_ns)
		return;
	snprintf(text, sizeof(text), "continuing after waiting %llu s",
		(unsigned long long)((w->now_ns - w->stalled_ns) / SW_S));
	w->stalled_ns = 0;
	sw_lane_say(w, 0, text);
}

static void look_at(struct sw_worker *w, uint32_t i)
{
	struct sw_wtensor *t = &w->tensors[i];

	w->look.is_still |= t->kind->is_group && sw_stream_compare(w, t);
	w->look.is_slow |= t->is_open && lacks_results(t) &&
			   w->now_ns - t->progress_ns >= sw_paths_doubt_ns(w);
	/* A server that named a member before its death may have the member's
	 * push by now, so only later WAITs count. */
	sw_deaths_check_members(w, t, named(w, t, w->deaths.learned_ns));
	if (!is_stalled(w, t, every_ns(w)))
		return;
	w->look.n++;
	if (w->look.worst == SW_TENSORS ||
		t->progress_ns < w->tensors[w->look.worst].progress_ns)
		w->look.worst = i;
}

/* Conclude a sweep over all open tensors. */
static void conclude(struct sw_worker *w)
{
	struct sw_wtensor *t = &w->tensors[w->look.worst];

	sw_deaths_tick(w);
	sw_paths_check(w, w->look.is_slow);
	w->is_still = w->look.is_still;
	for (uint32_t i = 0; w->is_still && i < w->n_links; i++)
		sw_peer_wake(&w->links[i].peer, w->now_ns);
	if (w->look.worst == SW_TENSORS || !is_stalled(w, t, every_ns(w))) {
		all_clear(w);
		return;
	}
	if (w->now_ns < w->warn_at_ns &&
		w->now_ns - t->progress_ns < w->params.stall_limit)
		return;
	w->warn_at_ns = w->now_ns + every_ns(w);
	warn(w, t, w->look.n);
}

static void describe(const struct sw_worker *w, const struct sw_wtensor *t,
	struct sw_worker_waits *out)
{
	struct sw_worker_wait *x = &out->all[out->n];

	if (out->n == SW_ARRAY_SIZE(out->all)) {
		out->n_more++;
		return;
	}
	out->n++;
	*x = (struct sw_worker_wait){.is_stream = sw_group_of(t) != NULL,
		.n_missing = t->n_missing,
		.still_ns = w->now_ns - t->progress_ns};
	memcpy(x->name, t->name, sizeof(x->name));
	sw_missing_text(w, t, false, sizeof(x->who), x->who);
}

/* Sum up the streams of the group of @t. */
static void describe_group(
	const struct sw_wtensor *t, struct sw_worker_waits *out)
{
	struct sw_worker_group *g = &out->groups[out->n_groups];
	const struct sw_wtensor *u = NULL;

	if (out->n_groups == SW_LOOK_GROUPS)
		return;
	out->n_groups++;
	*g = (struct sw_worker_group){0};
	memcpy(g->name, t->name, sw_coll_group_bytes(t->name));
	while ((u = sw_wtensor_next(t, u))) {
		g->n_open += u->stream->n_open;
		g->n_done += u->stream->n_done;
		g->bytes += u->stream->done_bytes;
		g->ns += u->stream->done_ns;
	}
}

/* Describe some groups, from out->next_group on.  Returns whether it has
 * reached the end. */
static bool describe_groups(
	const struct sw_worker *w, struct sw_worker_waits *out)
{
	uint32_t n = 0;

	for (; out->next_group < SW_ARRAY_SIZE(w->groups); out->next_group++) {
		if (n++ == GROUPS_BURST)
			return false;
		if (w->groups[out->next_group])
			describe_group(
				&w->tensors[w->groups[out->next_group] - 1],
				out);
	}
	return true;
}

bool sw_worker_describe(const struct sw_worker *w, uint64_t least_ns,
	struct sw_worker_waits *out)
{
	if (!describe_groups(w, out))
		return false;
	for (uint32_t n = 0; n < LOOK_BURST; n++) {
		uint32_t i = sw_bitmap_next(&w->open, out->next);

		if (i == SW_BITMAP_NONE)
			return true;
		out->next = i + 1;
		if (is_stalled(w, &w->tensors[i], least_ns))
			describe(w, &w->tensors[i], out);
	}
	return false;
}

uint64_t sw_stall_tick(struct sw_worker *w)
{
	uint32_t i;

	if (w->left_by_ns)
		return UINT64_MAX;
	if (!w->look.next)
		w->look.worst = SW_TENSORS;
	for (uint32_t n = 0; n < LOOK_BURST; n++) {
		i = sw_bitmap_next(&w->open, w->look.next);
		if (i == SW_BITMAP_NONE) {
			conclude(w);
			memset(&w->look, 0, sizeof(w->look));
			w->look.at_ns = w->now_ns + LOOK_NS;
			break;
		}
		look_at(w, i);
		w->look.next = i + 1;
	}
	return w->look.at_ns;
}
