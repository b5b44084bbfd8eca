/* load.h - the contents of recorded traces, on one clock.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_TRACE_LOAD_H
#define SW_APPS_TRACE_LOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "apps/cli/trace_format.h"
#include "engine/loop/engine.h"

enum { SW_TRACE_DAEMONS = 256 };

/* Nine years of uptime.  Later times are invalid, because sums of them could
 * overflow. */
#define SW_TRACE_TIME_MAX (INT64_C(1) << 58)

struct sw_trace_lcore {
	struct sw_trace_event *events;
	uint32_t n_events, room;
	struct sw_trace_peer *peers; /* SW_TRACE_PEERS */
	uint32_t n_peers;
	uint32_t n_lost; /* lost because the ring was full */
};

struct sw_trace_daemon {
	struct sw_trace_hello hello;
	bool has_ended; /* everything that it recorded is here */
	uint32_t clock; /* index of its machine's clock */
	struct sw_trace_lcore lcores[SW_MAX_LCORES];
};

/* The clock of a machine, relative to that of the first machine. */
struct sw_trace_clock {
	const char *boot;
	int64_t offset_ns; /* to subtract */
	int64_t error_ns;  /* bound of its error */
	/* false: no frame connects it with the other clocks */
	bool is_known;
};

/* One stage of a chunk.  If several frames were sent, this is the one that had
 * the effect.  Times are on the common clock. */
struct sw_trace_mark {
	int64_t from_ns, to_ns;
	uint16_t daemon, lcore;             /* place of the event */
	const struct sw_trace_event *event; /* NULL: not seen */
};

enum sw_trace_stage {
	SW_STAGE_PUSH,
	SW_STAGE_FOLD,
	SW_STAGE_RESULT,
	SW_STAGE_HOLD,
	SW_STAGES
};

/* A contribution of one member to a chunk, and its result to that member. */
struct sw_trace_piece {
	uint64_t epoch;
	uint32_t seed; /* of the session */
	uint32_t key, round, chunk;
	uint16_t member;
	struct sw_trace_mark stages[SW_STAGES];
};

/* A time of which no event was recorded. */
#define SW_TRACE_UNSEEN INT64_MIN

/* A rank's call.  Times are on the common clock. */
struct sw_trace_span {
	uint64_t epoch;
	uint32_t key, number, local, cookie;
	uint16_t daemon, lcore;
	uint16_t member; /* the agent's number in its job */
	bool has_failed;
	int64_t from_ns;    /* the rank submitted it, or the agent took it */
	int64_t taken_ns;   /* the agent took it */
	int64_t started_ns; /* its first frame; SW_TRACE_UNSEEN: none */
	int64_t to_ns;      /* the agent reported its end to the rank */
	int64_t end_ns;     /* the rank has also copied the results */
};

/* A rank's copy into shared memory, or of a result out of it. */
struct sw_trace_copy {
	int64_t from_ns, to_ns;
	uint32_t bytes;
	uint16_t daemon, local;
	uint8_t kind;               /* SW_TRACE_COPY_IN or SW_TRACE_COPY_OUT */
	struct sw_trace_span *call; /* NULL: not recorded */
};

struct sw_trace_data {
	struct sw_trace_daemon *daemons;
	uint32_t n_daemons;
	struct sw_trace_name *names; /* by epoch and key */
	uint32_t n_names, names_room;
	struct sw_trace_clock *clocks;
	uint32_t n_clocks;
	struct sw_trace_piece *pieces; /* by epoch, key, round, chunk, seed */
	uint32_t n_pieces;
	/* By daemon, tensor, local rank, then begin. */
	struct sw_trace_span *spans;
	uint32_t n_spans;
	struct sw_trace_copy *copies; /* by daemon, local rank, then begin */
	uint32_t n_copies;
	int64_t zero_ns; /* begin of the first event */
};

/* sw_trace_load - add the file @f, called @path, to @t.  If the file ends
 * within a block, the blocks before it count.  Returns 0, or 1 after printing
 * that it is no trace or that memory is short. */
int sw_trace_load(struct sw_trace_data *t, FILE *f, const char *path);

/* sw_trace_sort_names - sort the names for sw_trace_named.  Part of join. */
void sw_trace_sort_names(struct sw_trace_data *t);

/* sw_trace_order - compare two sort keys, for qsort. */
static inline int sw_trace_order(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* sw_trace_first - return the index of the first of @n sorted entries that does
 * not come before @key; @n: all do.  However many are equal to @key, it takes
 * log n steps. */
uint32_t sw_trace_first(const void *key, const void *all, uint32_t n,
	size_t bytes, int (*compare)(const void *, const void *));

/* sw_trace_join_calls - find the calls of the ranks and their copies; part of
 * join, with the pieces.  Returns 0, or 1: no memory. */
int sw_trace_join_calls(struct sw_trace_data *t);

/* sw_trace_join - find pieces and calls, and align the clocks.  Returns 0, or 1
 * after printing that memory is short. */
int sw_trace_join(struct sw_trace_data *t);
void sw_trace_free(struct sw_trace_data *t);

/* sw_trace_named - return the entry of a tensor, or NULL. */
const struct sw_trace_name *sw_trace_named(
	const struct sw_trace_data *t, uint64_t epoch, uint32_t key);

/* sw_trace_time - return a daemon's time on the common clock. */
static inline int64_t sw_trace_time(const struct sw_trace_data *t,
	const struct sw_trace_daemon *d, uint64_t t_ns)
{
	return (int64_t)t_ns - t->clocks[d->clock].offset_ns;
}

/* sw_trace_print - print the contents of the trace, and the bounds of the
 * clocks. */
void sw_trace_print(const struct sw_trace_data *t, FILE *to);

/* sw_trace_chrome - write everything as Chrome's trace JSON.  Returns 0, or 1
 * after printing for @path that it could not be written. */
int sw_trace_chrome(const struct sw_trace_data *t, FILE *to, const char *path);

/* sw_trace_report - print the slowest steps, and the bottleneck of each. */
int sw_trace_report(const struct sw_trace_data *t, FILE *to);

#endif
