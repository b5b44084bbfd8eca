/* lane.h - commands and reports between the lcores of one worker.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A worker may have several lcores, its lanes.  Each is a struct sw_worker of
 * its own, with sessions to some of the servers, and so with some of the
 * chunks, its own flows, scheduler, timers and port endpoint.  A server sees
 * one session per member, so the nodes of a job may have different numbers of
 * lanes.
 *
 * Lane 0 is the one that the user talks to.  It has the coordinator: it joins,
 * declares, takes requests, counts local ranks, fails and leaves for all.  The
 * others follow its commands and report when they are done.  A push_pull ends
 * when every lane with chunks of it has reported.
 *
 * Commands and reports are entries of rings from one lcore to another.  No ring
 * can fill up: lane.c counts the entries that each tensor can have in flight.
 * Frequently changing state is not queued: tuning parameters are plain shared
 * words, and the last write wins; a line is dropped while another one waits.
 *
 * Lanes read names, shapes, collectives, buffers and operations in lane 0's
 * memory, which lane 0 keeps until the last lane has closed.  They read why a
 * tensor is dead, and how a round ended, in the memory of the lane that says
 * so, which keeps it until its next report. */
#ifndef SW_ENGINE_WORKER_LANE_H
#define SW_ENGINE_WORKER_LANE_H

#include "engine/base/flags.h"
#include "engine/base/spsc.h"
#include "engine/sched/policy.h"
#include "engine/wire/wire.h"

enum {
	SW_LANES = 16,
	/* Four entries per tensor and one for each other kind (lane.c checks),
	 * rounded up to a power of two. */
	SW_LANE_RING = 32768,
};

enum sw_lane_kind {
	/* lane 0's commands */
	SW_LANE_START,   /* the job runs: connect to your servers */
	SW_LANE_DECLARE, /* tensors up to n have keys */
	SW_LANE_ROUND,   /* push your chunks of a tensor */
	SW_LANE_COLLS,   /* push your chunks of a stream's begun collectives */
	SW_LANE_DEAD,    /* a tensor or group has ended from round n on */
	SW_LANE_CLOSED,  /* this member has closed a group */
	SW_LANE_LEAVE,   /* end the job */
	/* reports to lane 0 */
	SW_LANE_RUNNING,  /* all servers of the lane are connected */
	SW_LANE_DECLARED, /* they have admitted all tensors up to n */
	/* All chunks of the round are held, or it is dead; for a stream, of the
	 * collectives in done. */
	SW_LANE_DONE,
	/* A tensor is dead from round n on; for a stream, lane 0 decides. */
	SW_LANE_KILLED,
	SW_LANE_KEPT,   /* this lane has released an ended group's buffers */
	SW_LANE_FAILED, /* fault says why */
	SW_LANE_LEFT,   /* the lane has stopped sending and reading */
};

struct sw_lane_message {
	uint8_t kind;
	uint32_t tensor, n;
};

struct sw_worker;
struct sw_wtensor;

/* The latest settings of lane 0's scheduler.  Lane 0 increments n_set behind
 * the words, and a lane that finds n_set changed reads them.  If it mixes two
 * sets, n_set changes again, and it reads once more. */
struct sw_lane_tuning {
	_Atomic(const struct sw_policy *) policy;
	_Atomic uint64_t part_bytes, credit_bytes;
	_Atomic uint32_t n_set;
};

/* The channel between lane 0 and one of the others. */
struct sw_lane {
	struct sw_spsc commands_in, reports_out; /* lane 0's ends */
	/* Lane 0, whose memory the other lane reads when a command names
	 * something. */
	const struct sw_worker *zero;
	struct sw_lane_tuning tuning;
	struct sw_flags grown; /* tensors of which more is written */
	/* The other lane's ends. */
	_Alignas(64) struct sw_spsc commands_out, reports_in;
	struct sw_fault fault; /* set before SW_LANE_FAILED */
	/* Set before SW_LANE_RUNNING: the other lane's tensors. */
	const struct sw_wtensor *theirs;
	uint32_t n_taken; /* the value of tuning.n_set that it has read */
	/* A line for the person who waits; set until lane 0 has read it. */
	atomic_bool has_line;
	/* Granules are summed; lane 0 calls events.summed. */
	atomic_bool has_summed;
	char line[SW_TEXT_MAX + SW_NAME_MAX];
	_Alignas(64) unsigned char commands[SW_SPSC_BYTES(
		SW_LANE_RING, sizeof(struct sw_lane_message))];
	_Alignas(64) unsigned char reports[SW_SPSC_BYTES(
		SW_LANE_RING, sizeof(struct sw_lane_message))];
};

/* sw_lane_init - set up an empty channel, while neither lcore uses it.
 * @zero  lane 0; borrowed until the other one has closed */
void sw_lane_init(struct sw_lane *lane, const struct sw_worker *zero);

/* sw_lane_has_commands, sw_lane_has_reports - may the other lane, may lane 0,
 * have something to take?  Either lane may ask while the channel is open. */
bool sw_lane_has_commands(const struct sw_lane *lane);
bool sw_lane_has_reports(const struct sw_lane *lane);

/* sw_worker_take - take what other lanes say, end dead streams, do local
 * collectives, some of each.  Call it before each turn of a lane's lcore.
 * Returns the work done; if not 0, the loop's timers may have changed. */
uint32_t sw_worker_take(struct sw_worker *w);

#endif
