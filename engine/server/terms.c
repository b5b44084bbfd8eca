/* terms.c - what all members of a job say the same of.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/server/terms.h"

#include <stdio.h>

/* A number, or what has a name. */
struct term {
	const char *what;
	uint64_t said, has;
	const char *said_name, *has_name;
};

static void write_text(const struct sw_job *job, const struct sw_join *j,
	const struct term *t, char text[SW_TEXT_MAX])
{
	char said[24], has[24];

	snprintf(said, sizeof(said), "%llu", (unsigned long long)t->said);
	snprintf(has, sizeof(has), "%llu", (unsigned long long)t->has);
	snprintf(text, SW_TEXT_MAX,
		"rank %u has %s = %s, job %.32s has %s: all its nodes need the "
		"same",
		j->rank, t->what, t->said_name ? t->said_name : said, job->name,
		t->has_name ? t->has_name : has);
}

bool sw_terms_differ(const struct sw_job *job, const struct sw_join *j,
	char text[SW_TEXT_MAX])
{
	const struct sw_params *has = &job->params;
	const struct sw_policy *policy = sw_policy_at(j->policy);
	const struct sw_place_job *place = &job->shard.place;
	bool is_async = j->mode == SW_MODE_ASYNC;
	const struct term terms[] = {
		{"workers", j->n_members, job->n_members, NULL, NULL},
		{"payload (by the MTU)", j->payload, has->payload, NULL, NULL},
		{"crc", j->has_crc, has->has_crc, NULL, NULL},
		{"servers", j->n_servers, place->n_servers, NULL, NULL},
		{"number of this server", j->server_i, job->shard.server_i,
			NULL, NULL},
		{"colocated servers", j->n_colocated, place->n_colocated, NULL,
			NULL},
		{"policy", policy != has->policy, false, policy->name,
			has->policy->name},
		{"credit (0: the policy's)", j->credit_bytes, has->credit_bytes,
			NULL, NULL},
		{"mode", is_async, has->is_async, sw_mode_name(is_async),
			sw_mode_name(has->is_async)},
	};

	for (size_t i = 0; i < sizeof(terms) / sizeof(terms[0]); i++)
		if (terms[i].said != terms[i].has) {
			write_text(job, j, &terms[i], text);
			return true;
		}
	return false;
}
