/* copies.c - equal jobs, each on its own nodes ([job] copies).
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/sim/copies.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/bytes.h"

/* Put the copy's number before each name of a list.  Returns false if the list
 * becomes too long. */
static bool number_names(char list[SW_SIM_TEXT], uint32_t number)
{
	char old[SW_SIM_TEXT];
	size_t at = 0;

	memcpy(old, list, sizeof(old));
	for (const char *s = old; *s && at < SW_SIM_TEXT;) {
		size_t n;

		s += strspn(s, " \t,");
		n = strcspn(s, ",");
		at += (size_t)snprintf(list + at, SW_SIM_TEXT - at, "%s%u.%.*s",
			at ? "," : "", number, (int)n, s);
		s += n;
	}
	return at < SW_SIM_TEXT;
}

static bool add_copy(struct sw_sim_desc *d, uint32_t i, uint32_t number)
{
	struct sw_sim_desc_job *j = &d->jobs[d->n_jobs];

	if (d->n_jobs == SW_SIM_JOBS)
		return false;
	d->n_jobs++;
	*j = d->jobs[i];
	j->copy_of = i + 1;
	snprintf(j->label, sizeof(j->label), "%.20s.%u", d->jobs[i].label,
		number);
	return number_names(j->agents, number) &&
	       number_names(j->servers, number);
}

const struct sw_sim_desc_job *sw_sim_copies_make(struct sw_sim_desc *d)
{
	uint32_t n = d->n_jobs;

	for (uint32_t i = 0; i < n; i++)
		for (uint32_t c = 2; c <= d->jobs[i].n_copies; c++)
			if (!add_copy(d, i, c))
				return &d->jobs[i];
	return NULL;
}

static void add(struct sw_sim_job_result *to, const struct sw_sim_job_result *r)
{
	to->goodput_bit_s += r->goodput_bit_s;
	for (uint32_t q = 0; q < SW_ARRAY_SIZE(to->round_ns); q++)
		to->round_ns[q] += r->round_ns[q];
	for (uint32_t q = 0; q < SW_ARRAY_SIZE(to->urgent_ns); q++)
		to->urgent_ns[q] += r->urgent_ns[q];
	to->n_rounds = (uint32_t)sw_min64(to->n_rounds, r->n_rounds);
	to->n_again += r->n_again;
	to->n_timeouts += r->n_timeouts;
	to->n_wrong += r->n_wrong;
}

static void divide(struct sw_sim_job_result *r, uint32_t n)
{
	r->goodput_bit_s /= n;
	for (uint32_t q = 0; q < SW_ARRAY_SIZE(r->round_ns); q++)
		r->round_ns[q] /= n;
	for (uint32_t q = 0; q < SW_ARRAY_SIZE(r->urgent_ns); q++)
		r->urgent_ns[q] /= n;
}

void sw_sim_copies_fold(const struct sw_sim_desc *d, struct sw_sim_result *r)
{
	r->n_jobs = 0;
	for (uint32_t i = 0; i < d->n_jobs; i++)
		if (d->jobs[i].copy_of)
			add(&r->jobs[d->jobs[i].copy_of - 1], &r->jobs[i]);
		else
			r->n_jobs++;
	for (uint32_t i = 0; i < r->n_jobs; i++)
		divide(&r->jobs[i], d->jobs[i].n_copies);
}
