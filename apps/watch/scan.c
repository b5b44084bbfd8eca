/* scan.c - the jobs and counters of all daemons, read at the same time.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/watch/scan.h"

#include <stdlib.h>
#include <string.h>

#include "apps/cli/clock.h"
#include "engine/base/error.h"
#include "pmd/host/stats_read.h"

/* More than a daemon has with 64 lcores and 16 ports.  A foreign socket may
 * send anything. */
enum { VALUES_MAX = 16384 };

static void each(void *ctx, const char *name, uint64_t value)
{
	struct sw_scan_daemon *s = ctx;

	if (s->n == s->room) {
		uint32_t room = s->room ? 2 * s->room : 256;
		void *more =
			room > VALUES_MAX
				? NULL
				: realloc(s->values, room * sizeof(*s->values));

		if (!more)
			return;
		s->values = more;
		s->room = room;
	}
	snprintf(s->values[s->n].name, SW_COUNTER_NAME, "%s", name);
	s->values[s->n++].value = value;
}

/* Drop the daemons that @name does not mean; NULL means all. */
static void choose(const char *name, struct sw_found_daemons *found)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < found->n && name; i++) {
		struct sw_found_daemon one = found->all[i];
		struct sw_found_daemons alone = {.n = 1, .all = &one};
		uint32_t at;

		if (sw_daemons_match(&alone, name, &at))
			found->all[kept++] = one;
		else
			free(one.text);
	}
	if (name)
		found->n = kept;
}

int sw_scan_daemons(const char *name, struct sw_scan *out)
{
	*out = (struct sw_scan){0};
	if (sw_daemons_find(&out->found))
		return SW_ENOMEM;
	choose(name, &out->found);
	out->all = calloc(out->found.n + 1, sizeof(*out->all));
	if (!out->all)
		return SW_ENOMEM;
	for (uint32_t i = 0; i < out->found.n; i++) {
		struct sw_scan_daemon *s = &out->all[i];

		s->d = &out->found.all[i];
		/* A silent daemon would not answer now either.  Ignore a
		 * truncated answer. */
		if (s->d->found == SW_FOUND && s->d->stats &&
			sw_stats_read(s->d->stats, each, s))
			s->n = 0;
		s->at_ns = sw_now_ns();
	}
	return 0;
}

void sw_scan_free(struct sw_scan *scan)
{
	for (uint32_t i = 0; i < scan->found.n && scan->all; i++)
		free(scan->all[i].values);
	free(scan->all);
	sw_daemons_free(&scan->found);
	*scan = (struct sw_scan){0};
}

uint64_t sw_scan_value(
	const struct sw_scan_daemon *d, const char *name, uint64_t absent)
{
	for (uint32_t i = 0; i < d->n; i++)
		if (!strcmp(d->values[i].name, name))
			return d->values[i].value;
	return absent;
}
