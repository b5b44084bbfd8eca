/* peers.c - a worker's sessions, tensors and calls, as a trace names them.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/worker/worker_int.h"

#include <string.h>

#include "engine/worker/stream.h"

bool sw_worker_peer(
	const struct sw_engine *engine, uint32_t i, struct sw_engine_peer *out)
{
	const struct sw_worker *w = (const struct sw_worker *)engine;
	const struct sw_link *l = i < w->n_links ? &w->links[i] : NULL;

	if (!l || !sw_link_has_session(l))
		return false;
	*out = (struct sw_engine_peer){.id = l->peer.id,
		.far_id = l->peer.far_id,
		.seed = l->peer.seed,
		.path = l->peer.path,
		.epoch = w->epoch,
		.member = w->member};
	memcpy(out->job, w->job, sizeof(out->job));
	return true;
}

bool sw_worker_tensor(const struct sw_engine *engine, uint32_t i, uint32_t key,
	struct sw_engine_tensor *out)
{
	const struct sw_wtensor *t =
		sw_tensor_of_key((const struct sw_worker *)engine, key);

	(void)i;
	if (!t)
		return false;
	*out = (struct sw_engine_tensor){t->name, t->stream != NULL};
	return true;
}

bool sw_worker_call(
	const struct sw_worker *w, uint32_t id, uint32_t *key, uint32_t *number)
{
	const struct sw_wtensor *t = sw_wtensor_at(w, id);

	if (!t)
		return false;
	*key = t->key;
	*number = t->round + !t->is_begun;
	if (t->stream)
		*number = t->stream->colls[(t->stream->n_newest - 1) % SW_COLLS]
				  .number;
	return true;
}
