/* lane.h - commands and reports between the lcores of one worker.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A worker may have several lcores, its lanes.  Each is a struct sw_worker of
 * its own, with sessions to some of the servers, and so with some of the
 * chunks, its own flows, scheduler, timers and port endpoint.  A server sees
 * one session per member, so the nodes of a job may have different numbers of
 * lanes.
 *
 * The user talks to lane 0, which has the link to the coordinator.  Lane 0
 * joins, declares, takes requests, counts local ranks, fails and leaves for all
 * lanes.  The other lanes follow its commands and report when they are done.  A
 * push_pull ends when every lane with chunks of it has reported.
 *
 * Lanes share state words and have no queues.  A lane writes a word of a tensor
 * or of struct sw_lane, and then raises the tensor's flag or sets a bit at the
 * other side.  The other side looks at the whole state of the tensor, so a flag
 * that stands for several changes, or arrives late, loses nothing.
 *
 * Lanes read names, shapes, collectives, buffers and operations in lane 0's
 * memory, which lane 0 keeps until the last lane has closed.  They read why a
 * tensor is dead, and how a round ended, in the memory of the lane that reports
 * it. */
#ifndef SW_ENGINE_WORKER_LANE_H
#define SW_ENGINE_WORKER_LANE_H

#include "engine/base/flags.h"
#include "engine/sched/policy.h"
#include "engine/wire/wire.h"

enum { SW_LANES = 16 };

/* Bits that one side sets for the other, apart from the flags of tensors.  The
 * other side handles them in this order. */
enum sw_lane_bit {
	/* lane 0's commands */
	SW_LANE_TUNING = 1,  /* tuning has changed */
	SW_LANE_START = 2,   /* all have joined: connect to your servers */
	SW_LANE_SETTLE = 4,  /* the job runs with lane 0's payload */
	SW_LANE_DECLARE = 8, /* n_wanted tensors have keys */
	SW_LANE_LEAVE = 16,  /* end the job */
	/* reports to lane 0 */
	SW_LANE_JOINED = 32,   /* all servers of the lane are probed */
	SW_LANE_DECLARED = 64, /* servers have admitted n_wanted tensors */
	SW_LANE_SUMMED = 128,  /* granules are summed */
	SW_LANE_FAILED = 256,  /* fault says why */
	SW_LANE_LEFT = 512,    /* the lane has stopped sending and reading */
};

struct sw_worker;
struct sw_wtensor;

/* The latest settings of lane 0's scheduler.  Lane 0 sets SW_LANE_TUNING after
 * each change, so a lane that has read a mix of two settings reads again. */
struct sw_lane_tuning {
	_Atomic(const struct sw_policy *) policy;
	_Atomic uint64_t part_bytes, credit_bytes;
};

/* News for one side: bits, and flags of tensors. */
struct sw_lane_news {
	_Alignas(64) _Atomic uint32_t bits;
	struct sw_flags tensors;
};

/* The channel between lane 0 and one other lane. */
struct sw_lane {
	/* Lane 0, whose memory the other lane reads when a bit or flag
	 * announces a change. */
	const struct sw_worker *zero;
	struct sw_lane_tuning tuning;
	_Atomic uint32_t n_wanted; /* tensors that have keys */
	struct sw_fault fault;     /* set before SW_LANE_FAILED */
	/* Set before SW_LANE_JOINED: the other lane's tensors, and the payload
	 * that its paths carry. */
	const struct sw_wtensor *theirs;
	uint32_t carried;
	/* A line for the waiting user; set until lane 0 has read it. */
	atomic_bool has_line;
	char line[SW_TEXT_MAX + SW_NAME_MAX];
	struct sw_lane_news commands, reports;
};

/* sw_lane_init - set up an empty channel, while neither lcore uses it.
 * @zero  lane 0; borrowed until the other lane has closed */
void sw_lane_init(struct sw_lane *lane, const struct sw_worker *zero);

/* sw_lane_has_commands - may the other lane have something to take?
 * sw_lane_has_reports - may lane 0?  Either lane may ask while the channel is
 * open. */
bool sw_lane_has_commands(const struct sw_lane *lane);
bool sw_lane_has_reports(const struct sw_lane *lane);

/* sw_worker_take - take some news of other lanes, end some dead streams, do
 * some local collectives.  Call it before each turn of a lane's lcore.
 * Returns the work done; if not 0, the loop's timers may have changed. */
uint32_t sw_worker_take(struct sw_worker *w);

#endif
