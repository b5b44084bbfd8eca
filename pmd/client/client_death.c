/* client_death.c - libsumwire: groups on which nothing can be called any more.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "pmd/client/client.h"

bool sw_client_is_death(int err)
{
	return err == SW_EMISMATCH || err == SW_EABORTED ||
	       err == SW_EREFUSED || err == SW_EPEER || err == SW_ESTALL;
}

void sw_group_die(struct sw_group *g, int death, const char *why)
{
	if (g->death)
		return;
	g->death = death;
	snprintf(g->why, sizeof(g->why), "%.*s", SW_EDGE_WHY_BYTES - 1, why);
}

void sw_group_note_death(
	struct sw_group *g, const struct sw_tensor *stream, int status)
{
	const char *why = g->client->control->whys[stream->i];

	if (sw_client_is_death(status) && why[0]) /* else the job has ended */
		sw_group_die(g, status, why);
}

int sw_group_fail(const struct sw_group *g)
{
	return g->death ? sw_client_fail(g->client, g->death, "%s", g->why) : 0;
}
