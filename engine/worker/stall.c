/* stall.c - a worker says which tensors stand still, and for whom they wait.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/worker/worker_int.h"

/* "local rank 2", "ranks 1, 3" of a set of members, or "a server" when nobody
 * was named. */
static void name_missing(const struct sw_worker *w, const struct sw_wtensor *t,
	char *out, size_t size)
{
	uint64_t local = sw_round_lacks(w, t);
	uint64_t set = local ? local : t->missing;
	char ranks[SW_RANKS_TEXT];

	snprintf(out, size, "%s%s", local ? "local " : "",
		set ? sw_ranks_text(set, ranks) : "a server");
}

/* The tensor that has stood still the longest, for @ns at least, or NULL; *n:
 * how many have.  What other lanes wait for they see themselves. */
static const struct sw_wtensor *find_stalled(
	const struct sw_worker *w, uint64_t ns, uint32_t *n)
{
	const struct sw_wtensor *worst = NULL;

	*n = 0;
	for (uint32_t i = 0; i < w->n_tensors; i++) {
		const struct sw_wtensor *t = &w->tensors[i];

		if (!t->is_open || w->now_ns - t->progress_ns < ns ||
			(!t->n_missing && !sw_round_lacks(w, t)))
			continue;
		++*n;
		if (!worst || t->progress_ns < worst->progress_ns)
			worst = t;
	}
	return worst;
}

/* One line for all, since they mostly wait for the same one. */
static void warn(struct sw_worker *w, const struct sw_wtensor *t, uint32_t n)
{
	char who[64], text[SW_TEXT_MAX + SW_NAME_MAX], more[40] = "";
	uint64_t still_ns = w->now_ns - t->progress_ns;

	name_missing(w, t, who, sizeof(who));
	if (still_ns >= w->params.stall_limit) {
		sw_worker_fail(w, SW_ESTALL, t->key,
			"waited %llu s for %s, tensor %.64s",
			(unsigned long long)(still_ns / SW_S), who, t->name);
		return;
	}
	if (n > 1)
		snprintf(more, sizeof(more), "; %u more tensor%s", n - 1,
			n > 2 ? "s wait" : " waits");
	snprintf(text, sizeof(text), "waiting %llu s for %s, tensor %s%s",
		(unsigned long long)(still_ns / SW_S), who, t->name, more);
	sw_log(w->env->log, SW_LOG_WARN, "%s", text);
	sw_lane_say(w, 0, text);
}

void sw_stall_tick(struct sw_worker *w)
{
	uint64_t every = sw_min64(w->params.stall_warn, w->params.stall_limit);
	uint32_t n;
	const struct sw_wtensor *t = find_stalled(w, every, &n);

	if (!t || (w->now_ns < w->warn_at_ns &&
			  w->now_ns - t->progress_ns < w->params.stall_limit))
		return;
	w->warn_at_ns = w->now_ns + every;
	warn(w, t, n);
}
