/* tuner.h - choose the tuning of a job: try, keep the best, detect drift.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The caller reports how long each iteration took, and the tuner chooses the
 * tuning of the next iteration.  The first iterations after a change do not
 * count, because they still carry parts of the old size.  After a search, the
 * best point stays in use until iterations become longer or shorter than noise
 * explains.  The tuner then drops its observations and searches again; the
 * point in use is the first trial.  No function has effects outside the tuner.
 */
#ifndef SW_PMD_CLIENT_TUNER_TUNER_H
#define SW_PMD_CLIENT_TUNER_TUNER_H

#include <stdbool.h>

#include "pmd/client/tuner/tune_search.h"

enum { SW_TUNER_TEXT = 200 };

struct sw_tuner_settings {
	struct sw_tune_space space;
	uint64_t seed;
	uint32_t n_trials;             /* trials of a search */
	uint32_t n_skipped, n_counted; /* iterations per trial */
	/* Drift: the medians of n_drifted iterations in a row differ by more
	 * than this share of the iteration time. */
	double drift;
	uint32_t n_drifted;
};

/* sw_tuner_settings_init - 10 trials of 1 + 3 iterations; drift: 10 % over 5.
 */
void sw_tuner_settings_init(
	struct sw_tuner_settings *s, const struct sw_tune_space *space);

struct sw_tuner {
	struct sw_tuner_settings settings;
	struct sw_tune search;
	struct sw_tune_point now; /* in use */
	bool is_searching;
	uint32_t n_searches;
	uint32_t
		n_seen; /* iterations of this trial, or since the last median */
	double times[16];
	double kept_s; /* settled: the best point's time; 0: unknown yet */
	/* The last decision, for the log; "": none. */
	char text[SW_TUNER_TEXT];
};

/* sw_tuner_init - begin a search; sets t->now to the first point. */
void sw_tuner_init(
	struct sw_tuner *t, const struct sw_tuner_settings *settings);

/* sw_tuner_observe - report that the last iteration took @iteration_s.  Returns
 * true if t->now has changed.  Ignores a time that is not positive and finite.
 */
bool sw_tuner_observe(struct sw_tuner *t, double iteration_s);

#endif
