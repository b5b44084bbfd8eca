/* log_lines.c - log lines of an lcore, which the control thread writes.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/node/log_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/base/spsc.h"

/* sizes of the queue and of a line of sw_log */
enum { LINES = 256, TEXT = 512 };

struct line {
	enum sw_log_level level;
	uint32_t n_lost; /* lines dropped before it */
	char text[TEXT];
};

struct sw_lines {
	_Alignas(64) struct sw_spsc in; /* lcore */
	uint32_t n_lost;
	struct sw_log log;
	_Alignas(64) struct sw_spsc out; /* control */
	const struct sw_log *to;
	_Alignas(64) unsigned char ring[SW_SPSC_BYTES(
		LINES, sizeof(struct line))];
};

static void put(void *ctx, enum sw_log_level level, const char *text)
{
	struct sw_lines *l = ctx;
	struct line line = {.level = level, .n_lost = l->n_lost};

	snprintf(line.text, sizeof(line.text), "%s", text);
	l->n_lost = sw_spsc_put(&l->in, &line, 1) == 1 ? 0 : l->n_lost + 1;
}

int sw_lines_open(struct sw_lines **out, const struct sw_log *to)
{
	struct sw_lines *l = aligned_alloc(64, sizeof(*l));

	*out = l;
	if (!l)
		return SW_ENOMEM;
	memset(l, 0, sizeof(*l));
	l->log = (struct sw_log){.line = put, .ctx = l, .level = to->level};
	l->to = to;
	sw_spsc_init(&l->in, l->ring, LINES, sizeof(struct line));
	sw_spsc_init(&l->out, l->ring, LINES, sizeof(struct line));
	return 0;
}

const struct sw_log *sw_lines_log(const struct sw_lines *l)
{
	return &l->log;
}

void sw_lines_set_level(struct sw_lines *l, enum sw_log_level level)
{
	sw_log_set_level(&l->log, level);
}

void sw_lines_write(struct sw_lines *l)
{
	struct line line;

	while (sw_spsc_take(&l->out, &line, 1) == 1) {
		if (line.n_lost)
			sw_log(l->to, SW_LOG_WARN,
				"%u log lines of a polling core were dropped: "
				"the control thread did not write them in time",
				line.n_lost);
		l->to->line(l->to->ctx, line.level, line.text);
	}
}

void sw_lines_close(struct sw_lines *l)
{
	if (l)
		sw_lines_write(l);
	free(l);
}
