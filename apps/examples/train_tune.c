/* train_tune.c - train --tune: rank 0 tunes the job by the time of its steps.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include <sumwire/autotune.h>

#include "apps/cli/clock.h"
#include "apps/examples/train.h"

/* Report a step to the tuner.  The first step is not timed, because it touches
 * its memory for the first time. */
int sw_train_tune(struct sw_train_sum *s)
{
	uint64_t now_ns = sw_now_ns(), from_ns = s->step_ns;
	int err;

	if (sw_rank(s->client) != 0)
		return 0;
	s->step_ns = now_ns;
	err = s->tuner ? sw_autotune_observe(
				 s->tuner, 1e-9 * (double)(now_ns - from_ns))
		       : sw_autotune_open(s->client, &s->tuner);
	if (err)
		snprintf(s->text, sizeof(s->text), "--tune: %s",
			sw_last_error(s->client));
	return err;
}

void sw_train_tune_end(struct sw_train_sum *s)
{
	sw_autotune_close(&s->tuner);
}
