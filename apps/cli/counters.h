/* counters.h - the meaning of each counter of a daemon.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_CLI_COUNTERS_H
#define SW_APPS_CLI_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "apps/cli/json.h"

enum sw_counter_kind {
	SW_COUNTER_COUNTER, /* grows since the daemon's start */
	SW_COUNTER_MAXIMUM, /* the largest so far */
	SW_COUNTER_GAUGE,   /* the current value */
	SW_COUNTER_TIMES,   /* a histogram: NAME.bucket0, ..., NAME.sum */
};

enum { SW_COUNTER_NAME = 96 };

/* A row of engine/base/stats.def, pmd/dpdk/counters.def or counters.def. */
struct sw_counter {
	char name[SW_COUNTER_NAME]; /* "port.P.rx_frames" */
	enum sw_counter_kind kind;
	const char *unit, *text;
	bool is_engine; /* an agent that sums also has it as "server.NAME" */
};

/* sw_counter_at - write row @i of all tables to @out.  Returns false if there
 * is no row @i. */
bool sw_counter_at(uint32_t i, struct sw_counter *out);

/* sw_counter_find - write the row of counter @name to @out.  @name is written
 * as a daemon prints it ("port.lan.rx_frames") or as in the row.  Returns false
 * if no row matches. */
bool sw_counter_find(const char *name, struct sw_counter *out);

/* sw_counter_kind - return the name of a kind. */
const char *sw_counter_kind(enum sw_counter_kind kind);

/* sw_counter_explain - print the row of @name; NULL: all rows.  Returns 0, or 1
 * after printing that the counter is unknown. */
int sw_counter_explain(const char *name, bool is_json);

/* sw_counter_reference - print all rows as a Markdown page. */
void sw_counter_reference(FILE *to);

#endif
