/* tune_live.h - the tuner in a running job: it sets the tuning of all ranks.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Rank 0 has a tuner and tells it the time of each iteration; the other ranks
 * need nothing, since its decisions hold for the job (sw_tune).  An iteration
 * counts for a point when the point is in use; earlier iterations do not.
 */
#ifndef SW_PMD_CLIENT_TUNER_TUNE_LIVE_H
#define SW_PMD_CLIENT_TUNER_TUNE_LIVE_H

#include "pmd/client/tuner/tuner.h"
#include <sumwire/sumwire.h>

struct sw_tune_live {
	struct sw_tuner tuner;
	struct sw_client *client;
	uint32_t number; /* number in use when another tuning was requested */
	bool is_waiting; /* the requested tuning is not in use yet */
	uint64_t n;      /* iterations told */
	/* Iterations shorter than a sample are told together. */
	double sample_s, sum_s;
	uint32_t n_summed;
};

/* sw_tune_live_begin - begin to search over @client, borrowed until the end:
 * partitions of 8 KiB to 4 MiB, credits of 16 KiB to 64 MiB.
 * Every decision is a line of its log.  May be called again.
 * @sample_s  the shortest time that is worth a measurement
 * Errors: as for sw_tune, with the error text in sw_last_error. */
int sw_tune_live_begin(struct sw_tune_live *l, struct sw_client *client,
	uint64_t seed, double sample_s);

/* sw_tune_live_observe - an iteration of rank 0 took @iteration_s.  Errors: as
 * above. */
int sw_tune_live_observe(struct sw_tune_live *l, double iteration_s);

/* sw_tune_live_set - set the tuning of all ranks, against the tuner's choice.
 * Errors: as above. */
int sw_tune_live_set(struct sw_tune_live *l, struct sw_tune_point p);

/* sw_tune_live_is_set - is the tuning requested last in use here? */
bool sw_tune_live_is_set(struct sw_tune_live *l);

#endif
