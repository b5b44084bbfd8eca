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

/* Nine years of uptime: later times are no times, and sums of them may not
 * overflow. */
#define SW_TRACE_TIME_MAX (INT64_C(1) << 58)

struct sw_trace_lcore {
	struct sw_trace_event *events;
	uint32_t n_events, room;
	struct sw_trace_peer *peers; /* SW_TRACE_PEERS */
	uint32_t n_peers;
	uint32_t n_lost; /* events that the ring did not take */
};

struct sw_trace_daemon {
	struct sw_trace_hello hello;
	bool has_ended; /* all that it recorded is here */
	uint32_t clock; /* index of its machine's clock */
	struct sw_trace_lcore lcores[SW_MAX_LCORES];
};

/* The clock of a machine, against that of the first one. */
struct sw_trace_clock {
	const char *boot;
	int64_t offset_ns; /* to subtract */
	int64_t error_ns;  /* bound of its error */
	bool is_known;     /* false: no frame has linked it with the others */
};

/* One stage of a chunk: the frame that counted, if there were several.  Times
 * are on the common clock. */
struct sw_trace_mark {
	int64_t from_ns, to_ns;
	uint16_t daemon, lcore;             /* where */
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

/* A time that was not seen. */
#define SW_TRACE_UNSEEN INT64_MIN

/* A rank's call.  Times are on the common clock. */
struct sw_trace_span {
	uint64_t epoch;
	uint32_t key, number, local, cookie;
	uint16_t daemon, lcore;
	uint16_t member; /* the agent's number in its job */
	bool has_failed;
	int64_t from_ns;    /* the rank handed it over, or the agent took it */
	int64_t taken_ns;   /* the agent took it */
	int64_t started_ns; /* its first frame; SW_TRACE_UNSEEN: none */
	int64_t to_ns;      /* the agent told the rank of its end */
	int64_t end_ns;     /* the rank has copied its results as well */
};

/* A rank's copy into shared memory, or of a result out of it. */
struct sw_trace_copy {
	int64_t from_ns, to_ns;
	uint32_t bytes;
	uint16_t daemon, local;
	uint8_t kind;               /* SW_TRACE_COPY_IN or SW_TRACE_COPY_OUT */
	struct sw_trace_span *call; /* NULL: not seen */
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

/* sw_trace_load - add the file @f, called @path, to @t.  A file that ends in a
 * block is taken as far as it goes.  Returns 0; 1: it is no trace or there is
 * no memory, which was printed. */
int sw_trace_load(struct sw_trace_data *t, FILE *f, const char *path);

/* sw_trace_sort_names - put the names into the order in which sw_trace_named
 * looks for them; part of join. */
void sw_trace_sort_names(struct sw_trace_data *t);

/* sw_trace_order - compare two keys of a sort, as qsort wants it. */
static inline int sw_trace_order(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* sw_trace_join_calls - find the calls of the ranks and their copies; part of
 * join, with the pieces.  Returns 0, or 1: no memory. */
int sw_trace_join_calls(struct sw_trace_data *t);

/* sw_trace_join - find pieces and calls, and align the clocks.  Returns 0, or
 * 1: no memory, which was printed. */
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

/* sw_trace_print - print what was recorded, and the bounds of the clocks. */
void sw_trace_print(const struct sw_trace_data *t, FILE *to);

/* sw_trace_chrome - write all of it as Chrome's trace JSON.  Returns 0, or 1:
 * it could not be written, which was printed for @path. */
int sw_trace_chrome(const struct sw_trace_data *t, FILE *to, const char *path);

/* sw_trace_report - print the slowest steps, and what bound each. */
int sw_trace_report(const struct sw_trace_data *t, FILE *to);

#endif
