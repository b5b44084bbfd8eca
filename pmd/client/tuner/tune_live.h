/* tune_live.h - tune a running job: set the tuning of all ranks.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Rank 0 has a tuner and reports the time of each iteration to it.  The other
 * ranks need none, because sw_tune sets the tuning of the whole job.  An
 * iteration counts for a point only after the point has come into use. */
#ifndef SW_PMD_CLIENT_TUNER_TUNE_LIVE_H
#define SW_PMD_CLIENT_TUNER_TUNE_LIVE_H

#include "pmd/client/tuner/tuner.h"
#include <sumwire/sumwire.h>

struct sw_tune_live {
	struct sw_tuner tuner;
	struct sw_client *client;
	uint32_t number; /* number in use when the last tuning was requested */
	bool is_waiting; /* the requested tuning is not in use yet */
	uint64_t n;      /* iterations reported */
	/* Iterations shorter than sample_s are summed up first. */
	double sample_s, sum_s;
	uint32_t n_summed;
};

/* sw_tune_live_begin - begin a search for the job of @client, which is borrowed
 * while @l is used: partitions of 8 KiB to 4 MiB, credits of 16 KiB to 64 MiB.
 * Writes each decision to the client's log.  May be called again.
 * @sample_s  the shortest time that gives a useful measurement
 * Errors: as for sw_tune, with the error text in sw_last_error. */
int sw_tune_live_begin(struct sw_tune_live *l, struct sw_client *client,
	uint64_t seed, double sample_s);

/* sw_tune_live_observe - report that an iteration of rank 0 took @iteration_s.
 * Errors: as above. */
int sw_tune_live_observe(struct sw_tune_live *l, double iteration_s);

/* sw_tune_live_set - set the tuning of all ranks, overriding the tuner's
 * choice.  Errors: as above. */
int sw_tune_live_set(struct sw_tune_live *l, struct sw_tune_point p);

/* sw_tune_live_is_set - return whether the last requested tuning is in use
 * here. */
bool sw_tune_live_is_set(struct sw_tune_live *l);

#endif
