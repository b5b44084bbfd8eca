/* ends.c - how a call of the pipeline ends.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "engine/base/error.h"
#include "pmd/cuda/pipeline.h"

void sw_pipeline_end(struct sw_pipeline *l, struct sw_pipeline_tensor *t)
{
	t->is_open = false;
	t->is_known = !t->status;
	atomic_store_explicit(t->word, t->n_calls, memory_order_release);
	pthread_cond_broadcast(&l->changed);
}

void sw_pipeline_note(struct sw_pipeline_tensor *t, int err, const char *why)
{
	if (!err || t->status)
		return;
	t->status = err;
	snprintf(t->why, sizeof(t->why), "%s", why);
}

void sw_pipeline_note_edited(
	const struct sw_pipeline *l, struct sw_pipeline_tensor *t)
{
	char why[SW_PIPELINE_WHY];

	snprintf(why, sizeof(why),
		"%s: tensor '%s' was written or freed while it was summed; its "
		"caller has to wait until the call has ended",
		l->p.where, t->name);
	sw_pipeline_note(t, SW_ECORRUPT, why);
}

void sw_pipeline_done(struct sw_pipeline *l, struct sw_pipeline_tensor *t)
{
	if (--t->n_open)
		return;
	if (sw_pipeline_is_result_edited(l, t))
		sw_pipeline_note_edited(l, t);
	pthread_mutex_lock(&l->lock);
	sw_pipeline_end(l, t);
	pthread_mutex_unlock(&l->lock);
}
