/* stats_serve.c - serve this daemon's counters over a Unix socket.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/host/stats_serve.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine/base/error.h"
#include "pmd/host/tell.h"

struct sw_stats_serve {
	struct sw_tell tell;
	sw_stats_fill_fn fill;
	void *ctx;
};

int sw_stats_serve_open(const char *path, sw_stats_fill_fn fill, void *ctx,
	const struct sw_log *log, struct sw_stats_serve **out)
{
	struct sw_stats_serve *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return SW_ENOMEM;
	s->fill = fill;
	s->ctx = ctx;
	err = sw_tell_open(&s->tell, path, "stats socket", log);
	if (err) {
		free(s);
		return err;
	}
	*out = s;
	return 0;
}

static void put(void *out, const char *name, uint64_t value)
{
	fprintf(out, "%s %llu\n", name, (unsigned long long)value);
}

static void write_all(void *ctx, FILE *to)
{
	const struct sw_stats_serve *s = ctx;

	s->fill(s->ctx, put, to);
}

void sw_stats_serve_poll(struct sw_stats_serve *s)
{
	sw_tell_poll(&s->tell, write_all, s);
}

const char *sw_stats_serve_path(const struct sw_stats_serve *s)
{
	return s->tell.address.sun_path;
}

void sw_stats_serve_close(struct sw_stats_serve **s)
{
	if (!*s)
		return;
	sw_tell_close(&(*s)->tell);
	free(*s);
	*s = NULL;
}
