/* guests.c - the shares and secrets of jobs that servers know in advance.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/sim/guests.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/random.h"

static bool add_secret(
	struct sw_sim_guests *g, const struct sw_sim_desc *d, uint32_t job)
{
	struct sw_keyring_entry *e = &g->entries[g->keyring.n];
	uint64_t rng = d->run.seed ^ (uint64_t)job << 40;
	uint8_t bytes[SW_SECRET_BYTES];

	for (uint32_t i = 0; i < SW_SECRET_BYTES; i++)
		bytes[i] = (uint8_t)sw_random_next(&rng);
	snprintf(e->job, sizeof(e->job), "%s", d->jobs[job].label);
	g->secrets[job] = &e->secret;
	g->keyring.n++;
	return sw_secret_init(&e->secret, bytes);
}

int sw_sim_guests_init(struct sw_sim_guests *g, const struct sw_sim_desc *d)
{
	memset(g, 0, sizeof(*g));
	g->keyring.entries = g->entries;
	g->n = d->n_jobs;
	for (uint32_t i = 0; i < g->n; i++) {
		const struct sw_sim_desc_job *j = &d->jobs[i];

		g->shares[i] = (struct sw_share){.job = j->label,
			.weight = j->share.weight,
			.quota_bytes = j->share.quota_bytes};
		if (j->is_keyed && !add_secret(g, d, i))
			return SW_ENOMEM;
	}
	return 0;
}

int sw_sim_guests_tell(const struct sw_sim_guests *g, struct sw_server *server)
{
	if (g->keyring.n)
		sw_server_set_keys(server, &g->keyring);
	return sw_server_share(server, g->shares, g->n);
}

const struct sw_secret *sw_sim_guests_secret(
	const struct sw_sim_guests *g, uint32_t job)
{
	return g->secrets[job];
}
