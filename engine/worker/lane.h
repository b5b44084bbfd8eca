/* lane.h - what passes between the lcores of one worker.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A worker may have several lcores, its lanes.  Each is a struct sw_worker of
 * its own: sessions with a part of the servers, and so a part of the chunks,
 * flows, scheduler, timers, port endpoint.  To a server, which knows one
 * session of a member, nothing is different; so the nodes of a job may have
 * different numbers of lanes.
 *
 * Lane 0 is the one that the user talks to.  It has the coordinator: it joins,
 * declares, takes what is asked, counts local ranks, fails and leaves for all;
 * the others follow its commands and report when they are done.  A push_pull is
 * over when every lane that has chunks of it has said so.
 *
 * A command and a report are entries of a ring from one lcore to another, which
 * can never be full: of each tensor there is at most one round, and one death;
 * of a stream one entry for all collectives that the other side has not looked
 * at; of all else at most one at a time.  What may be said again and again is
 * no entry: tuning are words, the last of which count, and a line is dropped
 * while another one waits.  Names, shapes, collectives, buffers and what a
 * round does are read where lane 0 has them, which are its own again when the
 * last lane has closed; why a tensor is dead, and what came of a round, where
 * the lane that says so has it, which leaves it so until the next one.
 */
#ifndef SW_ENGINE_WORKER_LANE_H
#define SW_ENGINE_WORKER_LANE_H

#include "engine/base/flags.h"
#include "engine/base/spsc.h"
#include "engine/sched/policy.h"
#include "engine/wire/wire.h"

enum {
	SW_LANES = 16,
	/* A round of each tensor, its death, and one each of the others (lane.c
	 * checks), made a power of two. */
	SW_LANE_RING = 16384,
};

enum sw_lane_kind {
	/* lane 0's commands */
	SW_LANE_START,   /* the job runs: go to your servers */
	SW_LANE_DECLARE, /* tensors up to n have keys */
	SW_LANE_ROUND,   /* push your chunks of a tensor */
	SW_LANE_COLLS,   /* of a stream, of the collectives that are begun */
	SW_LANE_DEAD,    /* a tensor is, from round n on */
	SW_LANE_CLOSED,  /* a stream is */
	SW_LANE_LEAVE,   /* end the job */
	/* reports to it */
	SW_LANE_RUNNING,  /* all servers of the lane are there */
	SW_LANE_DECLARED, /* and have admitted what was ordered */
	SW_LANE_DONE,     /* all chunks of the round are held, or it is dead; of
			     a stream, of the collectives that are done */
	SW_LANE_KILLED,   /* a tensor is dead, from round n on; a stream is to
			     be, as lane 0 decides */
	SW_LANE_KEPT,     /* a dead stream's buffers are used no more */
	SW_LANE_FAILED,   /* fault says why */
	SW_LANE_LEFT,     /* the lane sends nothing and reads nothing more */
};

struct sw_lane_message {
	uint8_t kind;
	uint32_t tensor, n;
};

struct sw_worker;
struct sw_wtensor;

/* What lane 0's scheduler was set to last.  n_set is counted up behind the
 * words: who finds it changed takes them, and those of two sets that it may
 * have mixed are taken once more, since n_set changes again. */
struct sw_lane_tuning {
	_Atomic(const struct sw_policy *) policy;
	_Atomic uint64_t part_bytes, credit_bytes;
	_Atomic uint32_t n_set;
};

/* Between lane 0 and one of the others. */
struct sw_lane {
	struct sw_spsc commands_in, reports_out; /* lane 0's sides */
	/* Of which the other reads what a command tells of. */
	const struct sw_worker *zero;
	struct sw_lane_tuning tuning;
	struct sw_flags grown; /* tensors of which more is there (grow.c) */
	_Alignas(64) struct sw_spsc commands_out, reports_in; /* the other's */
	struct sw_fault fault;           /* before SW_LANE_FAILED */
	const struct sw_wtensor *theirs; /* before SW_LANE_RUNNING */
	uint32_t n_taken;                /* of tuning.n_set */
	/* A line for the person who waits, while lane 0 has not read it. */
	atomic_bool has_line;
	atomic_bool has_summed; /* granules, of which lane 0 has to tell */
	char line[SW_TEXT_MAX + SW_NAME_MAX];
	_Alignas(64) unsigned char commands[SW_SPSC_BYTES(
		SW_LANE_RING, sizeof(struct sw_lane_message))];
	_Alignas(64) unsigned char reports[SW_SPSC_BYTES(
		SW_LANE_RING, sizeof(struct sw_lane_message))];
};

/* sw_lane_init - nothing has been said.  While neither lcore uses it.
 * @zero  lane 0; borrowed until the other one has closed */
void sw_lane_init(struct sw_lane *lane, const struct sw_worker *zero);

/* sw_lane_has_commands, sw_lane_has_reports - may the other lane, may lane 0
 * have something to take?  Either of the two, while the lane is open. */
bool sw_lane_has_commands(const struct sw_lane *lane);
bool sw_lane_has_reports(const struct sw_lane *lane);

/* sw_worker_take - what the other lanes have said since the last turn, what
 * ends of dead streams, and what local ranks do among themselves
 * (stream_local.c); to be called before each turn of an lcore that runs a lane.
 * Returns how much there was; then the loop's timers may have changed. */
uint32_t sw_worker_take(struct sw_worker *w);

#endif
