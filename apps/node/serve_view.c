/* serve_view.c - the jobs of a service, from the views of its lcores.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/node/serve_view.h"

#include <string.h>

#include "engine/base/bytes.h"

/* Add to a copy: no lcore counts in it, so no sw_count is needed. */
static void add(uint64_t *to, uint64_t n)
{
	*to += n;
}

static void add_path(struct sw_peer_view *to, const struct sw_peer_view *p)
{
	if (p->least_ns && (!to->least_ns || p->least_ns < to->least_ns))
		to->least_ns = p->least_ns;
	to->srtt_ns = sw_max64(to->srtt_ns, p->srtt_ns);
	add(&to->window_bytes, p->window_bytes);
	add(&to->granted_bytes, p->granted_bytes);
	add(&to->sent, p->sent);
	add(&to->lost, p->lost);
	add(&to->queued, p->queued);
	add(&to->timeouts, p->timeouts);
	add(&to->numbered, p->numbered);
	add(&to->missed, p->missed);
	to->lost_part = (uint32_t)sw_max64(to->lost_part, p->lost_part);
	to->missed_part = (uint32_t)sw_max64(to->missed_part, p->missed_part);
	to->marked_part = (uint32_t)sw_max64(to->marked_part, p->marked_part);
	for (uint32_t i = 0; i < SW_N_STALLS; i++)
		add(&to->stalled_ns[i], p->stalled_ns[i]);
}

static void add_member(
	struct sw_server_member *to, const struct sw_server_member *m)
{
	to->is_here = to->is_here && m->is_here;
	to->has_left = to->has_left || m->has_left;
	for (uint32_t i = 0; i < SW_HISTOGRAM_BUCKETS; i++)
		add(&to->late.n[i], m->late.n[i]);
	add(&to->late.sum_ns, m->late.sum_ns);
	add(&to->push_bytes, m->push_bytes);
	add(&to->result_bytes, m->result_bytes);
	add_path(&to->path, &m->path);
}

static void add_job(struct sw_server_job *to, const struct sw_server_job *j)
{
	if (j->n_here < to->n_here)
		to->n_here = j->n_here;
	if (j->n_ranks < to->n_ranks)
		to->n_ranks = j->n_ranks;
	if (j->idle_ns < to->idle_ns)
		to->idle_ns = j->idle_ns;
	to->missing |= j->missing;
	add(&to->open_chunks, j->open_chunks);
	add(&to->open_slots, j->open_slots);
	add(&to->done_chunks, j->done_chunks);
	for (uint32_t m = 0; m < to->n_members; m++)
		add_member(&to->members[m], &j->members[m]);
}

static void add_wait(
	struct sw_server_view *to, uint32_t job, const struct sw_server_wait *w)
{
	for (uint32_t i = 0; i < to->n_waits; i++) {
		struct sw_server_wait *x = &to->waits[i];

		if (x->job != job || x->is_stream != w->is_stream ||
			x->number != w->number || strcmp(x->name, w->name))
			continue;
		x->n_open += w->n_open;
		x->lacks |= w->lacks;
		x->still_ns = sw_max64(x->still_ns, w->still_ns);
		return;
	}
	if (to->n_waits == SW_LOOK_WAITS) {
		to->n_more++;
		return;
	}
	to->waits[to->n_waits] = *w;
	to->waits[to->n_waits++].job = job;
}

/* Return the index of a job, or n_jobs. */
static uint32_t job_at(const struct sw_server_view *v, const char *name)
{
	uint32_t i = 0;

	while (i < v->n_jobs && strcmp(v->jobs[i].name, name))
		i++;
	return i;
}

void sw_serve_view_add(
	struct sw_server_view *to, const struct sw_server_view *part)
{
	for (uint32_t i = 0; i < part->n_jobs; i++) {
		const struct sw_server_job *j = &part->jobs[i];
		uint32_t at = job_at(to, j->name);

		if (at < to->n_jobs)
			add_job(&to->jobs[at], j);
	}
	for (uint32_t i = 0; i < part->n_waits; i++) {
		const struct sw_server_wait *w = &part->waits[i];
		uint32_t at = job_at(to, part->jobs[w->job].name);

		if (at < to->n_jobs)
			add_wait(to, at, w);
	}
	to->n_more += part->n_more;
}
