/* tuner.c - choose the tuning of a job: try, keep the best, detect drift.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/client/tuner/tuner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMES = sizeof(((struct sw_tuner *)0)->times) / sizeof(double) };

#define MIB (1024.0 * 1024)

void sw_tuner_settings_init(
	struct sw_tuner_settings *s, const struct sw_tune_space *space)
{
	*s = (struct sw_tuner_settings){.space = *space,
		.seed = 1,
		.n_trials = 10,
		.n_skipped = 1,
		.n_counted = 3,
		.drift = 0.1,
		.n_drifted = 5};
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Return the median of the first @n times, which one slow iteration does not
 * affect. */
static double median(const struct sw_tuner *t, uint32_t n)
{
	double sorted[TIMES];

	memcpy(sorted, t->times, n * sizeof(sorted[0]));
	qsort(sorted, n, sizeof(sorted[0]), compare);
	return sorted[n / 2];
}

static void begin(struct sw_tuner *t)
{
	t->is_searching = true;
	t->n_searches++;
	t->n_seen = 0;
	t->kept_s = 0;
	sw_tune_init(&t->search, SW_TUNE_BO, &t->settings.space,
		t->settings.seed + t->n_searches);
}

void sw_tuner_init(struct sw_tuner *t, const struct sw_tuner_settings *settings)
{
	*t = (struct sw_tuner){.settings = *settings};
	begin(t);
	t->now = sw_tune_ask(&t->search);
}

/* Handle the end of a trial that took @s. */
static void next_trial(struct sw_tuner *t, double s)
{
	struct sw_tune_point tried = t->now;
	double best_s;

	if (sw_tune_tell(&t->search, s))
		return;
	t->now = sw_tune_best(&t->search, &best_s);
	if (t->search.n < t->settings.n_trials)
		t->now = sw_tune_ask(&t->search);
	else
		t->is_searching = false;
	snprintf(t->text, sizeof(t->text),
		"search %u, trial %u: partition %.3g MiB, credit %.3g MiB: "
		"%.3f ms, best %.3f; %s partition %.3g MiB, credit %.3g MiB",
		t->n_searches, t->search.n, (double)tried.partition_bytes / MIB,
		(double)tried.credit_bytes / MIB, 1e3 * s, 1e3 * best_s,
		t->is_searching ? "next" : "kept",
		(double)t->now.partition_bytes / MIB,
		(double)t->now.credit_bytes / MIB);
}

static bool observe_searching(struct sw_tuner *t, double s)
{
	const struct sw_tuner_settings *set = &t->settings;
	uint32_t i = t->n_seen++;

	if (i < set->n_skipped)
		return false;
	t->times[i - set->n_skipped] = s;
	if (t->n_seen < set->n_skipped + set->n_counted)
		return false;
	t->n_seen = 0;
	next_trial(t, median(t, set->n_counted));
	return true;
}

/* Store the first median with the best point as its time; compare later medians
 * with it. */
static bool observe_settled(struct sw_tuner *t, double s)
{
	const struct sw_tuner_settings *set = &t->settings;
	double now_s, change;

	t->times[t->n_seen++] = s;
	if (t->n_seen < set->n_drifted)
		return false;
	t->n_seen = 0;
	now_s = median(t, set->n_drifted);
	if (t->kept_s == 0)
		t->kept_s = now_s;
	change = now_s / t->kept_s - 1;
	if (fabs(change) <= set->drift)
		return false;
	snprintf(t->text, sizeof(t->text),
		"iterations take %.3f ms, %+.0f %%: search again", 1e3 * now_s,
		100 * change);
	/* Try the tuning in use first, so that the search keeps no worse point.
	 */
	begin(t);
	sw_tune_ask_at(&t->search, t->now);
	return false;
}

bool sw_tuner_observe(struct sw_tuner *t, double iteration_s)
{
	t->text[0] = '\0';
	if (!(iteration_s > 0) || !isfinite(iteration_s))
		return false;
	return t->is_searching ? observe_searching(t, iteration_s)
			       : observe_settled(t, iteration_s);
}
