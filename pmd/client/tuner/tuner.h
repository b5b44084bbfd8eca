/* tuner.h - tuning inside a running job: try, keep the best, notice drift.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Told how long each iteration took, it says which tuning the next one uses.
 * After a change the first iterations still carry parts of the old size, so
 * they do not count. When a search has ended, the best point stays until
 * iterations become longer or shorter than noise explains. The tuner then
 * forgets its observations, except the point in use, which is the new search's
 * first trial. All functions are pure.
 */
#ifndef SW_PMD_CLIENT_TUNER_TUNER_H
#define SW_PMD_CLIENT_TUNER_TUNER_H

#include <stdbool.h>

#include "pmd/client/tuner/tune_search.h"

enum { SW_TUNER_TEXT = 200 };

struct sw_tuner_settings {
	struct sw_tune_space space;
	uint64_t seed;
	uint32_t n_trials;             /* of a search */
	uint32_t n_skipped, n_counted; /* iterations of a trial */
	/* A share of the iteration time that is drift, when the medians of
	 * so many iterations in a row differ by more. */
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
	double kept_s; /* settled: the best point's time; 0: not known yet */
	/* The last decision, for the log; "" when there was none. */
	char text[SW_TUNER_TEXT];
};

/* sw_tuner_init - begin to search; t->now is the first point. */
void sw_tuner_init(
	struct sw_tuner *t, const struct sw_tuner_settings *settings);

/* sw_tuner_observe - the last iteration took @iteration_s.  Returns true when
 * t->now changed. A time that is not positive and finite is ignored. */
bool sw_tuner_observe(struct sw_tuner *t, double iteration_s);

#endif
