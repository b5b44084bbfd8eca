/* client_death.c - libsumwire: groups on which nothing can be called any more.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "pmd/client/client_group.h"

bool sw_client_is_death(int err)
{
	return err == SW_EMISMATCH || err == SW_EABORTED ||
	       err == SW_EREFUSED || err == SW_EPEER || err == SW_ESTALL;
}

/* The number at the end of "... (collective 5)"; 0: there is none. */
static uint32_t number_in(const char *why)
{
	const char *at = strrchr(why, '(');
	uint32_t number;

	return at && sscanf(at, "(collective %u)", &number) == 1 ? number : 0;
}

/* Frames have a tag of counts and roots, not their values.  So each rank's
 * sentence has those of its own call. */
static void add_call(struct sw_group *g, const struct sw_coll_args *a)
{
	char root[16] = "";
	size_t len = strlen(g->why);

	if (a->kind == SW_BCAST || a->kind == SW_REDUCE)
		snprintf(root, sizeof(root), ", root %u", a->root);
	snprintf(g->why + len, sizeof(g->why) - len,
		"; here: %s of %llu x %s%s", sw_coll_name(a->kind),
		(unsigned long long)a->count, sw_dtype_name(a->dtype), root);
}

static void add_own_call(struct sw_group *g, uint32_t number)
{
	const struct sw_call *calls = g->client->calls.calls;

	for (uint32_t i = 0; i < SW_EDGE_COLLS; i++)
		if (calls[i].state != SW_TENSOR_IDLE && calls[i].group == g &&
			(uint32_t)calls[i].number == number &&
			calls[i].args.kind != SW_BARRIER)
			add_call(g, &calls[i].args);
}

void sw_group_die(struct sw_group *g, int death, const char *why)
{
	if (g->death)
		return;
	g->death = death;
	snprintf(g->why, sizeof(g->why), "%.*s", SW_EDGE_WHY_BYTES - 1, why);
	if (death == SW_EMISMATCH)
		add_own_call(g, number_in(g->why));
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
	if (g->is_released && !g->death)
		return sw_client_fail(g->client, SW_EABORTED,
			"group '%s' was released", g->name);
	return g->death ? sw_client_fail(g->client, g->death, "%s", g->why) : 0;
}
