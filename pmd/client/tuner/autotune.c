/* autotune.c - a tuner for the job of a program.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <sumwire/autotune.h>

#include <stdlib.h>

#include "engine/base/error.h"
#include "pmd/client/client.h"
#include "pmd/client/tuner/tune_live.h"

#define SAMPLE_S 0.02

struct sw_autotune {
	struct sw_tune_live live;
};

int sw_autotune_open(struct sw_client *c, struct sw_autotune **out)
{
	struct sw_autotune *a = calloc(1, sizeof(*a));
	int err = a ? sw_tune_live_begin(&a->live, c, 1, SAMPLE_S)
		    : sw_client_fail(c, SW_ENOMEM, "no memory for the tuner");

	if (err)
		free(a);
	*out = err ? NULL : a;
	return err;
}

int sw_autotune_observe(struct sw_autotune *a, double iteration_s)
{
	return sw_tune_live_observe(&a->live, iteration_s);
}

void sw_autotune_close(struct sw_autotune **a)
{
	free(*a);
	*a = NULL;
}
