/* status.c - follow the job's state, as the coordinator reports it.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "engine/base/error.h"
#include "engine/worker/faults.h"
#include "engine/worker/lanes.h"
#include "engine/worker/probe.h"
#include "engine/worker/tuning.h"

/* Take the ranks of all members, which have joined.  Returns false if they do
 * not add up to the job's size, which ends the worker: ranks index sets. */
static bool take_members(
	struct sw_worker *w, struct sw_link *l, const struct sw_status *st)
{
	uint32_t size = 0;

	for (uint32_t m = 0; m < w->n_members; m++) {
		w->firsts[m] = (uint16_t)size;
		size += st->n_local[m];
	}
	w->firsts[w->n_members] = (uint16_t)size;
	if (size != st->size || w->firsts[w->member] != st->first ||
		st->n_local[w->member] != w->n_local) {
		sw_worker_fail(w, SW_EPROTO, SW_KEY_NONE,
			"server %.64s: %u ranks, ours from %u on, are not "
			"those of %u members with %u here",
			l->name, st->size, st->first, w->n_members, w->n_local);
		return false;
	}
	w->size = st->size;
	w->first = st->first;
	return true;
}

/* Take the job's payload from the coordinator. */
static void take_payload(
	struct sw_worker *w, struct sw_link *l, const struct sw_status *st)
{
	if (st->state != SW_JOB_RUNNING || w->payload_bytes)
		return;
	if (sw_payload_is_good(st->payload) &&
		st->payload <= w->params.payload) {
		sw_worker_use_payload(w, st->payload);
		sw_lanes_command(w, SW_LANE_SETTLE);
		return;
	}
	sw_worker_fail(w, SW_EPROTO, SW_KEY_NONE,
		"server %.64s: the job has a payload of %u, and this node "
		"carries up to %u",
		l->name, st->payload, w->params.payload);
}

void sw_link_on_status(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload)
{
	struct sw_status st;

	if (l->server_i || l->state != SW_LINK_OPEN)
		return;
	memcpy(&st, payload, sizeof(st));
	if (!sw_fault_read(&st.why, payload + offsetof(struct sw_status, why)))
		st.why.kind = SW_FAULT_SAID;
	st.why.err = (int16_t)(st.state == SW_JOB_FAILED
				       ? sw_server_error(st.why.err)
				       : SW_EPEER);
	if (st.state == SW_JOB_FAILED) {
		sw_worker_fail_for(w, &st.why);
		return;
	}
	sw_tuning_received(w, &st);
	if (w->size) { /* other lanes may read the other fields: keep them */
		sw_deaths_learn(w, &st);
		take_payload(w, l, &st);
		w->is_unsettled = true;
		return;
	}
	w->joined = st.joined;
	w->epoch = st.epoch;
	memcpy(w->known, st.why.text, sizeof(w->known));
	if (st.state == SW_JOB_FORMING || !st.size || !take_members(w, l, &st))
		return;
	sw_deaths_learn(w, &st); /* a member may be gone already */
	sw_lanes_command(w, SW_LANE_START);
	take_payload(w, l, &st);
	sw_link_probe(w, l);
	w->is_unsettled = true; /* the other links open */
}
